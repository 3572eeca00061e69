//! Lines of the C preprocessor in a patch, as the compiler sees them. Pure.
//!
//! Lines that end in a backslash are joined, comments are left out, and other spellings of `#` become
//! one: a rule for directives holds however one is written.

use crate::patch::{FileChange, Hunk, LineKind};

/// Lists the directives that a change adds, each as `#name rest`, as far as its hunks show them.
pub(super) fn added_directives(file: &FileChange) -> Vec<String> {
    let mut added = Vec::new();
    for hunk in &file.hunks {
        let mut before = directives(&side(hunk, LineKind::Removed));
        for directive in directives(&side(hunk, LineKind::Added)) {
            match before.iter().position(|one| *one == directive) {
                Some(at) => drop(before.swap_remove(at)),
                None => added.push(directive),
            }
        }
    }
    added
}

/// Returns the text of a hunk without (`Removed`) or with (`Added`) the change.
fn side(hunk: &Hunk, own: LineKind) -> String {
    let lines = hunk.lines.iter().filter(|one| one.kind == own || one.kind == LineKind::Context);
    lines.flat_map(|line| [line.text.trim_end_matches('\r'), "\n"]).collect()
}

/// Lists the directives of a text, each as `#name rest`.
pub(super) fn directives(text: &str) -> Vec<String> {
    let text = without_comments(&text.replace("??/", "\\").replace("\\\n", ""));
    let directive = |line: &str| {
        let line = line.trim_start();
        let rest = ["#", "%:", "??="].iter().find_map(|mark| line.strip_prefix(mark))?;
        let words: Vec<_> = rest.split_whitespace().collect();
        Some(format!("#{}", words.join(" ")))
    };
    text.lines().filter_map(directive).collect()
}

/// Leaves out comments. What looks like one within a text stays.
pub(super) fn without_comments(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("/*") {
            kept.push(' ');
            let end = rest[2..].find("*/").map(|end| end + 4);
            rest = &rest[end.unwrap_or(rest.len())..];
            continue;
        } else if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        } else if rest.starts_with('/') {
            1
        } else {
            length_of_text(rest)
        };
        kept.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    kept + rest
}

/// Returns the length of a text in quotes; it ends with its line at the latest.
fn length_of_text(text: &str) -> usize {
    let quote = text.chars().next();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if Some(c) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::Patch;

    fn added(lines: &str) -> Vec<String> {
        let (old, new) = (
            lines.lines().filter(|line| !line.starts_with('+')).count(),
            lines.lines().filter(|line| !line.starts_with('-')).count(),
        );
        let text = format!("--- a/a.h\n+++ b/a.h\n@@ -1,{old} +1,{new} @@\n{lines}");
        added_directives(&Patch::read(&text).unwrap().files[0])
    }

    #[test]
    fn a_directive_is_known_in_each_spelling() {
        for (lines, directive) in [
            (" x\n+#define a b\n", "#define a b"),
            (" x\n+  # /* */ define a\tb\n", "#define a b"),
            (" x\n+/* */ #define a b // c\n", "#define a b"),
            (" x\n+#def\\\n+ine a b\n", "#define a b"),
            (" x\n+%:define a b\n", "#define a b"),
            (" x\n+??=define a b\n", "#define a b"),
            (" x\n+#def??/\n+ine a b\n", "#define a b"),
            (" #def\\\n+ine a b\n", "#define a b"),
            (" x\n+#include \"a//b.h\"\n", "#include \"a//b.h\""),
            ("-#define a c\n+#define a b\n", "#define a b"),
        ] {
            assert_eq!(added(lines), [directive], "{lines}");
        }
        for lines in
            [" x\n+y = \"#define a b\";\n", "-#define a b\n+# define a  b\n", " #if A\n+x\n"]
        {
            assert_eq!(added(lines), [""; 0], "{lines}");
        }
    }
}
