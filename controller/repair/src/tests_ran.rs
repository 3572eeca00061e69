//! Whether the tests were executed with a patch, by the coverage of a run without and one with it.
//! Pure.
//!
//! # Design
//! A report can be forged by any code that the patch may change. The files of the tests stay as they
//! are, so what they executed without the patch they execute with it, with one exception: a function
//! that only runs where a test fails. Such a function is named by another one of the tests that did run
//! with the patch, and that came by the place where it names it. A function that was never come to is
//! missing: what would have called it did not run, or never got its control back.
//!
//! Nor may the runner of the tests stop short: where it has executed the last statement of a function
//! without the patch, outside of each test, it comes as far with it, or to a `return` before it. So a
//! report that is forged at the last call of the last test is none of tests that have ended.

use std::collections::{BTreeMap, BTreeSet};

use jig_model::coverage::{CoverageReport, FileCoverage};

use crate::c_text::{Definition, definitions, statements, words};
use crate::localise::SourceLine;
use crate::test_code::plain_name;

/// What is known of the tests of the baseline.
#[derive(Debug, Default)]
pub(crate) struct KnownTests {
    /// Names that their functions may have.
    pub(crate) names: BTreeSet<String>,
    /// Lines that they executed; none where that is not measured.
    pub(crate) lines: BTreeSet<SourceLine>,
}

impl KnownTests {
    /// Tells whether a function of a test file runs tests and is no part of one: it executes no line
    /// within a test, or, where that is not measured, it names a test.
    fn is_runner(&self, name: &str, function: &Definition) -> bool {
        let (first, last) = function.lines;
        let in_test = |line| self.lines.contains(&SourceLine { file: function.file.clone(), line });
        let runs = match self.lines.is_empty() {
            true => function.names.keys().any(|one| self.names.contains(one)),
            false => !(first..=last).any(in_test),
        };
        runs && !self.names.contains(name)
    }
}

/// Lists the functions of test files that were executed without the patch and should have been with it.
/// `sources` are C files without the patch, by the paths that the reports have.
pub(crate) fn missing_tests(
    base: &CoverageReport,
    patched: &CoverageReport,
    sources: &BTreeMap<String, String>,
    is_test: impl Fn(&str) -> bool,
    known: &KnownTests,
) -> Vec<String> {
    let texts = sources;
    let sources = TestSources::read(sources, &is_test);
    let mut missing = Vec::new();
    for file in base.files.iter().filter(|file| is_test(&file.file)) {
        let now = patched.files.iter().find(|now| now.file == file.file);
        let function_now =
            |name: &str| now?.functions.iter().find(|function| function.name == name);
        for function in file.functions.iter().filter(|one| one.executed && !one.after_fault) {
            let ran = match function_now(&function.name) {
                Some(now) => now.executed,
                // A compiler may leave nothing of what it has put into others.
                None => !function.own_code,
            };
            let name = plain_name(&function.name);
            if !ran && !sources.excuse(name, patched) {
                missing.push(format!("{} ({})", function.name, file.file));
            }
            let text = texts.get(&file.file).map_or("", String::as_str);
            let runner = sources.function(name, &file.file);
            let runner = runner.filter(|one| known.is_runner(name, one));
            if ran && runner.is_some_and(|one| stops_short(text, one, &file.executed, now)) {
                missing.push(format!("the end of {} ({})", function.name, file.file));
            }
        }
    }
    missing
}

/// Tells whether a function came to its last statement, and does so no longer.
fn stops_short(
    text: &str,
    function: &Definition,
    before: &[u32],
    now: Option<&FileCoverage>,
) -> bool {
    let all = statements(text, function);
    let executed = |lines: &[u32], (first, last): (u32, u32)| {
        lines.iter().any(|line| (first..=last).contains(line))
    };
    let now = now.map_or(&[][..], |file| &file.executed);
    let returns = |&(first, last): &(u32, u32)| {
        let lines = text.lines().skip(first as usize - 1).take((last - first) as usize + 1);
        lines.flat_map(words).any(|word| word == "return")
    };
    let last = all.iter().rfind(|one| executed(before, **one));
    let ended = |one: &(u32, u32)| executed(now, *one);
    last.is_some_and(|last| !ended(last) && !all.iter().any(|one| returns(one) && ended(one)))
}

/// What the sources say of names.
struct TestSources {
    /// Functions of test files, and all macros.
    definitions: Vec<(String, Definition)>,
    /// Whether each of them is a function of a test file.
    functions: Vec<bool>,
}

impl TestSources {
    fn read(sources: &BTreeMap<String, String>, is_test: impl Fn(&str) -> bool) -> Self {
        let all = sources.iter().flat_map(|(file, text)| definitions(file, text));
        let (mut definitions, mut functions) = (Vec::new(), Vec::new());
        for (name, one) in all {
            let is_function = one.is_code && is_test(&one.file);
            // What the patch may change tells nothing of a call, and a table of functions calls none.
            if is_function || !one.is_code && one.names.keys().next().is_some() {
                functions.push(is_function);
                definitions.push((name, one));
            }
        }
        Self { definitions, functions }
    }

    /// Returns a function of a test file.
    fn function(&self, name: &str, file: &str) -> Option<&Definition> {
        let functions = self.definitions.iter().zip(&self.functions).filter(|(_, yes)| **yes);
        let mut named = functions.map(|((own, one), _)| (own, one));
        named.find(|(own, one)| *own == name && one.file == file).map(|(_, one)| one)
    }

    /// Tells whether a function was come by: another one that leads to it was executed beyond the line
    /// on which it does.
    fn excuse(&self, name: &str, patched: &CoverageReport) -> bool {
        let leading = self.leading_to(name);
        let functions = self.definitions.iter().zip(&self.functions).filter(|(_, yes)| **yes);
        functions.filter(|((own, _), _)| own != name).any(|((_, one), _)| {
            let Some(last) = last_line(one, patched) else { return false };
            let (first_line, last_line) = one.lines;
            one.names.iter().any(|(named, line)| {
                leading.contains(named.as_str()) && (last > *line || first_line == last_line)
            })
        })
    }

    /// Returns a name and all names that lead to it.
    fn leading_to<'n>(&'n self, name: &'n str) -> BTreeSet<&'n str> {
        let mut known = BTreeSet::from([name]);
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for (by, one) in &self.definitions {
                if one.names.contains_key(next) && known.insert(by) {
                    open.push(by);
                }
            }
        }
        known
    }
}

/// Returns the last line of a function that was executed.
fn last_line(function: &Definition, patched: &CoverageReport) -> Option<u32> {
    let file: &FileCoverage = patched.files.iter().find(|file| file.file == function.file)?;
    let (first, last) = function.lines;
    file.executed.iter().copied().filter(|line| (first..=last).contains(line)).max()
}

#[cfg(test)]
mod tests {
    use jig_model::coverage::FunctionCoverage;

    use super::*;

    const RUNNER: &str = "#define CHECK(x) \\\n    do { if (!(x)) check_failed(1); } while (0)\n\
        static void check_failed(int n)\n{\n    print(n);\n}\n\
        static void test_a(void)\n{\n    CHECK(lib(1));\n    lib(2);\n}\n\
        static void test_b(void)\n{\n    lib(3);\n}\n\
        void (*const tests[])(void) = { test_a, test_b };\n\
        void run(void)\n{\n    for (int i = 0; i < 2; i++)\n        tests[i]();\n    print(0);\n}\n";
    const MAIN: &str = "int main(void)\n{\n    run();\n    test_b();\n    for (;;) { }\n}\n";

    const ALL: &[(&str, u32, &[u32])] = &[
        ("check_failed", 3, &[4, 5, 6]),
        ("test_a", 7, &[8, 9, 10, 11]),
        ("test_b", 12, &[13, 14, 15]),
        ("run", 17, &[18, 19, 20, 21, 22]),
    ];

    fn report(executed: &[u32], after_fault: &[&str], gone: &[&str]) -> CoverageReport {
        let functions = ALL.iter().filter(|(name, ..)| !gone.contains(name));
        let functions = functions.map(|(name, line, lines)| FunctionCoverage {
            name: (*name).to_owned(),
            line: *line,
            executed: lines.iter().any(|line| executed.contains(line)),
            own_code: true,
            after_fault: after_fault.contains(name),
        });
        let file = FileCoverage {
            file: "test/t.c".to_owned(),
            lines: (3..23).collect(),
            executed: executed.to_vec(),
            functions: functions.collect(),
        };
        CoverageReport::new(vec![file], Vec::new())
    }

    fn missing(base: &CoverageReport, patched: &CoverageReport) -> Vec<String> {
        let sources = [("test/t.c", RUNNER), ("src/main.c", MAIN)];
        let sources = sources.map(|(file, text)| (file.to_owned(), text.to_owned())).into();
        let line = |line| SourceLine { file: "test/t.c".to_owned(), line };
        let names = ["test_a", "test_b"].map(str::to_owned).into();
        let known = KnownTests { names, lines: (3..17).map(line).collect() };
        missing_tests(base, patched, &sources, |file| file.starts_with("test/"), &known)
    }

    const BASE: &[u32] = &[4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 18, 19, 20, 21, 22];
    const RIGHT: &[u32] = &[8, 9, 10, 11, 13, 14, 15, 18, 19, 20, 21, 22];

    #[test]
    fn a_function_that_reports_failures_need_not_run() {
        let base = report(BASE, &[], &[]);
        assert_eq!(missing(&base, &report(RIGHT, &[], &[])), [""; 0]);
        // One that only the handler of a fault has executed says nothing of the tests.
        let base = report(BASE, &["test_b"], &[]);
        assert_eq!(missing(&base, &report(&[8, 9, 10, 11, 18, 20, 21], &[], &[])), [""; 0]);
    }

    #[test]
    fn tests_that_do_not_run_are_named() {
        let base = report(BASE, &[], &[]);
        let all =
            ["check_failed", "test_a", "test_b", "run"].map(|name| format!("{name} (test/t.c)"));
        // Another main prints the report.
        assert_eq!(missing(&base, &report(&[], &[], &[])), all);
        assert_eq!(missing(&base, &report(&[], &[], &["test_a", "test_b", "run"])), all);
        // The first call of the library prints it, and does not come back.
        let stuck = report(&[8, 9, 18, 19, 20], &[], &[]);
        assert_eq!(missing(&base, &stuck), [&*all[0], &all[2], "the end of run (test/t.c)"]);
        // A later one does: the checks in front of it were come by.
        let stuck = report(&[8, 9, 10, 18, 19, 20], &[], &[]);
        assert_eq!(missing(&base, &stuck), [&*all[2], "the end of run (test/t.c)"]);
        // The last one does: the runner gets its control back no more.
        let stuck = report(&[8, 9, 10, 11, 13, 14, 18, 19, 20], &[], &[]);
        assert_eq!(missing(&base, &stuck), ["the end of run (test/t.c)"]);
    }

    #[test]
    fn a_runner_is_known_by_what_is_measured_or_else_by_the_tests_that_it_names() {
        let all: BTreeMap<_, _> = definitions("test/t.c", RUNNER).into_iter().collect();
        let line = SourceLine { file: "test/t.c".to_owned(), line: 9 };
        let names = ["test_a", "test_b"].map(str::to_owned).into();
        let measured = KnownTests { names, lines: BTreeSet::from([line]) };
        assert!(measured.is_runner("run", &all["run"]));
        assert!(!measured.is_runner("test_a", &all["test_a"]));
        assert!(!measured.is_runner("test_b", &all["test_b"]));
        let main = &definitions("test/main.c", MAIN)[0].1;
        let unmeasured = KnownTests { lines: BTreeSet::new(), ..measured };
        assert!(unmeasured.is_runner("main", main));
        assert!(!unmeasured.is_runner("run", &all["run"]));
        assert!(!KnownTests::default().is_runner("main", main));
    }

    #[test]
    fn what_a_compiler_puts_into_others_may_vanish() {
        let mut base = report(BASE, &[], &[]);
        base.files[0].functions[1].own_code = false;
        let patched = report(RIGHT, &[], &["test_a"]);
        assert_eq!(missing(&base, &patched), [""; 0]);
        base.files[0].functions[1].own_code = true;
        assert_eq!(missing(&base, &patched), ["test_a (test/t.c)"]);
        assert_eq!(plain_name("ring::test_a.constprop.0"), "test_a");
    }
}
