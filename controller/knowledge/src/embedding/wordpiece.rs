//! WordPiece: the tokens of BERT models, by their vocabulary.
//!
//! # Design
//! The algorithm is fixed by the models that exist, and short; a crate for all tokenizers brings a regular
//! expression engine in C and a progress bar. A symbol that is neither letter, digit nor blank is a token
//! of its own, where the original keeps some such as `€` inside words.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Largest vocabulary file.
const MOST: u64 = 16 << 20;

/// A longer word is unknown, as in the original.
const WORD: usize = 100;

/// Says why a vocabulary cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum VocabularyError {
    /// The system refused.
    #[error("could not read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no file of a likely size.
    #[error("{} is no file of up to 16 MiB", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// A token that each text needs is missing.
    #[error("{} has no token {token}: it is not the vocab.txt of a BERT model", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The token.
        token: &'static str,
    },
}

/// Tokens and their numbers.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    numbers: HashMap<String, i64>,
    unknown: i64,
    first: i64,
    last: i64,
    lower_case: bool,
}

impl Vocabulary {
    /// Reads a file of one token a line; the number of a token is that of its line, from 0.
    ///
    /// # Errors
    /// It cannot be read, or a token that each text needs is missing.
    pub fn read(path: &Path, lower_case: bool) -> Result<Self, VocabularyError> {
        let failed = |source| VocabularyError::Io { path: path.to_owned(), source };
        let about = fs::metadata(path).map_err(failed)?;
        if !about.is_file() || about.len() > MOST {
            return Err(VocabularyError::NoFile { path: path.to_owned() });
        }
        let mut text = String::new();
        File::open(path).and_then(|f| f.take(MOST).read_to_string(&mut text)).map_err(failed)?;
        let numbers: HashMap<String, i64> =
            (0..).zip(text.lines()).map(|(number, token)| (token.to_owned(), number)).collect();
        let number = |token: &'static str| {
            let missing = || VocabularyError::Missing { path: path.to_owned(), token };
            numbers.get(token).copied().ok_or_else(missing)
        };
        let (unknown, first, last) = (number("[UNK]")?, number("[CLS]")?, number("[SEP]")?);
        Ok(Self { numbers, unknown, first, last, lower_case })
    }

    /// Returns the tokens of a text, at most as many as asked for, between the marks of a text.
    pub fn tokens(&self, text: &str, most: usize) -> Vec<i64> {
        let room = most.saturating_sub(1).max(1);
        let mut found = vec![self.first];
        // What no token is made of need not be looked at: a token has a character at least.
        let text: String = match self.lower_case {
            true => plain(text).flat_map(char::to_lowercase).nfd().filter(is_no_mark).collect(),
            false => plain(text).collect(),
        };
        for word in words(&text) {
            if found.len() >= room {
                break;
            }
            self.pieces(word, &mut found);
        }
        found.truncate(room);
        found.push(self.last);
        found
    }

    /// Adds the longest known beginnings of what is left of a word.
    fn pieces(&self, word: &str, found: &mut Vec<i64>) {
        let before = found.len();
        let mut piece = String::new();
        let mut start = 0;
        if word.chars().count() > WORD {
            found.push(self.unknown);
            return;
        }
        while start < word.len() {
            let rest = &word[start..];
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
            let hit = ends.into_iter().find_map(|end| {
                piece.clear();
                piece.push_str(if start == 0 { "" } else { "##" });
                piece.push_str(&rest[..end]);
                self.numbers.get(&piece).map(|number| (*number, end))
            });
            let Some((number, end)) = hit else {
                // A word is known as a whole or not at all.
                found.truncate(before);
                found.push(self.unknown);
                return;
            };
            found.push(number);
            start += end;
        }
    }
}

fn is_no_mark(c: &char) -> bool {
    !is_combining_mark(*c)
}

/// Returns the characters of a text, without those that say nothing.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .filter(|c| !matches!(c, '\0' | '\u{fffd}') && (!c.is_control() || c.is_whitespace()))
}

/// Returns the words of a text: letters and digits in a row, or one symbol or ideograph.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let inside = |c: char| c.is_alphanumeric() && !is_ideograph(c);
        let end = match inside(first) {
            true => rest.find(|c| !inside(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(word)
    })
}

/// Tells characters that stand for words; the ranges are those of the original.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B820..=0x2CEAF | 0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &str, lower_case: bool) -> Result<Vocabulary, VocabularyError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        fs::write(&path, tokens).unwrap();
        Vocabulary::read(&path, lower_case)
    }

    /// Numbers:                0     1     2     3   4     5      6     7 8 9     10
    const TOKENS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n_\n(\ncafe\n\u{4e2d}\n";

    #[test]
    fn a_word_is_its_longest_known_pieces_or_unknown() {
        let vocabulary = vocabulary(TOKENS, true).unwrap();
        for (text, tokens) in [
            ("unaffable", vec![4, 5, 6]),
            ("UNAFFABLE un", vec![4, 5, 6, 4]),
            ("un_un(", vec![4, 7, 4, 8]),
            ("unx un", vec![1, 4]),
            ("Cafe\u{301} caf\u{e9}", vec![9, 9]),
            ("\u{4e2d}\u{4e2d}", vec![10, 10]),
            ("u\0n \u{fffd}\u{7}", vec![4]),
            ("", vec![]),
        ] {
            let found = vocabulary.tokens(text, 64);
            let (first, last) = (found[0], found[found.len() - 1]);
            assert_eq!(
                (first, last, &found[1..found.len() - 1]),
                (2, 3, tokens.as_slice()),
                "{text}"
            );
        }
        let long = "un".repeat(WORD);
        assert_eq!(vocabulary.tokens(&long, 64), [2, 1, 3]);
        assert_eq!(vocabulary.tokens("un un un un", 4), [2, 4, 4, 3]);
    }

    #[test]
    fn case_counts_where_the_model_says_so() {
        let vocabulary = vocabulary(TOKENS, false).unwrap();
        assert_eq!(vocabulary.tokens("un UN", 8), [2, 4, 1, 3]);
    }

    #[test]
    fn a_file_that_is_no_vocabulary_is_refused() {
        assert!(matches!(
            vocabulary("a\nb\n", true),
            Err(VocabularyError::Missing { token: "[UNK]", .. })
        ));
        assert!(matches!(
            Vocabulary::read(Path::new("/dev/zero"), true),
            Err(VocabularyError::NoFile { .. })
        ));
    }
}
