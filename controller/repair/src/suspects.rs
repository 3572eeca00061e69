//! Which lines of C may hold the fault, told from sources alone: which functions a test can reach.
//! Pure.
//!
//! It stands in for coverage where none was measured. A test is the function of its name; what it
//! reaches is found by the names in it: functions, variables outside of functions, and macros. A call
//! through a pointer is not seen.

use std::collections::{BTreeMap, BTreeSet};

use crate::c_text::{Definition, definitions, words};
use crate::localise::{SourceLine, SuspectLine, TestCoverage, rank};

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

/// Ranks lines of sources. `sources` are C files by their paths; `may_change` tells which of them a
/// patch may change: the others are never suspected.
pub fn suspects(
    sources: &BTreeMap<String, String>,
    seen: &FailureSeen,
    may_change: impl Fn(&str) -> bool,
) -> Vec<SuspectLine> {
    let mut functions: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for (file, text) in sources {
        for (name, function) in definitions(file, text) {
            functions.entry(name).or_default().push(function);
        }
    }
    let mut tests = Vec::new();
    for (names, failed) in [(&seen.failed, true), (&seen.passed, false)] {
        for name in names {
            let lines = reached(&functions, last_part(name));
            tests.push(TestCoverage { failed, lines });
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
            roots.iter().find(|name| may_hold(name)).map(|name| reached(&functions, name));
        let all = roots.iter().flat_map(|root| reached(&functions, root)).collect();
        let failed = |lines| TestCoverage { failed: true, lines };
        tests.extend(innermost.into_iter().chain([all]).map(failed));
    }
    let mut ranked: Vec<_> = rank(&tests)
        .into_iter()
        .filter(|suspect| may_change(&suspect.line.file))
        .filter(|suspect| is_code(sources, &suspect.line))
        .collect();
    let named = named_lines(sources, &seen.texts);
    // What a message or backtrace names comes first, in its order; the sort is stable.
    let place = |suspect: &SuspectLine| {
        named.iter().position(|line| *line == suspect.line).unwrap_or(usize::MAX)
    };
    ranked.sort_by_key(place);
    ranked
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
fn is_code(sources: &BTreeMap<String, String>, place: &SourceLine) -> bool {
    let text = sources.get(&place.file);
    let line = text.and_then(|text| text.lines().nth(place.line as usize - 1)).unwrap_or("");
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
        let found = suspects(&sources(), seen, |file| file.starts_with("src/"));
        assert!(found.iter().all(|suspect| suspect.line.file == "src/ring.c"));
        found.into_iter().map(|suspect| suspect.line.line).collect()
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

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z(){};\"'/*#\\\\\\n ]{0,200}") {
            let sources = BTreeMap::from([("a.c".to_owned(), text)]);
            let seen = FailureSeen { failed: vec!["a".to_owned()], ..FailureSeen::default() };
            suspects(&sources, &seen, |_| true);
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
        let found = suspects(&sources, &seen, |file| file.starts_with("src/"));
        let lines: Vec<_> = found.into_iter().map(|suspect| suspect.line.line).collect();
        assert_eq!(lines, [1, 3, 7, 9]);
    }
}
