//! Cuts a line into words, for rules that look at words and what stands between them. Pure.

/// Words of a line that are looked at; a register dump of 32 registers has 64.
const MOST: usize = 80;

/// A word of a line.
#[derive(Debug)]
pub(super) struct Word<'a> {
    /// In lower case.
    pub(super) text: String,
    /// As it stands in the line.
    pub(super) raw: &'a str,
    /// Whether it is written in capitals.
    pub(super) capital: bool,
    /// What stands between the word before and this one.
    pub(super) before: &'a str,
    /// What stands between this word and the next one, or the end of the line.
    pub(super) after: &'a str,
}

/// Cuts a text into words of letters, digits, `_` and `'`.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '\'');
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(inside).filter(|_| words.len() < MOST) {
        let (before, behind) = rest.split_at(start);
        let len = behind.find(|c| !inside(c)).unwrap_or(behind.len());
        let (word, tail) = behind.split_at(len);
        let after = &tail[..tail.find(inside).unwrap_or(tail.len())];
        let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        words.push(Word {
            text: word.trim_matches('\'').to_ascii_lowercase(),
            raw: word,
            capital: letters > 1 && !word.bytes().any(|b| b.is_ascii_lowercase()),
            before,
            after,
        });
        rest = tail;
    }
    words
}

/// Tells whether a list of words, separated by spaces, holds a word.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// Tells whether a text is a number of value 0, decimal or hexadecimal.
pub(super) fn is_zero(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b == b'0')
}
