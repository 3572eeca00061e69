//! The list of the lines of an attempt that nothing accounts for: part of no report, not expected, not
//! allowed. A strict run needs a pattern for each of their kinds; the list proposes it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::whole_file::read_whole;

/// Name of the file. No console log ends like it.
pub const UNACCOUNTED_FILE: &str = "unaccounted.json";

/// Most bytes that are read of such a file.
const MAX_FILE: u64 = 4 << 20;

/// Longest line that a pattern spells out, in characters; of a longer one, the beginning.
const MAX_SPELLED: usize = 160;

/// What nothing accounts for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnaccountedOutput {
    /// How many lines, with those whose kind is not listed.
    pub lines: u64,
    /// Their kinds, in the order in which they were found: the first 200.
    pub kinds: Vec<UnaccountedKind>,
}

/// Lines that differ only in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnaccountedKind {
    /// A regular expression that matches each of them.
    pub pattern: String,
    /// The line looks like a crash or tells of trouble.
    pub doubtful: bool,
    /// How many there are.
    pub lines: u64,
    /// The log of the first of them, relative to the run.
    pub file: String,
    /// Where it begins there, in bytes.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Its text: the target's, and shortened.
    pub text: String,
}

impl UnaccountedOutput {
    /// Reads the list of an attempt; none if there is no such file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is larger than 4 MiB or is no such list.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match read_whole(path, MAX_FILE) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Writes a regular expression for the lines that differ from this one only in numbers: decimal ones, and
/// hexadecimal ones with `0x` or of at least four digits.
pub fn pattern_of_kind(line: &str) -> String {
    let cut = line.char_indices().nth(MAX_SPELLED).map(|(at, _)| at);
    let mut rest = &line[..cut.unwrap_or(line.len())];
    let mut pattern = String::from("^");
    let mut in_word = false;
    while let Some(c) = rest.chars().next() {
        let hex = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (number, len) = match rest.strip_prefix("0x").map(hex) {
            Some(digits) if digits > 0 && !in_word => ("0x[0-9A-Fa-f]+", 2 + digits),
            _ => match hex(rest) {
                digits if digits >= 4 && !in_word && is_hex_word(rest, digits) => {
                    ("[0-9A-Fa-f]+", digits)
                }
                _ => (r"[0-9]+", rest.bytes().take_while(u8::is_ascii_digit).count()),
            },
        };
        if len > 0 {
            pattern.push_str(number);
            (in_word, rest) = (true, &rest[len..]);
            continue;
        }
        match c {
            // What is no text in UTF-8 stands for one byte.
            char::REPLACEMENT_CHARACTER => pattern.push('.'),
            c => {
                if r"\.+*?()|[]{}^$".contains(c) {
                    pattern.push('\\');
                }
                pattern.push(c);
            }
        }
        (in_word, rest) = (c.is_alphanumeric() || c == '_', &rest[c.len_utf8()..]);
    }
    if cut.is_none() {
        pattern.push('$');
    }
    pattern
}

/// Tells whether the hexadecimal digits that a text begins with are a whole word of letters and digits.
fn is_hex_word(text: &str, digits: usize) -> bool {
    let (word, behind) = text.split_at(digits);
    let ends = !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ends && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use jig_model::pattern::Pattern;
    use proptest::prelude::*;

    use super::*;
    use crate::console::PatternSet;

    #[test]
    fn a_pattern_leaves_numbers_open() {
        for (line, pattern) in [
            ("bye", "^bye$"),
            ("[12.034] rx: 3 of 4 (75%)", r"^\[[0-9]+\.[0-9]+\] rx: [0-9]+ of [0-9]+ \([0-9]+%\)$"),
            ("at 0x2000a41c, id 5fa0c1d2", "^at 0x[0-9A-Fa-f]+, id [0-9A-Fa-f]+$"),
            ("dead beef, rate2rate x86", "^dead beef, rate[0-9]+rate x[0-9]+$"),
            ("it's 5 o'clock", "^it's [0-9]+ o'clock$"),
        ] {
            assert_eq!(pattern_of_kind(line), pattern, "{line}");
        }
        assert!(!pattern_of_kind(&"x".repeat(200)).ends_with('$'));
    }

    proptest! {
        #[test]
        fn a_pattern_matches_its_own_line(line in "[!-~][ -~\u{c0}-\u{17f}]{0,200}") {
            let pattern: Pattern = pattern_of_kind(&line).parse().unwrap();
            prop_assert!(PatternSet::new(&[pattern]).unwrap().matches(line.as_bytes()), "{line}");
        }
    }
}
