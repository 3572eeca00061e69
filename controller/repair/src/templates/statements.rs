//! Templates that change, add or remove a statement.

use super::edit::{CandidateEdit, Template};
use super::tokens::{Token, TokenKind, replaced, tokens};

/// Words with which a declaration can begin.
const TYPE_WORDS: &[&str] = &[
    "int", "char", "short", "long", "unsigned", "signed", "bool", "_Bool", "float", "double",
    "size_t", "struct", "enum", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t",
    "int64_t", "uint64_t",
];

/// How far up the lock of a function is looked for.
const FUNCTION: usize = 60;

pub(super) fn edits(lines: &[&str], at: usize, edits: &mut Vec<CandidateEdit>) {
    let line = lines[at];
    let tokens = tokens(line);
    let Some(first) = tokens.first().filter(|first| first.kind != TokenKind::Opaque) else {
        return;
    };
    let indent = &line[..first.at.start];
    let above = |text: String| vec![format!("{indent}{text}"), line.to_owned()];
    declaration(line, &tokens, edits);
    match first.text {
        "case" | "default" => {
            let lines = above("    break;".to_owned());
            edits.push(CandidateEdit { template: Template::Leave, lines });
        }
        "return" => {
            for unlock in unlocks(lines, at) {
                let lines = above(unlock);
                edits.push(CandidateEdit { template: Template::Unlock, lines });
            }
        }
        _ => {}
    }
    let simple = tokens.last().is_some_and(|last| last.text == ";");
    let control = matches!(first.text, "for" | "return" | "case" | "if" | "while" | "else" | "do");
    if simple && !control && !is_declaration(&tokens) {
        // The line stays as an empty statement: it may be the body of a condition.
        let empty = format!("{indent};");
        edits.push(CandidateEdit::line(Template::Remove, empty));
        let lines = vec![line.to_owned(), format!("{indent}return;")];
        edits.push(CandidateEdit { template: Template::Leave, lines });
    }
}

fn is_declaration(tokens: &[Token<'_>]) -> bool {
    let mut words = tokens.iter().map(|token| token.text);
    let storage =
        |word: &&str| matches!(*word, "static" | "const" | "extern" | "volatile" | "register");
    words
        .find(|word| !storage(word))
        .is_some_and(|word| TYPE_WORDS.contains(&word) || word.ends_with("_t"))
}

/// A declared variable that is read each time, or that has a first value.
fn declaration(line: &str, tokens: &[Token<'_>], edits: &mut Vec<CandidateEdit>) {
    let has = |text: &str| tokens.iter().any(|token| token.text == text);
    if !is_declaration(tokens) || !has(";") || has("(") {
        return;
    }
    if !has("volatile") {
        let behind = |word: &str| tokens.iter().find(|token| token.text == word);
        let at = match behind("extern").or_else(|| behind("static")) {
            Some(storage) => storage.at.end + 1,
            None => tokens[0].at.start,
        };
        let at = at.min(line.len());
        edits.push(CandidateEdit::line(Template::Volatile, replaced(line, at..at, "volatile ")));
    }
    let end = tokens.iter().find(|token| token.text == ";");
    if let Some(end) = end.filter(|_| !has("=") && !has("extern") && !has("[")) {
        let at = end.at.start;
        edits.push(CandidateEdit::line(Template::Initial, replaced(line, at..at, " = 0")));
    }
}

/// Words of calls that take something, and of those that give it back.
const LOCKS: &[(&str, &str)] = &[
    ("lock", "unlock"),
    ("take", "give"),
    ("acquire", "release"),
    ("enter", "exit"),
    ("ENTER", "EXIT"),
    ("disable", "enable"),
    ("begin", "end"),
];

/// Returns the calls that give back what the function has taken above a line.
fn unlocks(lines: &[&str], at: usize) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines[at.saturating_sub(FUNCTION)..at].iter().rev() {
        if line.starts_with('}') {
            break;
        }
        let text = line.trim();
        let Some((name, rest)) = text.split_once('(') else { continue };
        let is_call = name.chars().all(|c| c.is_alphanumeric() || c == '_') && rest.ends_with(");");
        let pair =
            LOCKS.iter().find(|(lock, unlock)| name.contains(lock) && !name.contains(unlock));
        if let Some((lock, unlock)) = pair.filter(|_| is_call) {
            found.push(format!("{}({rest}", name.replacen(lock, unlock, 1)));
        }
    }
    found
}
