//! Puts bugs into C: one token or one statement of one line is changed. Pure.
//!
//! # Design
//! The changes are those of mutation testing (relation, arithmetic, bit and logic operators, constants,
//! a statement that is left out), chosen without a look at what the templates of the repair loop can
//! undo. They are smaller than most bugs that people make.

use crate::dice::TrialDice;

/// Operators and what stands in their place. A longer one comes before its beginnings.
const OPERATORS: &[(&str, Option<&str>)] = &[
    ("->", None),
    ("<<=", None),
    (">>=", None),
    ("++", Some("--")),
    ("--", Some("++")),
    ("+=", Some("-=")),
    ("-=", Some("+=")),
    ("&=", Some("|=")),
    ("|=", Some("&=")),
    ("<<", Some(">>")),
    (">>", Some("<<")),
    ("<=", Some("<")),
    (">=", Some(">")),
    ("==", Some("!=")),
    ("!=", Some("==")),
    ("&&", Some("||")),
    ("||", Some("&&")),
    ("<", Some("<=")),
    (">", Some(">=")),
    (" + ", Some(" - ")),
    (" - ", Some(" + ")),
    (" & ", Some(" | ")),
    (" | ", Some(" & ")),
];

/// A changed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineMutant {
    /// Number of the line, from 1.
    pub(super) line: usize,
    /// The line in its place.
    pub(super) text: String,
}

/// Lists all changes of a source, in the order of its lines.
pub(super) fn mutants(source: &str) -> Vec<LineMutant> {
    let mut found = Vec::new();
    let mut comment = false;
    for (index, line) in source.lines().enumerate() {
        let (code, inside) = code_of(line, comment);
        comment = inside;
        // Code of functions is indented; the rest is types, directives and the heads of functions.
        if !code.starts_with([' ', '\t']) || code.trim_start().starts_with('#') {
            continue;
        }
        let line_number = index + 1;
        let changed =
            changes(code).into_iter().map(|text| format!("{text}{}", &line[code.len()..]));
        found.extend(changed.map(|text| LineMutant { line: line_number, text }));
    }
    found
}

/// Chooses changes at random, at most one a line, until none is left.
pub(super) fn in_random_order(mut all: Vec<LineMutant>, dice: &mut TrialDice) -> Vec<LineMutant> {
    let mut chosen = Vec::new();
    while !all.is_empty() {
        let index = usize::try_from(dice.below(all.len() as u64)).unwrap_or(0);
        let one = all.swap_remove(index);
        all.retain(|other| other.line != one.line);
        chosen.push(one);
    }
    chosen
}

/// Returns a line up to its first comment or text, and whether a comment goes on behind the line.
fn code_of(line: &str, in_comment: bool) -> (&str, bool) {
    if in_comment {
        return ("", !line.contains("*/"));
    }
    let starts = ["/*", "//", "\"", "'"].map(|mark| line.find(mark).unwrap_or(line.len()));
    let end = starts.into_iter().min().unwrap_or(line.len());
    let opened = line.rfind("/*").is_some_and(|at| !line[at..].contains("*/"));
    (&line[..end], opened)
}

fn changes(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some((from, to)) = OPERATORS.iter().find(|(from, _)| rest.starts_with(from)) {
            let behind = &rest[from.len()..];
            found.extend(to.map(|to| format!("{}{to}{behind}", &code[..at])));
            at += from.trim_end().len().max(1);
        } else if rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if let Ok(value) = rest[..end].parse::<u32>() {
                let more = u64::from(value) + 1;
                found.push(format!("{}{more}{}", &code[..at], &rest[end..]));
            }
            at += end;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found.extend(left_out(code));
    found
}

/// Leaves out an assignment or a call that is a line of its own.
fn left_out(code: &str) -> Option<String> {
    let text = code.trim();
    let first: String =
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '*' || c == '+');
    let jumps = ["return", "goto", "break", "continue", "case", "default", "else", "if", "for"];
    let assigns = text.contains('=') && text.split('=').next()?.split_whitespace().count() == 1;
    let calls = text.split('(').next()?.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_one = text.ends_with(';') && text.matches(';').count() == 1;
    (is_one
        && begins
        && !jumps.contains(&first.as_str())
        && (assigns || calls && text.contains('(')))
    .then(|| format!("{};", &code[..code.len() - code.trim_start().len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        mutants(source).into_iter().map(|one| one.text).collect()
    }

    #[test]
    fn operators_constants_and_statements_change_and_nothing_else() {
        assert_eq!(
            texts("    if (a->b <= 8 && c)"),
            ["    if (a->b < 8 && c)", "    if (a->b <= 9 && c)", "    if (a->b <= 8 || c)"]
        );
        assert_eq!(texts("\tx = y;"), ["\t;"]);
        assert_eq!(texts("\tput(y);"), ["\t;"]);
        assert_eq!(texts("\treturn;\n\tint x = y;\n"), [""; 0]);
        assert_eq!(texts("    a = b + 1; /* < 2 */")[0], "    a = b - 1; /* < 2 */");
    }

    #[test]
    fn comments_texts_directives_and_heads_stay() {
        for source in
            ["#if 1 < 2", "int f(int a[3])", "    /* 1 <\n    2 > 1\n*/", "    \"a < 1\";"]
        {
            assert_eq!(texts(source), [""; 0], "{source}");
        }
    }

    #[test]
    fn a_line_is_chosen_once() {
        let all = mutants("  a = b + 1;\n  c = d - 2;\n");
        let chosen = in_random_order(all, &mut TrialDice::new(1, "x"));
        let mut lines: Vec<_> = chosen.iter().map(|one| one.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [1, 2]);
    }
}
