//! Which lines of C may hold the fault: by what each test executed where that was measured, and by
//! what each test can reach where it was not. Pure.
//!
//! # Design
//! What a test can reach is told from sources alone. A test is the function of its name; what it
//! reaches is found by the names in it: functions, variables outside of functions, and macros. A call
//! through a pointer is not seen.
//!
//! Lines that were executed by a failed test stand in front of all others, by Ochiai's measure; of
//! equal ones the call graph decides. Variables and macros have no code: they are executed with a line
//! that names them. Code that reports failures goes with them as nothing else does, and follows behind the
//! rest; lines that were not measured are the last, in the order of the call graph.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jig_model::Verdict;
use jig_model::result::CaseStatus;

use crate::c_text::{Definition, definitions, words};
use crate::localise::{
    MeasuredCoverage, RankedSuspect, SourceLine, SuspectLine, SuspectMeasure, TestCoverage, rank,
};

/// The tests of a run by their names, and where its output says that something failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureSeen {
    /// Tests that failed; with suites in front, joined by `::`.
    pub failed: Vec<String>,
    /// Tests that passed.
    pub passed: Vec<String>,
    /// Text of messages and backtraces, such as `ring_put (ring.c:21) <- main`; hostile.
    pub texts: Vec<String>,
}

impl FailureSeen {
    /// Takes out of a verdict what tells where the fault is.
    pub fn of(verdict: &Verdict) -> Self {
        let cases = &verdict.tests.cases;
        let named = |status: &[CaseStatus]| {
            let of_status = cases.iter().filter(|case| status.contains(&case.status));
            of_status.map(|case| case.name.clone()).collect()
        };
        let notes = verdict.evidence.iter().map(|evidence| evidence.note.clone());
        let messages = cases.iter().filter_map(|case| case.message.clone());
        Self {
            failed: named(&[CaseStatus::Fail, CaseStatus::Unfinished]),
            passed: named(&[CaseStatus::Pass]),
            texts: std::iter::once(verdict.summary.clone()).chain(notes).chain(messages).collect(),
        }
    }
}

/// Ranks lines of sources, and returns the first of them. `sources` are C files by their paths;
/// `may_change` tells which of them a patch may change: the others are never suspected. `measured` is
/// what tests executed, if that is known.
pub fn suspects(
    sources: &BTreeMap<String, String>,
    seen: &FailureSeen,
    may_change: impl Fn(&str) -> bool,
    measured: &MeasuredCoverage,
    most: usize,
) -> Vec<RankedSuspect> {
    let mut functions: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for (file, text) in sources {
        for (name, function) in definitions(file, text) {
            functions.entry(name).or_default().push(function);
        }
    }
    let lines = SourceLines::of(sources);
    let is_suspect = |suspect: &SuspectLine| {
        may_change(&suspect.line.file) && is_code(lines.text(&suspect.line).unwrap_or_default())
    };
    let reaching = reaching(&functions, seen, &may_change);
    let mut by_graph = rank(&reaching);
    by_graph.retain(is_suspect);
    let executing = with_data(&functions, &lines, measured);
    let mut by_ochiai = rank(&executing);
    by_ochiai.retain(is_suspect);
    let places: HashMap<&SourceLine, usize> =
        by_graph.iter().zip(0..).map(|(suspect, place)| (&suspect.line, place)).collect();
    let place = |suspect: &SuspectLine| places.get(&suspect.line).copied().unwrap_or(usize::MAX);
    let reporting = reporting(&functions, &lines, seen, &may_change, &executing);
    let reports = |suspect: &SuspectLine| reporting.contains(&suspect.line);
    by_ochiai.sort_by(|a, b| {
        let by_score = reports(a).cmp(&reports(b)).then(b.score.total_cmp(&a.score));
        by_score.then_with(|| place(a).cmp(&place(b)))
    });
    let known: HashSet<&SourceLine> = by_ochiai.iter().map(|suspect| &suspect.line).collect();
    let others = by_graph.iter().filter(|suspect| !known.contains(&suspect.line));
    let mut ranked: Vec<_> = by_ochiai
        .iter()
        .map(|suspect| (suspect, SuspectMeasure::Ochiai))
        .chain(others.map(|suspect| (suspect, SuspectMeasure::CallGraph)))
        .collect();
    let named = named_lines(sources, &seen.texts);
    // What a message or backtrace names comes first, in its order; the sort is stable.
    ranked.sort_by_cached_key(|(suspect, _)| {
        named.iter().position(|line| *line == suspect.line).unwrap_or(usize::MAX)
    });
    let row = |(index, (suspect, measure)): (usize, (&SuspectLine, SuspectMeasure))| {
        let tests = match measure {
            SuspectMeasure::Ochiai => &executing,
            SuspectMeasure::CallGraph => &reaching,
        };
        RankedSuspect::new(index + 1, suspect, measure, tests)
    };
    ranked.into_iter().take(most).enumerate().map(row).collect()
}

/// The lines of sources, by their places.
struct SourceLines<'s>(HashMap<&'s str, Vec<&'s str>>);

impl<'s> SourceLines<'s> {
    fn of(sources: &'s BTreeMap<String, String>) -> Self {
        Self(sources.iter().map(|(file, text)| (file.as_str(), text.lines().collect())).collect())
    }

    fn text(&self, place: &SourceLine) -> Option<&'s str> {
        let index = place.line.checked_sub(1)? as usize;
        self.0.get(place.file.as_str())?.get(index).copied()
    }
}

/// Finds the lines that report failures: what is reached from lines of the tests' support that only
/// failed tests executed. They go with failures as nothing else does, and cause none.
fn reporting(
    functions: &BTreeMap<String, Vec<Definition>>,
    lines: &SourceLines<'_>,
    seen: &FailureSeen,
    may_change: impl Fn(&str) -> bool,
    tests: &[TestCoverage],
) -> BTreeSet<SourceLine> {
    let passed: BTreeSet<_> =
        tests.iter().filter(|test| !test.failed).flat_map(|test| &test.lines).collect();
    let names = seen.failed.iter().chain(&seen.passed).map(|name| last_part(name));
    let own: Vec<_> = names.filter_map(|name| functions.get(name)).flatten().collect();
    let is_own = |line: &SourceLine| {
        let within = |one: &&&Definition| {
            one.file == line.file && (one.lines.0..=one.lines.1).contains(&line.line)
        };
        own.iter().find(within).is_some()
    };
    let mut roots = BTreeSet::new();
    for line in tests.iter().filter(|test| test.failed).flat_map(|test| &test.lines) {
        if may_change(&line.file) || passed.contains(line) || is_own(line) {
            continue;
        }
        roots.extend(lines.text(line).into_iter().flat_map(words));
    }
    let is_code =
        |name: &str| functions.get(name).is_some_and(|all| all.iter().any(|one| one.is_code));
    roots
        .into_iter()
        .filter(|name| is_code(name))
        .flat_map(|name| reached(functions, name))
        .collect()
}

/// Finds out which lines each test can reach.
fn reaching(
    functions: &BTreeMap<String, Vec<Definition>>,
    seen: &FailureSeen,
    may_change: impl Fn(&str) -> bool,
) -> Vec<TestCoverage> {
    let mut tests = Vec::new();
    for (names, failed) in [(&seen.failed, true), (&seen.passed, false)] {
        for name in names {
            let lines = reached(functions, last_part(name));
            tests.push(TestCoverage { name: name.clone(), failed, lines });
        }
    }
    if tests.iter().all(|test| !test.failed || test.lines.is_empty()) {
        // No test is known by its name: what the backtrace names, else the whole program. The innermost
        // function counts twice.
        let named = seen.texts.iter().flat_map(|text| words(text));
        let is_code =
            |name: &str| functions.get(name).is_some_and(|all| all.iter().any(|one| one.is_code));
        let named: Vec<_> = named.filter(|word| is_code(word)).collect();
        let roots = if named.is_empty() { vec!["main"] } else { named };
        let may_hold = |name: &&str| {
            functions.get(*name).into_iter().flatten().any(|function| may_change(&function.file))
        };
        let innermost =
            roots.iter().find(|name| may_hold(name)).map(|name| (*name, reached(functions, name)));
        let all = roots.iter().flat_map(|root| reached(functions, root)).collect();
        let failed =
            |(name, lines): (&str, _)| TestCoverage { name: name.to_owned(), failed: true, lines };
        tests.extend(innermost.into_iter().chain([("the program", all)]).map(failed));
    }
    tests
}

/// Adds the lines that have no code to what tests executed: those of a function, such as declarations,
/// with any line of it, and those of variables and macros with a line that holds the name. Returns
/// nothing where no failed test was measured.
fn with_data(
    functions: &BTreeMap<String, Vec<Definition>>,
    lines: &SourceLines<'_>,
    measured: &MeasuredCoverage,
) -> Vec<TestCoverage> {
    if !measured.tests.iter().any(|test| test.failed && !test.lines.is_empty()) {
        return Vec::new();
    }
    let data = |name: &str| functions.get(name).into_iter().flatten().filter(|one| !one.is_code);
    let mut tests = measured.tests.clone();
    for test in &mut tests {
        let mut found = Vec::new();
        for one in functions.values().flatten().filter(|one| one.is_code) {
            let line = |line| SourceLine { file: one.file.clone(), line };
            let (first, last) = one.lines;
            if test.lines.range(line(first)..=line(last)).next().is_some() {
                let all = (first..=last).map(line);
                found.extend(all.filter(|line| !measured.code.contains(line)));
            }
        }
        let texts = test.lines.iter().filter_map(|place| lines.text(place));
        let mut open: Vec<&str> = texts.flat_map(words).collect();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !known.insert(name) {
                continue;
            }
            for one in data(name) {
                let line = |line| SourceLine { file: one.file.clone(), line };
                found.extend((one.lines.0..=one.lines.1).map(line));
                // A macro may name others.
                open.extend(one.names.keys().map(String::as_str));
            }
        }
        test.lines.extend(found);
    }
    tests
}

/// Returns the lines of all functions that a function reaches, itself included.
fn reached(functions: &BTreeMap<String, Vec<Definition>>, root: &str) -> BTreeSet<SourceLine> {
    let mut open = vec![root];
    let mut known = BTreeSet::from([root]);
    let mut lines = BTreeSet::new();
    while let Some(name) = open.pop() {
        for function in functions.get(name).into_iter().flatten() {
            let (first, last) = function.lines;
            let line = |line| SourceLine { file: function.file.clone(), line };
            lines.extend((first..=last).map(line));
            let next = function.names.keys().map(String::as_str);
            open.extend(next.filter(|name| functions.contains_key(*name) && known.insert(name)));
        }
    }
    lines
}

/// Finds the lines that texts name as `file.c:12`.
fn named_lines(sources: &BTreeMap<String, String>, texts: &[String]) -> Vec<SourceLine> {
    let mut found = Vec::new();
    for text in texts {
        for place in text.split(|c: char| c.is_whitespace() || "()[],;\"'".contains(c)) {
            let mut parts = place.split(':');
            let (Some(path), Some(number)) = (parts.next(), parts.next()) else { continue };
            let Ok(line) = number.parse() else { continue };
            let name = path.rsplit('/').next().unwrap_or(path);
            let file = sources.keys().find(|file| file.rsplit('/').next() == Some(name));
            found.extend(file.map(|file| SourceLine { file: file.clone(), line }));
        }
    }
    found
}

fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Tells whether a line holds more than a brace or a comment.
fn is_code(line: &str) -> bool {
    let line = line.trim();
    !(line.starts_with("//") || line.starts_with('*') || line.starts_with("/*"))
        && line.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RING: &str = "#include \"ring.h\"\n\
        /* put { */\n\
        bool ring_put(struct ring *r, int v)\n{\n    if (full(r)) return false;\n    \
        r->data[r->head++] = v;\n    return true;\n}\n\
        static bool full(struct ring *r)\n{\n    return r->head > 7; // }\n}\n\
        int other(void) { return '{'; }\n";
    const TEST: &str = "void test_wraps(void)\n{\n    ring_put(&r, 1);\n}\n\
        void test_other(void)\n{\n    other();\n}\n";

    fn sources() -> BTreeMap<String, String> {
        [("src/ring.c", RING), ("test/test.c", TEST)]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into()
    }

    fn lines(seen: &FailureSeen) -> Vec<u32> {
        let found = suspects(
            &sources(),
            seen,
            |file| file.starts_with("src/"),
            &MeasuredCoverage::default(),
            99,
        );
        assert!(found.iter().all(|suspect| suspect.file == "src/ring.c"));
        assert!(found.iter().all(|suspect| suspect.measure == SuspectMeasure::CallGraph));
        found.into_iter().map(|suspect| suspect.line).collect()
    }

    #[test]
    fn functions_that_the_failed_test_alone_reaches_are_suspected() {
        let seen = FailureSeen {
            failed: vec!["ring::test_wraps".to_owned()],
            passed: vec!["ring::test_other".to_owned()],
            texts: Vec::new(),
        };
        assert_eq!(lines(&seen), [3, 5, 6, 7, 9, 11]);
    }

    #[test]
    fn a_line_that_the_output_names_comes_first() {
        let seen = FailureSeen {
            failed: vec!["test_wraps".to_owned()],
            passed: Vec::new(),
            texts: vec!["bus fault in ring_put (/build/src/ring.c:6) <- main".to_owned()],
        };
        assert_eq!(lines(&seen)[0], 6);
    }

    #[test]
    fn a_crash_outside_of_a_test_suspects_what_the_backtrace_names() {
        let texts = vec!["HardFault in full <- ring_put".to_owned()];
        let seen = FailureSeen { texts, ..FailureSeen::default() };
        assert_eq!(lines(&seen), [9, 11, 3, 5, 6, 7], "the innermost function comes first");
        assert!(lines(&FailureSeen::default()).is_empty(), "there is no main");
    }

    #[test]
    fn code_that_reports_failures_stands_behind_what_it_reports() {
        let library = "int add(int a)\n{\n    return a + 1;\n}\n\
            void print(int n)\n{\n    put(n);\n}\n";
        let test = "void check(int ok)\n{\n    if (ok)\n        return;\n    print(1);\n}\n\
            void test_a(void)\n{\n    check(add(1) == 3);\n}\n\
            void test_b(void)\n{\n    check(add(0) == 1);\n}\n";
        let sources = [("src/a.c", library), ("test/t.c", test)]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into();
        let seen = FailureSeen {
            failed: vec!["test_a".to_owned()],
            passed: vec!["test_b".to_owned()],
            texts: Vec::new(),
        };
        let places = |all: &[(&str, &[u32])]| -> BTreeSet<_> {
            let of = |(file, lines): &(&str, &[u32])| {
                let line = |&line: &u32| SourceLine { file: (*file).to_owned(), line };
                lines.iter().map(line).collect::<Vec<_>>()
            };
            all.iter().flat_map(of).collect()
        };
        let a = places(&[("src/a.c", &[3, 7]), ("test/t.c", &[3, 5, 9])]);
        let b = places(&[("src/a.c", &[3]), ("test/t.c", &[3, 4, 13])]);
        let code = a.union(&b).cloned().collect();
        let tests = [("test_a", true, a), ("test_b", false, b)]
            .map(|(name, failed, lines)| TestCoverage { name: name.to_owned(), failed, lines });
        let measured = MeasuredCoverage { tests: tests.to_vec(), code };
        let found = suspects(&sources, &seen, |file| file.starts_with("src/"), &measured, 99);
        let lines: Vec<_> = found.iter().map(|one| (one.line, one.score)).collect();
        assert_eq!(lines, [(1, 0.707), (3, 0.707), (5, 1.0), (7, 1.0)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z(){};\"'/*#\\\\\\n ]{0,200}") {
            let sources = BTreeMap::from([("a.c".to_owned(), text)]);
            let seen = FailureSeen { failed: vec!["a".to_owned()], ..FailureSeen::default() };
            let lines = (0..4).map(|line| SourceLine { file: "a.c".to_owned(), line }).collect();
            let test = TestCoverage { name: "a".to_owned(), failed: true, lines };
            let measured = MeasuredCoverage { tests: vec![test], ..MeasuredCoverage::default() };
            suspects(&sources, &seen, |_| true, &measured, 99);
        }
    }

    #[test]
    fn variables_and_macros_that_a_failed_test_reaches_are_suspected() {
        let source = "#define LIMIT 7\n#define OTHER 8\nstatic unsigned passed;\n\
            static unsigned unused = 1;\nvoid step(void);\nstruct s { int passed; };\n\
            void step(void)\n{\n    while (passed < LIMIT) wait();\n}\n";
        let test = "void test_steps(void)\n{\n    step();\n}\n";
        let sources = [("src/a.c", source), ("test/t.c", test)]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into();
        let seen = FailureSeen { failed: vec!["test_steps".to_owned()], ..FailureSeen::default() };
        let found = suspects(
            &sources,
            &seen,
            |file| file.starts_with("src/"),
            &MeasuredCoverage::default(),
            99,
        );
        let lines: Vec<_> = found.into_iter().map(|suspect| suspect.line).collect();
        assert_eq!(lines, [1, 3, 7, 9]);
    }

    #[test]
    fn measured_lines_come_first_and_the_call_graph_breaks_ties() {
        let source = "static int level;\n#define LIMIT 7\n#define OTHER 8\n\
            int near(void)\n{\n    return level;\n}\n\
            int step(int n)\n{\n    if (n > LIMIT)\n        return 1;\n    return OTHER;\n}\n";
        let test = "void test_a(void)\n{\n    step(9);\n    table[0]();\n}\n\
            void test_b(void)\n{\n    step(1);\n}\n";
        let sources = [("src/a.c", source), ("test/t.c", test)]
            .map(|(file, text)| (file.to_owned(), text.to_owned()))
            .into();
        let seen = FailureSeen {
            failed: vec!["test_a".to_owned()],
            passed: vec!["test_b".to_owned()],
            texts: Vec::new(),
        };
        let places = |lines: &[u32]| -> BTreeSet<_> {
            lines.iter().map(|&line| SourceLine { file: "src/a.c".to_owned(), line }).collect()
        };
        let executed = |name: &str, failed, lines: &[u32]| TestCoverage {
            name: name.to_owned(),
            failed,
            lines: places(lines),
        };
        // Lines 5, 7, 9 and 13 hold no code. The test calls `near` by a pointer, which the call graph does not see.
        let tests =
            vec![executed("test_a", true, &[6, 10, 11]), executed("test_b", false, &[10, 12])];
        let mut measured = MeasuredCoverage { tests, code: places(&[4, 6, 8, 10, 11, 12]) };
        let found = suspects(&sources, &seen, |file| file.starts_with("src/"), &measured, 99);
        let shown: Vec<_> = found.iter().map(|one| (one.line, one.measure, one.score)).collect();
        use SuspectMeasure::{CallGraph, Ochiai};
        assert_eq!(
            shown,
            [
                (11, Ochiai, 1.0),
                (1, Ochiai, 1.0),
                (6, Ochiai, 1.0),
                (2, Ochiai, 0.707),
                (10, Ochiai, 0.707),
                (3, CallGraph, 0.707),
                (8, CallGraph, 0.707),
                (12, CallGraph, 0.707),
            ]
        );
        assert_eq!((&*found[0].failed, &*found[0].passed), (&["test_a".to_owned()][..], &[][..]));
        assert_eq!((found[4].failed_count, &*found[4].passed), (1, &["test_b".to_owned()][..]));
        // No failed test was measured: the call graph alone.
        measured.tests.remove(0);
        let found = suspects(&sources, &seen, |file| file.starts_with("src/"), &measured, 2);
        assert!(found.len() == 2 && found.iter().all(|one| one.measure == CallGraph));
    }
}
