//! Cuts a line into words, for rules that look at words and what stands between them. Pure.

/// Words of a line that are looked at; a register dump of 32 registers has 64.
const MOST: usize = 80;

/// Longest line of a report.
const LONG: usize = 1024;

/// Most bytes between two blanks that are a word.
const MOST_LETTERS: usize = 256;

/// Longest number that is a count.
const DIGITS: usize = 9;

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

fn inside(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '\'')
}

/// Cuts a text of more words than [`words`] returns into pieces that overlap by half, and a long one also
/// around what is too long for a word and behind verdicts. The first piece begins and the last one ends
/// with the text; a shorter text is one piece.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let parts = if text.len() > LONG { parts(text) } else { vec![text] };
    parts.into_iter().flat_map(pieces_of_words)
}

/// Cuts a long text in front of and behind a word that is none, and behind `: FAIL`: no report has such
/// lines, so what stands behind belongs to something else.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    for word in text.split_inclusive(' ') {
        let start = at;
        at += word.len();
        let joined = text[from..start].trim_end().ends_with([':', '=']);
        if word.len() > MOST_LETTERS {
            parts.extend([&text[from..start], &text[start..at]]);
            from = at;
        } else if joined && matches!(word.trim_end(), "FAIL" | "FAILED" | "FAILURE") {
            parts.push(&text[from..at]);
            from = at;
        }
    }
    parts.push(&text[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn pieces_of_words(text: &str) -> impl Iterator<Item = &str> {
    let mut starts = Vec::new();
    let mut before = false;
    for (at, c) in text.char_indices() {
        if !std::mem::replace(&mut before, inside(c)) && inside(c) {
            starts.push(at);
        }
    }
    let count = 1 + starts.len().saturating_sub(MOST).div_ceil(MOST / 2);
    (0..count).map(move |n| {
        let first = n * MOST / 2;
        let start = if n == 0 { 0 } else { starts[first] };
        let end = starts.get(first + MOST).copied().filter(|_| n + 1 < count);
        &text[start..end.unwrap_or(text.len())]
    })
}

/// Cuts a text into words of letters, digits, `_` and `'`.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
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

/// Returns the number that a word is, if it is one that may count something.
pub(super) fn number(word: &Word<'_>) -> Option<u64> {
    parsed_count(&word.text)
}

/// Reads a number that may count something.
pub(super) fn parsed_count(text: &str) -> Option<u64> {
    if text.len() > DIGITS { None } else { text.parse().ok() }
}

/// Tells whether a word is the name of a test: `memtest`, but not `fastest`.
pub(crate) fn names_test(word: &str) -> bool {
    const OTHERS: &str = "\
        latest fastest greatest shortest lightest brightest hottest wettest softest strictest \
        smartest slightest contest protest attest detest";
    word.ends_with("test") && !listed(OTHERS, word)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_of_a_long_text_is_in_a_piece() {
        for count in [0, 1, 40, 80, 81, 120, 121, 400] {
            let text: String = (0..count).map(|n| format!("w{n} ")).collect();
            let pieces: Vec<_> = pieces(&text).collect();
            assert_eq!(pieces.len() == 1, count <= MOST, "{count}");
            let seen: Vec<_> = pieces.iter().map(|piece| words(piece)).collect();
            for n in 1..count {
                let pair = [format!("w{}", n - 1), format!("w{n}")];
                let holds = |words: &Vec<Word<'_>>| {
                    words.windows(2).any(|two| two[0].text == pair[0] && two[1].text == pair[1])
                };
                assert!(seen.iter().any(holds), "{count} {n}");
            }
            assert!(text.starts_with(pieces[0]) && text.ends_with(pieces[pieces.len() - 1]));
        }
    }
}
