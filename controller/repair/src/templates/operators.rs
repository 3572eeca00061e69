//! Templates that replace one token or one expression.

use super::edit::{CandidateEdit, Template};
use super::tokens::{Token, TokenKind, replaced, tokens};

/// Marks and what may be meant instead of them.
const MARKS: &[(Template, &str, &[&str])] = &[
    (Template::Relation, "<", &["<=", ">"]),
    (Template::Relation, "<=", &["<", ">="]),
    (Template::Relation, ">", &[">=", "<"]),
    (Template::Relation, ">=", &[">", "<="]),
    (Template::Relation, "==", &["!="]),
    (Template::Relation, "!=", &["=="]),
    (Template::Logic, "&&", &["||", "&"]),
    (Template::Logic, "||", &["&&", "|"]),
    (Template::Mask, "|=", &["&=", "="]),
    (Template::Mask, "&=", &["|=", "&= ~"]),
    (Template::Mask, "^=", &["|=", "&= ~"]),
    (Template::Shift, "<<", &[">>"]),
    (Template::Shift, ">>", &["<<"]),
    (Template::Arithmetic, "+=", &["-=", "="]),
    (Template::Arithmetic, "-=", &["+="]),
    (Template::Arithmetic, "++", &["--"]),
    (Template::Arithmetic, "--", &["++"]),
    (Template::Arithmetic, "/", &["%", "*"]),
    (Template::Arithmetic, "%", &["/", "&"]),
];

/// Marks that mean something else where no value stands in front of them.
const BINARY: &[(Template, &str, &[&str])] = &[
    (Template::Arithmetic, "+", &["-"]),
    (Template::Arithmetic, "-", &["+"]),
    (Template::Arithmetic, "*", &["/"]),
    (Template::Mask, "&", &["|", "&&", "& ~"]),
    (Template::Mask, "|", &["&", "||", "^"]),
    (Template::Mask, "^", &["|", "&"]),
];

/// Types and what may be meant instead of them.
const TYPES: &[(&str, &[&str])] = &[
    ("int8_t", &["int16_t", "uint8_t"]),
    ("uint8_t", &["uint16_t", "uint32_t"]),
    ("int16_t", &["int32_t", "uint16_t"]),
    ("uint16_t", &["uint32_t", "uint8_t"]),
    ("int32_t", &["uint32_t", "int64_t"]),
    ("uint32_t", &["uint64_t", "int32_t", "uint16_t"]),
    ("char", &["signed char", "unsigned char"]),
    ("short", &["int", "unsigned short"]),
    ("int", &["unsigned", "long long"]),
    ("unsigned", &["int", "unsigned long long"]),
    ("size_t", &["int"]),
    ("float", &["double"]),
];

pub(super) fn edits(lines: &[&str], at: usize, edits: &mut Vec<CandidateEdit>) {
    let line = lines[at];
    let tokens = tokens(line);
    for index in 0..tokens.len() {
        let token = &tokens[index];
        let before = index.checked_sub(1).map(|before| &tokens[before]);
        let mut add = |template, text: &str| {
            edits.push(CandidateEdit::line(template, replaced(line, token.at.clone(), text)));
        };
        match token.kind {
            TokenKind::Mark => {
                let known =
                    MARKS.iter().chain(BINARY.iter().filter(|_| before.is_some_and(is_value)));
                for (template, _, others) in known.filter(|(_, mark, _)| *mark == token.text) {
                    others.iter().for_each(|other| add(*template, other));
                }
            }
            TokenKind::Number => number(token, before, &mut add),
            TokenKind::Word => {
                for (_, others) in TYPES.iter().filter(|(name, _)| *name == token.text) {
                    others.iter().for_each(|other| add(Template::Type, other));
                }
            }
            TokenKind::Opaque => {}
        }
    }
    indices(line, &tokens, edits);
    conditions(line, &tokens, edits);
    elapsed(line, &tokens, edits);
}

fn is_value(token: &Token<'_>) -> bool {
    match token.kind {
        TokenKind::Word => !matches!(token.text, "return" | "case" | "sizeof" | "else"),
        TokenKind::Number | TokenKind::Opaque => true,
        TokenKind::Mark => matches!(token.text, ")" | "]"),
    }
}

/// A number one larger or smaller; a mask inverted or shifted.
fn number(token: &Token<'_>, before: Option<&Token<'_>>, add: &mut impl FnMut(Template, &str)) {
    let digits = token.text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = &token.text[digits.len()..];
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let Some(value) = value else { return };
    let written = |value: u64| match hex {
        Some(hex) => format!("0x{value:0width$x}{suffix}", width = hex.len()),
        None => format!("{value}{suffix}"),
    };
    let template = match before.map(|before| before.text) {
        Some("<<" | ">>") => Template::Shift,
        _ => Template::OffByOne,
    };
    if let Some(more) = value.checked_add(1) {
        add(template, &written(more));
    }
    if let Some(less) = value.checked_sub(1) {
        add(template, &written(less));
    }
    if hex.is_some() {
        for other in [value << 1, value >> 1, value << 4, value >> 4] {
            if other != 0 && other != value {
                add(Template::Mask, &written(other));
            }
        }
    }
}

/// `a[i]` with the index before and behind.
fn indices(line: &str, tokens: &[Token<'_>], edits: &mut Vec<CandidateEdit>) {
    let texts = tokens.windows(3);
    for (index, three) in texts.enumerate() {
        if three[0].text == "[" && three[1].kind == TokenKind::Word && three[2].text == "]" {
            let at = tokens[index + 1].at.end;
            for other in [" - 1", " + 1"] {
                edits.push(CandidateEdit::line(Template::OffByOne, replaced(line, at..at, other)));
            }
        }
    }
}

/// The condition of an `if` or a `while` negated; `=` within it for `==`.
fn conditions(line: &str, tokens: &[Token<'_>], edits: &mut Vec<CandidateEdit>) {
    let Some(head) = tokens
        .windows(2)
        .position(|two| matches!(two[0].text, "if" | "while") && two[1].text == "(")
    else {
        return;
    };
    let open = head + 1;
    let Some(close) = closing(tokens, open) else { return };
    let inside = tokens[open].at.end..tokens[close].at.start;
    let negated = format!("!({})", &line[inside.clone()]);
    edits.push(CandidateEdit::line(Template::Logic, replaced(line, inside, &negated)));
    for token in tokens[open..close].iter().filter(|token| token.text == "=") {
        edits.push(CandidateEdit::line(Template::Logic, replaced(line, token.at.clone(), "==")));
    }
}

/// `now >= start + time`, which fails where the sum wraps, as `now - start >= time`.
fn elapsed(line: &str, tokens: &[Token<'_>], edits: &mut Vec<CandidateEdit>) {
    for five in tokens.windows(5) {
        let [now, relation, start, plus, time] = five else { continue };
        let value = |token: &Token<'_>| matches!(token.kind, TokenKind::Word | TokenKind::Number);
        let is = |token: &Token<'_>, marks: &[&str]| marks.contains(&token.text);
        if value(now)
            && value(start)
            && value(time)
            && is(relation, &["<", "<=", ">", ">="])
            && is(plus, &["+"])
        {
            let text = format!("{} - {} {} {}", now.text, start.text, relation.text, time.text);
            let at = now.at.start..time.at.end;
            edits.push(CandidateEdit::line(Template::Wrap, replaced(line, at, &text)));
        }
    }
}

/// Finds the bracket that closes the one at an index.
pub(super) fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 1 => return Some(index),
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}
