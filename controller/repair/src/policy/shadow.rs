//! Macros and files by which a header of a patch could change what tests mean that include it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::directives::{added_directives, directives, without_comments};
use super::file::Policy;
use super::review::is_test;
use crate::c_text::words;
use crate::patch::{FileChange, Patch};

/// Says what a patch changes of the meaning of the tests, if anything: a macro with the name of a word of
/// theirs that was none before, or a file from outside of the repository. `sources` are those of the
/// base.
pub fn shadowed(
    patch: &Patch,
    policy: &Policy,
    sources: &BTreeMap<String, String>,
) -> Option<String> {
    let added: Vec<_> = patch
        .files
        .iter()
        .flat_map(|file| added_directives(file).into_iter().map(move |text| (file, text)))
        .collect();
    // Most patches add none.
    if added.is_empty() {
        return None;
    }
    let tests = sources.iter().filter(|(file, _)| is_test(file, policy));
    let tests: Vec<_> = tests.map(|(file, text)| (file, without_comments(text))).collect();
    let macros: BTreeSet<String> = sources
        .values()
        .flat_map(|text| directives(text))
        .filter_map(|directive| macro_of(&directive).map(str::to_owned))
        .collect();
    added.iter().find_map(|(file, directive)| {
        if leaves(file, directive) {
            return Some(format!("{}: includes a file outside: {directive}", file.path()));
        }
        let name = macro_of(directive).filter(|name| !macros.contains(*name))?;
        let (test, _) = tests.iter().find(|(_, text)| words(text).any(|word| word == name))?;
        Some(format!("{}: makes {name}, a word of {test}, a macro", file.path()))
    })
}

/// Returns the name of the macro that a directive defines or removes.
fn macro_of(directive: &str) -> Option<&str> {
    let rest = ["#define ", "#undef "].iter().find_map(|head| directive.strip_prefix(head))?;
    words(rest).next()
}

/// Tells whether a file is included that lies above the repository as seen from the file that does it.
fn leaves(file: &FileChange, directive: &str) -> bool {
    let Some(rest) = directive.strip_prefix("#include") else { return false };
    let named = rest.trim_start_matches("_next").trim().trim_matches(['"', '<', '>']);
    let mut depth = file.path().split('/').count() - 1;
    named.split('/').any(|part| match part {
        "" | "." => false,
        ".." if depth == 0 => true,
        ".." => {
            depth -= 1;
            false
        }
        _ => {
            depth += 1;
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_macro_with_a_name_that_a_test_has_is_found() {
        let sources = [
            ("src/ring.h", "#define SIZE 8\nint ring_put(int v);\n"),
            ("test/test_ring.c", "/* Wraps. */\nint full = SIZE + ring_put(CHECK);\n"),
        ];
        let sources: BTreeMap<_, _> =
            sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
        let found = |file: &str, line: &str| {
            let text = format!("--- a/{file}\n+++ b/{file}\n@@ -1,1 +1,2 @@\n x\n+{line}\n");
            shadowed(&Patch::read(&text).unwrap(), &Policy::default(), &sources)
        };
        let made = |name: &str| {
            Some(format!("src/ring.h: makes {name}, a word of test/test_ring.c, a macro"))
        };
        assert_eq!(found("src/ring.h", "#define full 1"), made("full"));
        assert_eq!(found("src/ring.h", "#define ring_put(v) 0"), made("ring_put"));
        assert_eq!(found("src/ring.h", "#undef CHECK"), made("CHECK"));
        for line in ["#define SIZE 9", "#define Wraps 1", "#define OTHER full", "int full;"] {
            assert_eq!(found("src/ring.h", line), None, "{line}");
        }
        for (file, line, out) in [
            ("src/ring.h", "#include \"../../x.h\"", true),
            ("ring.h", "#include <a/../../x.h>", true),
            ("src/ring.h", "#include \"../x.h\"", false),
            ("src/ring.h", "#include \"x.h\"", false),
        ] {
            assert_eq!(found(file, line).is_some(), out, "{file} {line}");
        }
    }
}
