//! Which code decides what a run of the tests says. Pure.
//!
//! # Design
//! A file holds tests where it defines a function named as a case that the target reports: by the names
//! in its source, or by those that the image has, which macros make. Names of folders and files are for
//! the policy's rules; a project that has others is protected by this evidence alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::c_text::function_heads;

/// The code that decides what the tests say, by the paths of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCode {
    /// Files that define reported cases, each with one of them.
    pub files: BTreeMap<String, String>,
}

/// Finds the files that define a reported case. `sources` are C files by their paths, `functions` those
/// that the image has, each with its file.
pub fn test_files<'a>(
    sources: &BTreeMap<String, String>,
    functions: impl Iterator<Item = (&'a String, &'a String)>,
    cases: &BTreeSet<&str>,
) -> BTreeMap<String, String> {
    let mut by_name = BTreeMap::new();
    for case in cases {
        by_name.extend(function_names(case).into_iter().map(|name| (name, *case)));
    }
    let case = |name: &str| by_name.get(name).map(|case| (*case).to_owned());
    let mut found = BTreeMap::new();
    for (file, text) in sources {
        for (name, words) in function_heads(text) {
            // What has no small letter is a macro, and makes a function of the names it is given.
            let is_macro = !name.contains(|c: char| c.is_ascii_lowercase());
            let made = words.last().filter(|_| is_macro).and_then(|word| case(word));
            found.extend(case(&name).or(made).map(|case| (file.clone(), case)));
        }
    }
    for (file, name) in functions {
        found.extend(case(plain_name(name)).map(|case| (file.clone(), case)));
    }
    found
}

/// Lists the names that the function of a case may have: that of its own, or with its suite in front.
fn function_names(case: &str) -> Vec<String> {
    let is_name = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // Frameworks part suite and case by `::` or `.`.
    let last = case.rsplit("::").next().unwrap_or(case);
    let last = last.rsplit('.').next().unwrap_or(last);
    let names = [last.to_owned(), case.replace("::", "_"), case.replace('.', "_")];
    names.into_iter().filter(is_name).collect()
}

/// Returns the name that the source has: without scopes, and without what a compiler adds to a copy.
pub(crate) fn plain_name(name: &str) -> &str {
    let name = name.rsplit("::").next().unwrap_or(name);
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_defines_a_reported_case_holds_tests() {
        let sources = [
            ("src/ring.c", "int ring_put(int v)\n{\n    return test_wraps(v);\n}\n"),
            ("selfcheck/a.c", "int test_wraps(int);\nint test_wraps(int v)\n{\n    return v;\n}\n"),
            ("src/b.cc", "TEST(Ring, Fills)\n{\n}\n"),
            ("src/c.c", "ZTEST(ring, test_empty)\n{\n}\n"),
            ("src/d.c", "void other(int Fills)\n{\n}\n"),
        ];
        let sources = sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
        let functions = [("src/e.c", "ring_test_made.constprop.0"), ("src/f.c", "helper")];
        let functions = functions.map(|(file, name)| (file.to_owned(), name.to_owned()));
        let functions = functions.iter().map(|(file, name)| (file, name));
        let cases = ["test_wraps", "Ring.Fills", "ring::test_empty", "ring::test_made", "a b", ""];
        let found = test_files(&sources, functions, &cases.into());
        let found: Vec<_> = found.iter().map(|(f, case)| (f.as_str(), case.as_str())).collect();
        assert_eq!(
            found,
            [
                ("selfcheck/a.c", "test_wraps"),
                ("src/b.cc", "Ring.Fills"),
                ("src/c.c", "ring::test_empty"),
                ("src/e.c", "ring::test_made"),
            ]
        );
    }
}
