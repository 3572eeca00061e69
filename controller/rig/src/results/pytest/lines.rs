//! The lines of a pytest session, each by itself.

use jig_model::result::CaseStatus;

use super::super::scan::{leading_number, number};

/// Reads the text between two rows of `=`.
pub(super) fn framed(text: &str) -> Option<&str> {
    let inside = text.trim_matches('=');
    let inside = inside.strip_prefix(' ')?.strip_suffix(' ')?;
    (text.starts_with('=') && text.ends_with('=')).then_some(inside)
}

/// How many tests ended in each way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) errors: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.errors += other.errors;
    }

    pub(super) fn all(&self) -> u64 {
        self.kinds().iter().sum()
    }

    /// Returns passes, failures, skipped and errors.
    pub(super) fn kinds(&self) -> [u64; 4] {
        [self.passed, self.failed, self.skipped, self.errors]
    }
}

/// Reads `3 passed, 1 failed, 2 warnings in 0.12s`.
///
/// A passing sub-test is none of the tests that are counted as passed, and a failing one is counted
/// as failed. What plug-ins count beside is left out, unless it tells of failures.
pub(super) fn summary(text: &str) -> Option<Counts> {
    let (counts, time) = text.rsplit_once(" in ")?;
    time.split(' ').next()?.strip_suffix('s')?.parse::<f64>().ok()?;
    let mut summary = Counts::default();
    if counts == "no tests ran" {
        return Some(summary);
    }
    for part in counts.split(", ") {
        let (count, label) = leading_number(part)?;
        match label.strip_prefix(' ')? {
            // An expected failure that passes fails only if strict, and is then called so.
            "passed" | "xpassed" => summary.passed += count,
            "failed" => summary.failed += count,
            "skipped" | "xfailed" => summary.skipped += count,
            "error" | "errors" => summary.errors += count,
            other if other.contains("fail") || other.contains("error") => summary.failed += count,
            _ => {}
        }
    }
    Some(summary)
}

/// Reads `collected 4 items`, `collected 5 items / 1 deselected / 4 selected` and xdist's
/// `2 workers [4 items]`, before version 3 `gw0 [4] / gw1 [4]`.
pub(super) fn collected(text: &str) -> Option<u64> {
    if let Some(rest) = text.strip_prefix("gw0 [") {
        let (count, rest) = leading_number(rest)?;
        return (rest == "]" || rest.starts_with("] / gw1 [")).then_some(count);
    }
    let Some(rest) = text.strip_prefix("collected ") else {
        let (_, rest) = leading_number(text)?;
        let (_, items) = rest.strip_prefix(" worker")?.trim_start_matches('s').split_once(" [")?;
        let (count, unit) = leading_number(items)?;
        return matches!(unit, " item]" | " items]").then_some(count);
    };
    let (count, rest) = leading_number(rest)?;
    let mut parts = rest.split(" / ");
    matches!(parts.next()?, " item" | " items").then_some(())?;
    let selected = parts.filter_map(|part| part.strip_suffix(" selected")).next();
    selected.map_or(Some(count), number)
}

/// Reads how many files could not be collected: `collected 4 items / 1 error`.
pub(super) fn collection_errors(text: &str) -> Option<u64> {
    let (_, rest) = text.strip_prefix("collected ")?.split_once(" / ")?;
    let count = |part: &str| {
        let (count, unit) = leading_number(part)?;
        matches!(unit, " error" | " errors").then_some(count)
    };
    rest.split(" / ").find_map(count)
}

/// A line about one test or sub-test.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestLine<'a> {
    pub(super) name: &'a str,
    pub(super) status: CaseStatus,
    /// A sub-test, as `subTest` makes them: it is counted by itself and is no test.
    pub(super) is_part: bool,
}

/// Outcomes as a verbose session prints them; the longer of two words comes first.
const WORDS: &[(&str, CaseStatus)] = &[
    ("PASSED", CaseStatus::Pass),
    ("FAILED", CaseStatus::Fail),
    ("ERROR", CaseStatus::Fail),
    ("SKIPPED", CaseStatus::Skip),
    ("XFAIL", CaseStatus::Skip),
    ("XPASS", CaseStatus::Pass),
    ("SUBPASSED", CaseStatus::Pass),
    ("SUBPASS", CaseStatus::Pass),
    ("SUBFAILED", CaseStatus::Fail),
    ("SUBFAIL", CaseStatus::Fail),
    ("SUBSKIPPED", CaseStatus::Skip),
    ("SUBSKIP", CaseStatus::Skip),
    ("SUBXFAIL", CaseStatus::Skip),
];

/// Reads `test_x.py::test_y PASSED [ 33%]`, xdist's `[gw0] [ 33%] PASSED test_x.py::test_y`, and of
/// sub-tests `test_x.py::test_y SUBPASSED(i=1) [ 33%]`.
pub(super) fn test_line(text: &str) -> Option<TestLine<'_>> {
    if let Some(rest) = text.strip_prefix("[gw") {
        let (_, rest) = rest.split_once("%] ")?;
        let (word, name) = rest.split_once(' ')?;
        let word = word.split(['(', '[']).next()?;
        let (word, status) = WORDS.iter().find(|(known, _)| *known == word)?;
        let name = name.trim_ascii();
        return names_test(name).then_some(TestLine {
            name,
            status: *status,
            is_part: word.starts_with("SUB"),
        });
    }
    let (file, _) = text.split_once(".py::")?;
    if file.is_empty() || file.contains(' ') {
        return None;
    }
    let mut found = text.match_indices(' ').filter_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let outcome = WORDS.iter().filter_map(|(word, status)| {
            let tail = rest.strip_prefix(word)?.trim_ascii();
            let whole =
                tail.is_empty() || tail.starts_with(['(', '[']) && tail.ends_with([')', ']']);
            whole.then_some((*word, *status))
        });
        Some((at, outcome.max_by_key(|(word, _)| word.len())?))
    });
    let (at, (word, status)) = found.next_back()?;
    let name = text.get(..at)?.trim_ascii_end();
    Some(TestLine { name, status, is_part: word.starts_with("SUB") })
}

fn names_test(name: &str) -> bool {
    name.split_once(".py::").is_some_and(|(file, _)| !file.is_empty() && !file.contains(' '))
}

/// Characters that stand for a test each, in a line such as `test_x.py ..F.s    [ 50%]`, or in one
/// that goes on with them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProgressLine {
    pub(super) counts: Counts,
    /// The name of a file or a percentage stands beside them; alone they may be a test's output.
    pub(super) sure: bool,
}

pub(super) fn progress(text: &str) -> Option<ProgressLine> {
    let percent = text.strip_suffix("%]").and_then(|rest| Some(rest.rsplit_once('[')?.0));
    let body = percent.unwrap_or(text).trim_ascii_end();
    let (marks, named) = match body.rsplit_once(' ') {
        Some((file, marks)) if file.ends_with(".py") && !file.contains(' ') => (marks, true),
        None => (body, false),
        Some(_) => return None,
    };
    let mut counts = Counts::default();
    for mark in marks.bytes() {
        match mark {
            b'.' | b'X' => counts.passed += 1,
            b'F' | b'u' => counts.failed += 1,
            b'E' => counts.errors += 1,
            b's' | b'x' => counts.skipped += 1,
            // Passing and skipped sub-tests, and a test that is run again.
            b',' | b'-' | b'R' => {}
            _ => return None,
        }
    }
    (!marks.is_empty()).then_some(ProgressLine { counts, sure: named || percent.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_read() {
        use CaseStatus::{Fail, Pass, Skip};
        for (text, name, status, is_part) in [
            ("test_x.py::test_y PASSED   [ 33%]", "test_x.py::test_y", Pass, false),
            ("test_x.py::test_y[a b] FAILED [ 33%]", "test_x.py::test_y[a b]", Fail, false),
            ("test_x.py::test_y SKIPPED (no sensor) [9%]", "test_x.py::test_y", Skip, false),
            ("[gw0] [ 33%] PASSED test_x.py::test_y", "test_x.py::test_y", Pass, false),
            ("[gw1] [100%] FAILED a/test_x.py::T::y[1-2]", "a/test_x.py::T::y[1-2]", Fail, false),
            ("test_x.py::test_y SUBPASSED(i=1)   [ 11%]", "test_x.py::test_y", Pass, true),
            (
                "test_x.py::test_y [msg] (i=1) SUBFAIL [9%]",
                "test_x.py::test_y [msg] (i=1)",
                Fail,
                true,
            ),
            ("test_x.py::test_y SUBFAILED[msg] (i=1) [9%]", "test_x.py::test_y", Fail, true),
        ] {
            assert_eq!(test_line(text), Some(TestLine { name, status, is_part }), "{text}");
        }
        for text in ["test_x.py::test_y", "see x.py::y PASSED", "[gw0] linux -- Python", "PASSED"] {
            assert_eq!(test_line(text), None, "{text}");
        }
    }

    #[test]
    fn progress_characters_are_counted() {
        let line = progress("test_x.py ..FsE,u  [ 50%]").unwrap();
        let counts = Counts { passed: 2, failed: 2, skipped: 1, errors: 1 };
        assert_eq!(line, ProgressLine { counts, sure: true });
        assert!(!progress("..E").unwrap().sure);
        assert!(progress("test_x.py ..").unwrap().sure);
        for text in ["hello", "a b ..", "", "test_x.py"] {
            assert_eq!(progress(text), None, "{text}");
        }
    }

    #[test]
    fn summaries_and_collections_are_read() {
        let counts = summary("1 failed, 2 passed, 1 xfailed, 3 subtests passed in 0.12s").unwrap();
        assert_eq!((counts.failed, counts.passed, counts.skipped), (1, 2, 1));
        assert_eq!(summary("1 passed, 2 subtests failed in 0.1s").unwrap().failed, 2);
        assert_eq!(summary("1 passed, 2 snapshots updated in 0.1s").unwrap().passed, 1);
        assert_eq!(summary("settings"), None);
        assert_eq!(collected("2 workers [3 items]"), Some(3));
        assert_eq!(collected("1 worker [1 item]"), Some(1));
        assert_eq!(collected("gw0 [4] / gw1 [4]"), Some(4));
        assert_eq!(collected("gw0 [4] linux"), None);
        assert_eq!(collected("collected 5 items / 1 deselected / 4 selected"), Some(4));
        assert_eq!(collected("collected 5 stamps"), None);
        assert_eq!(collected("collected 4 items / 1 error"), Some(4));
        assert_eq!(collection_errors("collected 4 items / 1 error"), Some(1));
        assert_eq!(collection_errors("collected 4 items / 2 errors / 1 skipped"), Some(2));
        assert_eq!(collection_errors("collected 5 items / 1 deselected / 4 selected"), None);
        assert_eq!(collection_errors("collected 4 items"), None);
    }
}
