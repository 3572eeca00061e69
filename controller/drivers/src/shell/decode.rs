//! Output of a target in another encoding, as UTF-8, piece by piece. Pure.

use encoding_rs::{Decoder, UTF_16LE, WINDOWS_1252};
use jig_model::shell::TextEncoding;
use oem_cp::code_table::{DECODING_TABLE_CP437, DECODING_TABLE_CP850};
use oem_cp::decode_string_complete_table;

/// Decodes the output of one command. A character may be cut between two pieces.
pub(super) struct OutputDecoder(DecoderKind);

enum DecoderKind {
    /// Bytes as they are: what is no UTF-8 is evidence, too.
    AsIs,
    Table(&'static [char; 128]),
    Decoder(Box<Decoder>),
}

impl OutputDecoder {
    pub(super) fn new(encoding: TextEncoding) -> Self {
        Self(match encoding {
            TextEncoding::Utf8 => DecoderKind::AsIs,
            TextEncoding::Cp437 => DecoderKind::Table(&DECODING_TABLE_CP437),
            TextEncoding::Cp850 => DecoderKind::Table(&DECODING_TABLE_CP850),
            TextEncoding::Cp1252 => {
                DecoderKind::Decoder(Box::new(WINDOWS_1252.new_decoder_without_bom_handling()))
            }
            TextEncoding::Utf16le => {
                DecoderKind::Decoder(Box::new(UTF_16LE.new_decoder_with_bom_removal()))
            }
        })
    }

    /// Decodes the next piece; `last` says that nothing follows.
    pub(super) fn decode(&mut self, bytes: &[u8], last: bool) -> Vec<u8> {
        match &mut self.0 {
            DecoderKind::AsIs => bytes.to_vec(),
            DecoderKind::Table(table) => decode_string_complete_table(bytes, table).into_bytes(),
            DecoderKind::Decoder(decoder) => {
                let room = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3);
                let mut text = String::with_capacity(room);
                let _ = decoder.decode_to_string(bytes, &mut text, last);
                text.into_bytes()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded<'p>(encoding: TextEncoding, pieces: impl Iterator<Item = &'p [u8]>) -> String {
        let mut decoder = OutputDecoder::new(encoding);
        let mut all: Vec<u8> = pieces.flat_map(|piece| decoder.decode(piece, false)).collect();
        all.extend(decoder.decode(&[], true));
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn umlauts_and_boxes_come_out_of_each_encoding() {
        for (encoding, bytes, text) in [
            (TextEncoding::Utf8, "für".as_bytes(), "für"),
            (TextEncoding::Cp437, b"f\x81r \xc9\xcd\xbb", "für ╔═╗"),
            (TextEncoding::Cp850, b"f\x81r \xb8", "für ©"),
            (TextEncoding::Cp1252, b"f\xfcr 5 \x80", "für 5 €"),
            (TextEncoding::Utf16le, b"\xff\xfef\0\xfc\0r\0", "für"),
        ] {
            assert_eq!(decoded(encoding, [bytes].into_iter()), text, "{encoding:?}");
            assert_eq!(decoded(encoding, bytes.chunks(1)), text, "{encoding:?} byte by byte");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_bad_and_no_cut_matters(bytes in any::<Vec<u8>>(), cut in any::<usize>()) {
            for encoding in [
                TextEncoding::Cp437,
                TextEncoding::Cp850,
                TextEncoding::Cp1252,
                TextEncoding::Utf16le,
            ] {
                let (head, tail) = bytes.split_at(cut % (bytes.len() + 1));
                let whole = decoded(encoding, [&bytes[..]].into_iter());
                prop_assert_eq!(&decoded(encoding, [head, tail].into_iter()), &whole);
            }
        }
    }
}
