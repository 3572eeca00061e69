//! defmt: log frames that carry an index into the image's table instead of text.
//!
//! The stream is bytes of a target and hostile: a frame that does not decode is told as
//! such, with its bytes, and the next one is found at the next separator.

use std::fmt::Write as _;

use defmt_decoder::{DecodeError, Encoding, Locations, Table};

/// Longest frame that is kept; defmt's own writers stay far below.
const LONGEST: usize = 64 << 10;

/// The table of an image's log statements.
pub struct DefmtTable {
    table: Table,
    locations: Option<Locations>,
}

/// Says why an image's table is of no use.
#[derive(Debug, thiserror::Error)]
#[error("the image's defmt table cannot be used: {0}")]
pub struct DefmtError(String);

impl DefmtTable {
    /// Reads the table; nothing if the image does not use defmt.
    ///
    /// # Errors
    /// The table is broken, or of a version that the decoder does not know.
    pub fn load(elf: &[u8]) -> Result<Option<Self>, DefmtError> {
        let broken = |error: &dyn std::fmt::Display| DefmtError(error.to_string());
        let Some(table) = Table::parse(elf).map_err(|error| broken(&error))? else {
            return Ok(None);
        };
        // Lines come from debug information, which may be missing or only cover a part.
        let locations = table.get_locations(elf).ok().filter(|found| !found.is_empty());
        Ok(Some(Self { table, locations }))
    }
}

/// Turns a stream of frames into lines of text.
pub struct DefmtDecoder {
    table: DefmtTable,
    pending: Vec<u8>,
    /// Whether what is pending has no end in sight and is dropped up to the next separator.
    overlong: u64,
}

/// What the stream holds next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefmtItem {
    /// A frame, as one line: time stamp, level, message, file and line, as far as known.
    Line(String),
    /// Bytes that are no frame.
    Broken {
        /// How many.
        bytes: u64,
    },
}

impl DefmtDecoder {
    /// Begins at the start of a frame.
    pub fn new(table: DefmtTable) -> Self {
        Self { table, pending: Vec::new(), overlong: 0 }
    }

    /// Takes bytes, in any portions, and returns what they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<DefmtItem> {
        match self.table.table.encoding() {
            Encoding::Rzcobs => self.push_separated(bytes),
            _ => self.push_raw(bytes),
        }
    }

    /// Ends the stream: what is pending will never be a frame.
    pub fn finish(&mut self) -> Option<DefmtItem> {
        let bytes = self.overlong + self.pending.len() as u64;
        self.pending.clear();
        self.overlong = 0;
        (bytes > 0).then_some(DefmtItem::Broken { bytes })
    }

    /// Frames end in a zero, and hold none.
    fn push_separated(&mut self, bytes: &[u8]) -> Vec<DefmtItem> {
        let mut items = Vec::new();
        for part in bytes.split_inclusive(|&byte| byte == 0) {
            let (frame, ends) = match part.split_last() {
                Some((0, frame)) => (frame, true),
                _ => (part, false),
            };
            if self.pending.len() + frame.len() > LONGEST {
                self.overlong += (self.pending.len() + frame.len()) as u64;
                self.pending.clear();
            } else if self.overlong > 0 {
                self.overlong += frame.len() as u64;
            } else {
                self.pending.extend_from_slice(frame);
            }
            if ends {
                items.extend(self.end_frame());
            }
        }
        items
    }

    fn end_frame(&mut self) -> Option<DefmtItem> {
        if self.overlong > 0 {
            return self.finish();
        }
        if self.pending.is_empty() {
            // Separators may come in rows.
            return None;
        }
        let mut frame = std::mem::take(&mut self.pending);
        let bytes = frame.len() as u64;
        frame.push(0);
        let mut stream = self.table.table.new_stream_decoder();
        stream.received(&frame);
        Some(match stream.decode() {
            Ok(frame) => DefmtItem::Line(self.table.line(&frame)),
            Err(DecodeError::Malformed | DecodeError::UnexpectedEof) => DefmtItem::Broken { bytes },
        })
    }

    /// Frames follow each other without a mark: one that is broken takes the rest with it.
    fn push_raw(&mut self, bytes: &[u8]) -> Vec<DefmtItem> {
        self.pending.extend_from_slice(bytes);
        let mut items = Vec::new();
        let mut used = 0;
        while used < self.pending.len() {
            match self.table.table.decode(&self.pending[used..]) {
                Ok((frame, len)) if len > 0 => {
                    items.push(DefmtItem::Line(self.table.line(&frame)));
                    used += len;
                }
                Err(DecodeError::UnexpectedEof) if self.pending.len() - used <= LONGEST => break,
                Ok(_) | Err(DecodeError::UnexpectedEof | DecodeError::Malformed) => {
                    let bytes = (self.pending.len() - used) as u64;
                    items.push(DefmtItem::Broken { bytes });
                    used = self.pending.len();
                }
            }
        }
        self.pending.drain(..used);
        items
    }
}

impl DefmtTable {
    fn line(&self, frame: &defmt_decoder::Frame<'_>) -> String {
        let mut line = String::new();
        if let Some(time) = frame.display_timestamp() {
            let _ = write!(line, "{time} ");
        }
        if let Some(level) = frame.level() {
            let _ = write!(line, "{:<5} ", level.as_str().to_ascii_uppercase());
        }
        let _ = write!(line, "{}", frame.display_message());
        let location = self.locations.as_ref().and_then(|known| known.get(&frame.index()));
        if let Some(location) = location {
            let _ = write!(line, " ({}:{})", location.file.display(), location.line);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the smallest ELF file with a table: one section, its symbols, their names.
    fn elf(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut strings = vec![0];
        let mut symbols = vec![0; 16];
        let mut symbol = |name: &str, value: u32| {
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend(value.to_le_bytes());
            symbols.extend([0; 4]);
            symbols.extend([0, 0, 1, 0]);
            strings.extend(name.bytes().chain([0]));
        };
        symbol("_defmt_version_ = 4", 0);
        symbol("_defmt_encoding_ = rzcobs", 0);
        for (index, (tag, text)) in (1..).zip(entries) {
            let name = format!(
                "{{\"package\":\"p\",\"tag\":\"{tag}\",\"data\":\"{text}\",\
                 \"disambiguator\":\"{index}\",\"crate_name\":\"p\"}}"
            );
            symbol(&name, index);
        }
        let names = b"\0.defmt\0.symtab\0.strtab\0";
        let parts: [&[u8]; 4] = [&[0; 16], &symbols, &strings, names];
        let mut offsets = Vec::new();
        let mut body = Vec::new();
        for part in parts {
            offsets.push(52 + body.len() as u32);
            body.extend_from_slice(part);
            body.resize(body.len().next_multiple_of(8), 0);
        }
        // Section headers are aligned like everything else.
        body.resize(body.len() + 4, 0);
        let mut bytes = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend([2, 0, 40, 0]);
        for word in [1, 0, 0, 52 + body.len() as u32, 0] {
            bytes.extend(u32::to_le_bytes(word));
        }
        for half in [52_u16, 0, 0, 40, 5, 4] {
            bytes.extend(half.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        let mut section = |name: u32, kind: u32, part: usize, link: u32, entry: u32| {
            let len = parts[part].len() as u32;
            for word in [name, kind, 0, 0, offsets[part], len, link, 1, 1, entry] {
                bytes.extend(word.to_le_bytes());
            }
        };
        section(0, 0, 0, 0, 0);
        section(1, 1, 0, 0, 0);
        section(8, 2, 1, 3, 16);
        section(16, 3, 2, 0, 0);
        section(16, 3, 3, 0, 0);
        bytes
    }

    fn decoder() -> DefmtDecoder {
        let elf = elf(&[("defmt_info", "boot {=u8}"), ("defmt_warn", "at {=u32} mV")]);
        DefmtDecoder::new(DefmtTable::load(&elf).unwrap().unwrap())
    }

    /// `boot 7`: index 1, argument 7; the zero byte of the index is a bit behind the rest.
    const BOOT: &[u8] = &[1, 7, 0b111_1010, 0];

    fn line(text: &str) -> DefmtItem {
        DefmtItem::Line(text.to_owned())
    }

    #[test]
    fn frames_decode_however_they_are_cut() {
        let twice = [BOOT, BOOT].concat();
        for cut in 0..twice.len() {
            let mut decoder = decoder();
            let mut items = decoder.push(&twice[..cut]);
            items.extend(decoder.push(&twice[cut..]));
            assert_eq!(items, [line("INFO  boot 7"), line("INFO  boot 7")], "{cut}");
            assert_eq!(decoder.finish(), None);
        }
    }

    #[test]
    fn what_is_no_frame_is_counted_and_the_next_one_is_found() {
        let mut decoder = decoder();
        // The last byte promises six more than there are.
        let mut items = decoder.push(&[2, 0b000_0010, 0]);
        items.extend(decoder.push(&[0, 0, 9, 9, 9, 0]));
        items.extend(decoder.push(BOOT));
        assert_eq!(
            items,
            [DefmtItem::Broken { bytes: 2 }, DefmtItem::Broken { bytes: 3 }, line("INFO  boot 7")]
        );
        assert_eq!(decoder.push(&[1, 7]), []);
        assert_eq!(decoder.finish(), Some(DefmtItem::Broken { bytes: 2 }));
    }

    #[test]
    fn a_frame_without_end_takes_no_memory() {
        let mut decoder = decoder();
        for _ in 0..64 {
            assert_eq!(decoder.push(&[0x55; 8192]), []);
            assert!(decoder.pending.len() <= LONGEST);
        }
        assert_eq!(decoder.push(&[0]), [DefmtItem::Broken { bytes: 64 * 8192 }]);
        assert_eq!(decoder.push(BOOT), [line("INFO  boot 7")]);
    }

    #[test]
    fn an_image_without_defmt_has_no_table_and_a_broken_one_says_so() {
        assert!(DefmtTable::load(b"no elf").is_err());
        let twisted = elf(&[("defmt_info", "boot {=u99}")]);
        // Which texts are good is seen when a frame needs them; loading survives.
        let _ = DefmtTable::load(&twisted);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

        #[test]
        fn no_stream_breaks_the_decoder(bytes in proptest::collection::vec(0u8..=255, 0..400)) {
            let mut decoder = decoder();
            decoder.push(&bytes);
            decoder.finish();
            assert_eq!(decoder.push(BOOT), [line("INFO  boot 7")]);
        }
    }
}
