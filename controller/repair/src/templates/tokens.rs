//! The tokens of a line of C.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    /// An operator or another mark.
    Mark,
    /// A text, a character, a comment or a directive: never edited.
    Opaque,
}

/// A token and where it stands in its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: Range<usize>,
}

const MARKS: &[&str] = &[
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=",
];

/// Reads the tokens of a line. A line within a comment of several lines is not known as such: the
/// compiler finds no difference, and the candidate is dropped as one that changes nothing.
pub(super) fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    if line.trim_start().starts_with(['#', '*']) {
        return vec![Token { kind: TokenKind::Opaque, text: line, at: 0..line.len() }];
    }
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        let (kind, len) = match first {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '"' | '\'' => (TokenKind::Opaque, quoted(rest, first)),
            '/' if rest.starts_with("//") => (TokenKind::Opaque, rest.len()),
            '/' if rest.starts_with("/*") => {
                (TokenKind::Opaque, rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
            }
            c if c.is_alphabetic() || c == '_' => (TokenKind::Word, word(rest)),
            c if c.is_ascii_digit() => (TokenKind::Number, word(rest)),
            c => {
                let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
                (TokenKind::Mark, mark.map_or(c.len_utf8(), |mark| mark.len()))
            }
        };
        tokens.push(Token { kind, text: &rest[..len], at: at..at + len });
        at += len;
    }
    tokens
}

fn word(rest: &str) -> usize {
    rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).map_or(rest.len(), |end| {
        // A point belongs to a number and not to a word.
        let word = &rest[..end];
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            end
        } else {
            word.find('.').unwrap_or(end)
        }
    })
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    rest.len()
}

/// Returns a line with a part of it replaced.
pub(super) fn replaced(line: &str, at: Range<usize>, text: &str) -> String {
    format!("{}{text}{}", &line[..at.start], &line[at.end..])
}
