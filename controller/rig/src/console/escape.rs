//! Makes what a target prints safe for a terminal, chunk by chunk.
//!
//! Printable UTF-8, newline and tab pass. Everything that could move a cursor, change a
//! colour, reverse text or hide it is shown as text: `\x1b` for bytes, `\u{202e}` for
//! characters. CR LF is one newline, and so is a lone CR (any run of CRs, with or without
//! an LF behind it): a progress line that redraws itself becomes readable lines, and no
//! text can overwrite what was shown before.
//!
//! **Refused here:** undoing. A target that prints a literal `\x1b` looks the same as one
//! that prints the byte; the log keeps the truth.

use std::fmt::Write as _;

/// Escapes a stream; the outcome does not depend on how the stream is cut.
#[derive(Debug, Clone, Default)]
pub struct Escaper {
    /// The beginning of a character whose rest has not come yet; at most three bytes.
    pending: Vec<u8>,
    /// The last byte was a CR that has been shown as a newline.
    after_cr: bool,
}

/// Escapes a whole text.
pub fn escape(bytes: &[u8]) -> String {
    let mut escaper = Escaper::default();
    let mut text = escaper.escape(bytes);
    text.push_str(&escaper.finish());
    text
}

impl Escaper {
    /// Escapes the next chunk; an unfinished character is held back.
    pub fn escape(&mut self, bytes: &[u8]) -> String {
        let mut out = String::with_capacity(bytes.len() + 16);
        let joined;
        let mut rest = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined
        };
        loop {
            let (valid, bad) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (valid, _) = rest.split_at(error.valid_up_to());
                    // Always valid: the error says so.
                    (std::str::from_utf8(valid).unwrap_or_default(), Some(error.error_len()))
                }
            };
            self.push_text(valid, &mut out);
            rest = &rest[valid.len()..];
            match bad {
                None => return out,
                Some(None) => {
                    self.pending = rest.to_vec();
                    return out;
                }
                Some(Some(len)) => {
                    self.push_bytes(&rest[..len], &mut out);
                    rest = &rest[len..];
                }
            }
        }
    }

    /// Ends the stream and returns what was held back.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        let pending = std::mem::take(&mut self.pending);
        self.push_bytes(&pending, &mut out);
        self.after_cr = false;
        out
    }

    fn push_text(&mut self, mut text: &str, out: &mut String) {
        while let Some(c) = text.chars().next() {
            // Runs of plain ASCII are nearly everything a target prints.
            let plain = text.bytes().take_while(|b| matches!(b, b' '..=b'~')).count();
            let used = if plain > 0 {
                self.after_cr = false;
                out.push_str(&text[..plain]);
                plain
            } else {
                self.push(c, out);
                c.len_utf8()
            };
            text = &text[used..];
        }
    }

    fn push(&mut self, c: char, out: &mut String) {
        let after_cr = std::mem::replace(&mut self.after_cr, c == '\r');
        match c {
            '\r' | '\n' if after_cr => {}
            '\r' | '\n' => out.push('\n'),
            '\t' => out.push('\t'),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if c.is_control() || is_invisible(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], out: &mut String) {
        for byte in bytes {
            self.after_cr = false;
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// Tells whether a character reorders or hides text, or breaks lines behind our back.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}'                        // soft hyphen
        | '\u{61c}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}'       // zero width, direction marks
        | '\u{2028}'..='\u{202e}'       // separators, direction overrides
        | '\u{2060}'..='\u{206f}'       // joiners, direction isolates
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}'     // tags
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_text_becomes_visible() {
        assert_eq!(escape(b"\x1b[2J\x1b]0;x\x07ok"), r"\x1b[2J\x1b]0;x\x07ok");
        assert_eq!(
            escape("a\u{9b}31m\u{202e}b\u{200b}".as_bytes()),
            r"a\u{9b}31m\u{202e}b\u{200b}"
        );
        assert_eq!(escape(b"\xff\xc3(\xe2\x82"), r"\xff\xc3(\xe2\x82");
        assert_eq!(escape("grün → 漢\t✓".as_bytes()), "grün → 漢\t✓");
    }

    #[test]
    fn line_ends_are_newlines() {
        assert_eq!(escape(b"a\r\nb\rc\r\r\nd\n\ne\r\n\r\nf"), "a\nb\nc\nd\n\ne\n\nf");
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let nasty = prop::sample::select(vec![
            "\u{202e}".as_bytes().to_vec(),
            "é".as_bytes().to_vec(),
            "😀".as_bytes().to_vec(),
            b"\r".to_vec(),
            b"\n".to_vec(),
            b"\x1b[1m".to_vec(),
            vec![0xf0, 0x9f],
        ]);
        let piece = prop_oneof![nasty, prop::collection::vec(any::<u8>(), 0..4)];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn output_is_safe_and_chunking_changes_nothing(bytes in bytes(), size in 1usize..7) {
            let whole = escape(&bytes);
            let mut escaper = Escaper::default();
            let mut cut: String = bytes.chunks(size).map(|c| escaper.escape(c)).collect();
            cut.push_str(&escaper.finish());
            prop_assert_eq!(&whole, &cut);
            prop_assert!(whole.chars().all(|c| c == '\n' || c == '\t' || !(c.is_control() || is_invisible(c))));
        }
    }
}
