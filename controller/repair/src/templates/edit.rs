//! An edit of a line, and the diff that it makes.

use std::fmt::Write as _;

jig_model::words! {
    /// Names a template, the likely ones first.
    Template, "template" {
        /// `<` for `<=` and the like.
        Relation = "relation",
        /// A constant or an index that is one too large or too small.
        OffByOne = "off-by-one",
        /// `a - b >= t` for `a >= b + t`.
        Wrap = "unsigned-wrap",
        /// `&&` for `||`, a negated condition, `==` for `=`.
        Logic = "logic",
        /// A mask that is inverted, a bit that is set for one that is cleared.
        Mask = "mask",
        /// A shift by another number or in the other direction.
        Shift = "shift",
        /// `+` for `-` and the like.
        Arithmetic = "arithmetic",
        /// A variable that an interrupt changes is read each time.
        Volatile = "volatile",
        /// Another signedness or width of a type.
        Type = "type",
        /// A variable with a first value.
        Initial = "initial-value",
        /// A lock that is given back before a return.
        Unlock = "unlock",
        /// A `break` in front of the next case, a `return` behind an error.
        Leave = "leave",
        /// A statement that is left out.
        Remove = "remove",
    }
}

/// Other lines for one line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CandidateEdit {
    /// The template.
    pub template: Template,
    /// The lines; none where the line is removed.
    pub lines: Vec<String>,
}

impl CandidateEdit {
    pub(super) fn line(template: Template, line: String) -> Self {
        Self { template, lines: vec![line] }
    }
}

/// Lines of context of a diff.
const CONTEXT: usize = 3;

/// Writes an edit of one line as a unified diff.
pub(super) fn diff(file: &str, source: &str, line: u32, edit: &CandidateEdit) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let at = line as usize - 1;
    let start = at.saturating_sub(CONTEXT);
    let end = (at + 1 + CONTEXT).min(lines.len());
    let (old, new) = (end - start, end - start - 1 + edit.lines.len());
    let mut text = format!("diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n");
    // Writing to a text cannot fail.
    let _ = writeln!(text, "@@ -{},{old} +{},{new} @@", start + 1, start + 1);
    let mut put = |mark: char, number: Option<usize>, line: &str| {
        let _ = writeln!(text, "{mark}{line}");
        let last = number.is_some_and(|number| number + 1 == lines.len());
        if last && !source.ends_with('\n') {
            text.push_str("\\ No newline at end of file\n");
        }
    };
    (start..at).for_each(|number| put(' ', Some(number), lines[number]));
    put('-', Some(at), lines[at]);
    for (index, line) in edit.lines.iter().enumerate() {
        let last = index + 1 == edit.lines.len();
        put('+', last.then_some(at), line);
    }
    (at + 1..end).for_each(|number| put(' ', Some(number), lines[number]));
    text
}
