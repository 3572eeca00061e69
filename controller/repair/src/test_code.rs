//! Which code decides what a run of the tests says. Pure.
//!
//! # Design
//! A file holds tests where it defines a function named as a case that the target reports: by the names
//! in its source, or by those that the image has, which macros make. Names of folders and files are for
//! the policy's rules; a project that has others is protected by this evidence alone.
//!
//! Results are printed by what the runner of the tests leads to, apart from the tests themselves, and
//! that was executed while no test ran. What a test that passed executed is left out: it is code under
//! test that a fixture calls, too. So the path of results is not known as far as the code under test
//! prints on it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::c_text::{Definition, definitions, function_heads, tokens, words};
use crate::localise::{MeasuredCoverage, SourceLine};
use crate::patch::{FileChange, LineKind, Patch};

/// The code that decides what the tests say, by the paths of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCode {
    /// Files that define reported cases, each with one of them.
    pub files: BTreeMap<String, String>,
    /// Functions by which results are printed, and the macros and variables that they alone name, as
    /// far as it is measured what each test executes.
    #[serde(default)]
    pub printing: Vec<PrintingCode>,
}

/// A function by which results are printed, or a macro or variable that such functions name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintingCode {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its first and last line.
    pub lines: (u32, u32),
}

/// Most of them that are kept. No runner leads to more.
const MAX_PRINTING: usize = 1000;

impl TestCode {
    /// Names code by which results are printed and that a patch changes. Lines of the patch are those of
    /// the base.
    pub fn printing_changed(&self, patch: &Patch) -> Option<&PrintingCode> {
        patch.files.iter().find_map(|file| {
            let changed = changed_lines(file);
            let declared = declared(file);
            let directives = || file.lines().filter(|line| line.text.trim_start().starts_with('#'));
            self.printing.iter().find(|one| {
                let is_changed =
                    |&(before, behind): &(u32, u32)| behind > one.lines.0 && before < one.lines.1;
                let is_own = file.old.as_deref() == Some(&one.file);
                is_own && changed.iter().any(is_changed)
                    || declared.contains(&one.name)
                    || directives().any(|line| {
                        line.kind == LineKind::Added && words(&line.text).any(|w| w == one.name)
                    })
            })
        })
    }

    /// Tells whether a patch changes a file with code by which results are printed.
    pub fn may_print(&self, patch: &Patch) -> bool {
        let old: BTreeSet<_> = patch.files.iter().filter_map(|file| file.old.as_deref()).collect();
        self.printing.iter().any(|one| old.contains(one.file.as_str()))
    }
}

/// Lists the functions that added lines declare or define: a header of the code under test could put
/// one of its own in the place of what prints results.
fn declared(file: &FileChange) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hunk in &file.hunks {
        let new: Vec<_> = hunk.lines.iter().filter(|one| one.kind != LineKind::Removed).collect();
        let text: String = new.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect();
        let tokens = tokens(&text);
        for [(before, _), (name, line), (next, _)] in tokens.array_windows() {
            let added = new.get(*line as usize - 1).is_some_and(|one| one.kind == LineKind::Added);
            let is_word = |word: &str| word.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let behind_type = before == "*" || is_word(before) && !CALLS.contains(&before.as_str());
            if added && next == "(" && is_word(name) && behind_type {
                found.insert(name.clone());
            }
        }
    }
    found
}

/// Words behind which a function is called.
const CALLS: &[&str] = &["return", "else", "do", "case", "goto", "sizeof"];

/// Lists the places of a file that change, each between two lines that stay: a line that is removed is
/// between its neighbours, and one that is added between those where it comes.
fn changed_lines(file: &FileChange) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for hunk in &file.hunks {
        let mut next = hunk.old_start;
        for line in &hunk.lines {
            match line.kind {
                LineKind::Added => found.push((next.saturating_sub(1), next)),
                LineKind::Removed => found.push((next.saturating_sub(1), next + 1)),
                LineKind::Context => {}
            }
            next += u32::from(line.kind != LineKind::Added);
        }
    }
    found
}

/// Finds the code by which results are printed. `is_test` tells which files hold tests, `executed` are
/// the lines that a run of all tests executed.
pub fn printing_code(
    sources: &BTreeMap<String, String>,
    is_test: impl Fn(&str) -> bool,
    cases: &BTreeSet<&str>,
    measured: &MeasuredCoverage,
    executed: &BTreeSet<SourceLine>,
) -> Vec<PrintingCode> {
    let all: Vec<_> = sources.iter().flat_map(|(file, text)| definitions(file, text)).collect();
    let tests: BTreeSet<String> = cases.iter().flat_map(|case| function_names(case)).collect();
    let in_tests: BTreeSet<_> = measured.tests.iter().flat_map(|test| &test.lines).collect();
    let passed = measured.tests.iter().filter(|test| !test.failed);
    let in_passed: BTreeSet<_> = passed.flat_map(|test| &test.lines).collect();
    let lines = |one: &Definition| {
        let line = |line| SourceLine { file: one.file.clone(), line };
        (one.lines.0..=one.lines.1).map(line).filter(|line| executed.contains(line)).collect()
    };
    // The runner: what is in the files of the tests, or names a test, and goes on while none runs.
    let runs = |(name, one): &&(String, Definition)| {
        let own: Vec<SourceLine> = lines(one);
        let names_test = || one.names.keys().any(|name| tests.contains(name));
        !tests.contains(name)
            && (is_test(&one.file) || names_test())
            && (!one.is_code || own.iter().any(|line| !in_tests.contains(line)))
    };
    let mut by_name: BTreeMap<&str, Vec<&Definition>> = BTreeMap::new();
    for (name, one) in &all {
        by_name.entry(name).or_default().push(one);
    }
    let mut open: Vec<&str> = all.iter().filter(runs).map(|(name, _)| name.as_str()).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !tests.contains(name) && by_name.contains_key(name) && reached.insert(name) {
            let names = by_name[name].iter().flat_map(|one| one.names.keys());
            open.extend(names.map(String::as_str));
        }
    }
    let (mut printing, mut others) = (Vec::new(), BTreeSet::new());
    for (name, one) in all.iter().filter(|(_, one)| one.is_code) {
        let own: Vec<SourceLine> = lines(one);
        if own.iter().any(|line| in_passed.contains(line)) {
            others.extend(one.names.keys().map(String::as_str));
        } else if !own.is_empty() && reached.contains(name.as_str()) && !is_test(&one.file) {
            printing.push((name, one));
        }
    }
    let named: BTreeSet<&str> =
        printing.iter().flat_map(|(_, one)| one.names.keys()).map(String::as_str).collect();
    let data = all.iter().filter(|(name, one)| {
        !one.is_code && named.contains(name.as_str()) && !others.contains(name.as_str())
    });
    let code = printing.into_iter().chain(data.map(|(name, one)| (name, one)));
    let code = code.map(|(name, one)| PrintingCode {
        name: name.clone(),
        file: one.file.clone(),
        lines: one.lines,
    });
    code.take(MAX_PRINTING).collect()
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
pub(crate) fn function_names(case: &str) -> Vec<String> {
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
    use crate::localise::TestCoverage;

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

    const UART: &str = "#define DR (*(volatile int *)0x4000)\nint count;\nvoid put(const char *s)\n{\n    \
        while (*s)\n        DR = *s++;\n}\nvoid start(void)\n{\n    main();\n}\n";
    const RING: &str = "int put_ring(int v)\n{\n    return v + count;\n}\n";
    const TEST: &str = "static int test_a(void)\n{\n    return put_ring(1);\n}\n\
        static int test_b(void)\n{\n    return put_ring(2);\n}\n\
        static void fill(void)\n{\n    put_ring(0);\n}\n\
        int main(void)\n{\n    fill();\n    put(test_a() ? \"ok\" : \"no\");\n    put(test_b() ? \"ok\" : \"no\");\n}\n";

    fn printing() -> TestCode {
        let sources = [("uart.c", UART), ("ring.c", RING), ("check.c", TEST)];
        let sources: BTreeMap<_, _> =
            sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
        let line = |file: &str, line| SourceLine { file: file.to_owned(), line };
        let test = |name: &str, failed, own| TestCoverage {
            name: name.to_owned(),
            failed,
            lines: [line("check.c", own), line("ring.c", 3)].into(),
        };
        let tests = vec![test("test_a", false, 3), test("test_b", true, 7)];
        let executed = [("uart.c", [5, 6, 10]), ("ring.c", [3, 3, 3]), ("check.c", [3, 7, 11])];
        let executed = executed.iter().flat_map(|(file, all)| all.iter().map(|&at| line(file, at)));
        let executed = executed.chain((14..18).map(|at| line("check.c", at))).collect();
        let measured = MeasuredCoverage { tests, ..MeasuredCoverage::default() };
        let cases = BTreeSet::from(["test_a", "test_b"]);
        let is_test = |file: &str| file == "check.c";
        let printing = printing_code(&sources, is_test, &cases, &measured, &executed);
        TestCode { printing, ..TestCode::default() }
    }

    #[test]
    fn results_are_printed_by_what_the_runner_leads_to_outside_of_tests() {
        let found = printing().printing;
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.lines)).collect();
        // `put_ring` is called by a fixture and by a test, `start` by nothing.
        assert_eq!(found, [("put", (3, 7)), ("DR", (1, 1))]);
    }

    #[test]
    fn a_patch_of_code_that_prints_results_is_known_by_its_lines() {
        let code = printing();
        let changed = |file: &str, at: u32, body: &str| {
            let old = body.lines().filter(|line| !line.starts_with('+')).count();
            let new = body.lines().filter(|line| !line.starts_with('-')).count();
            let text = format!("--- a/{file}\n+++ b/{file}\n@@ -{at},{old} +{at},{new} @@\n{body}");
            let patch = Patch::read(&text).unwrap();
            code.printing_changed(&patch).map(|one| one.name.clone())
        };
        let put = Some("put".to_owned());
        assert_eq!(changed("uart.c", 4, " {\n+    s += 4;\n     while (*s)\n"), put);
        assert_eq!(changed("uart.c", 6, "-        DR = *s++;\n+        DR = 'o';\n"), put);
        assert_eq!(
            changed("uart.c", 3, "-void put(const char *s)\n+void put2(const char *s)\n"),
            put
        );
        assert_eq!(changed("uart.c", 1, "-#define DR x\n+#define DR y\n"), Some("DR".to_owned()));
        assert_eq!(changed("ring.h", 1, " int x;\n+#define put(s) other(s)\n"), put);
        assert_eq!(changed("ring.h", 1, " int x;\n+void put(const char *);\n"), put);
        assert_eq!(changed("ring.h", 1, " static void\n+put(const char *s)\n"), put);
        for (file, at, body) in [
            ("uart.c", 2, " int count;\n+int more;\n void put(const char *s)\n"),
            ("uart.c", 10, "-    main();\n+    main2();\n"),
            ("ring.c", 3, "-    return v + count;\n+    return v - count;\n"),
            ("ring.c", 3, "-    return v;\n+    put(\"x\");\n"),
            ("ring.c", 3, "-    return v;\n+    if (v) put(\"x\"); else put(\"y\");\n"),
        ] {
            assert_eq!(changed(file, at, body), None, "{file}:{at}");
        }
    }
}
