//! Makes a line readable for rules that look at words, in whatever form its letters came. Pure.
//!
//! A reader of a terminal sees the same word in `PANIC`, in its UTF-16 form, in `P\bPA\bA...` as a
//! printer overstrikes it, and in full-width letters.

use std::borrow::Cow;

use super::legacy_text::failed_verdict;
use super::lines::{lossy, plain_rows};
use super::screen_rows::overprinted;

/// Text in which the letters of a word do not stand beside each other: a colour changes between them.
pub(super) const HINTS: &str = r"[a-z](?:(?:\x1b\[|\x9b)[0-9;:]*m)+[a-z]|\x7f";

/// Reads the bytes of a line as text without control sequences, in plain letters where they are
/// meant. The text of a line that moves the cursor to another row, or writes over its own text, has
/// several lines.
pub(crate) fn readable(bytes: &[u8]) -> Cow<'_, str> {
    let text = in_plain_letters(plain_rows(bytes));
    match overprinted(bytes) {
        Some(rows) => {
            Cow::Owned(format!("{text}\n{}", in_plain_letters(Cow::Owned(rows.into_bytes()))))
        }
        None => text,
    }
}

/// Tells whether a line writes over its own text, so that a reader sees something else than its bytes.
pub(crate) fn writes_over(bytes: &[u8]) -> bool {
    overprinted(bytes).is_some()
}

fn in_plain_letters(clean: Cow<'_, [u8]>) -> Cow<'_, str> {
    let simple = |b: &u8| matches!(b, b'\t' | b'\n' | b' '..=b'~');
    if clean.iter().all(simple) {
        return match clean {
            Cow::Borrowed(bytes) => lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(lossy(&bytes).into_owned()),
        };
    }
    let mut text = String::with_capacity(clean.len());
    // The zero bytes of UTF-16 and UTF-32, and their byte order mark.
    let mark = |b: &u8| matches!(b, 0xfe | 0xff);
    let is_wide = clean.contains(&0);
    let letters = clean.iter().copied().skip_while(|b| is_wide && (*b == 0 || mark(b)));
    let bytes: Vec<u8> = letters.filter(|&b| b != 0).collect();
    let read = failed_verdict(&bytes).map_or_else(|| lossy(&bytes), Cow::Owned);
    for c in read.chars() {
        match c {
            '\u{8}' => {
                text.pop();
            }
            '\u{ff01}'..='\u{ff5e}' => {
                text.extend(char::from_u32(u32::from(c) - 0xfee0));
            }
            '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}' => text.push(' '),
            '\u{7f}'
            | '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => {}
            c if c.is_control() && c != '\t' && c != '\n' => text.push(' '),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wide(text: &str, zeros: usize, big: bool) -> Vec<u8> {
        let char = |byte: u8| {
            let mut bytes = vec![0; zeros];
            bytes.insert(if big { zeros } else { 0 }, byte);
            bytes
        };
        text.bytes().flat_map(char).collect()
    }

    #[test]
    fn letters_are_read_in_whatever_form_they_came() {
        let struck: Vec<u8> = b"PANIC!".iter().flat_map(|&b| [b, 8, b]).collect();
        let full = "\u{ff30}\u{ff21}\u{ff2e}\u{ff29}\u{ff23}!";
        for (bytes, text) in [
            (b"panic: x".to_vec(), "panic: x"),
            (wide("PANIC!", 1, false), "PANIC!"),
            (wide("PANIC!", 1, true), "PANIC!"),
            (wide("PANIC!", 3, false), "PANIC!"),
            (wide("PANIC!", 3, true), "PANIC!"),
            ([b"\xff\xfe".to_vec(), wide("PANIC!", 1, false)].concat(), "PANIC!"),
            (struck, "PANIC!"),
            (full.as_bytes().to_vec(), "PANIC!"),
            ("not\u{a0}ok\u{2003}3".as_bytes().to_vec(), "not ok 3"),
            ("pa\u{200b}nic".as_bytes().to_vec(), "panic"),
            (b"\x1b[31mpa\x1b[0mnic".to_vec(), "panic"),
            (b"\xc0ram: PASS\xc0\xc0flash: FAIL\xc0".to_vec(), "\nram: PASS\n\nflash: FAIL\n"),
            (b"\xc0 la carte".to_vec(), "\u{fffd} la carte"),
            (b"panic\x07".to_vec(), "panic "),
            (b"a\x1b[2;1Hpanic\x1b[40G\x07!".to_vec(), "a\npanic  !"),
            ("grün → 漢".as_bytes().to_vec(), "grün → 漢"),
        ] {
            assert_eq!(readable(&bytes), text, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn readable_text_has_no_controls(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let text = readable(&bytes);
            prop_assert!(text.chars().all(|c| matches!(c, '\t' | '\n') || !c.is_control()), "{:?}", text);
            prop_assert!(text.chars().count() <= 4 * (bytes.len() + 1) * (bytes.len() + 1));
        }
    }
}
