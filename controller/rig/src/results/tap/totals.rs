//! Counts that comments give: KTAP's totals, and the trailers of TAP producers.

use jig_model::result::CaseStatus;

use super::super::record::ReportBuilder;
use super::super::scan::number;

/// Results of points or cases.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    passed: u64,
    failed: u64,
    /// Also points that failed as they declare.
    skipped: u64,
}

impl Counts {
    /// Counts the cases from `first` on.
    pub(super) fn of_cases(first: usize, record: &ReportBuilder) -> Self {
        let count = |status| record.count_from(first, status);
        Self {
            passed: count(CaseStatus::Pass),
            failed: count(CaseStatus::Fail),
            skipped: count(CaseStatus::Skip),
        }
    }

    pub(super) fn add(&mut self, status: CaseStatus) {
        match status {
            CaseStatus::Pass => self.passed += 1,
            CaseStatus::Skip => self.skipped += 1,
            CaseStatus::Fail | CaseStatus::Unfinished => self.failed += 1,
        }
    }

    fn all(self) -> u64 {
        self.passed + self.failed + self.skipped
    }
}

/// `Totals: pass:1 fail:0 xfail:0 skip:0 error:0`, or of one suite `list: pass:1 fail:0 total:1`.
pub(super) struct Totals {
    pub(super) of_all: bool,
    /// They stand in a comment of a comment.
    pub(super) quoted: bool,
    pub(super) failed: u64,
    passed: u64,
    skipped: Option<u64>,
    total: Option<u64>,
}

impl Totals {
    pub(super) fn parse(body: &str) -> Option<Self> {
        let (name, counts) = body.split_once(": ")?;
        let (mut passed, mut failed, mut skipped, mut total) = (None, 0, None, None);
        for (label, count) in counts.split(' ').filter_map(|word| word.split_once(':')) {
            match label {
                "pass" => passed = number(count),
                "xpass" => passed = Some(passed? + number(count)?),
                "fail" | "error" => failed += number(count)?,
                "skip" | "xfail" => skipped = Some(skipped.unwrap_or(0) + number(count)?),
                "total" => total = number(count),
                _ => {}
            }
        }
        let (of_all, quoted) = (name == "Totals", name.starts_with('#'));
        Some(Self { of_all, quoted, passed: passed?, failed, skipped, total })
    }

    /// Remarks on totals that equal none of the ways to count what was seen.
    pub(super) fn check(&self, seen: &[Counts], record: &mut ReportBuilder) {
        let agrees = |seen: &&Counts| {
            seen.passed == self.passed
                && self.skipped.is_none_or(|skipped| seen.skipped == skipped)
                && self.total.is_none_or(|total| seen.all() == total)
        };
        if seen.iter().any(|seen| agrees(&seen)) {
            return;
        }
        let Some(first) = seen.first() else { return };
        record.compare("passes", self.passed, first.passed);
        record.compare("skipped", self.skipped.unwrap_or(first.skipped), first.skipped);
        record.compare("cases", self.total.unwrap_or(first.all()), first.all());
    }
}

/// `# tests 3`, `# pass  2`, `# fail  1` and `# skip 0`, which tape and the test runner of Node
/// print behind the last point. Of several the last counts: a comment may look like one.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Trailers {
    tests: Option<u64>,
    passed: Option<u64>,
    failed: Option<u64>,
    skipped: Option<u64>,
    todo: u64,
}

impl Trailers {
    /// Reads the body of a comment; tells whether it is a trailer.
    pub(super) fn line(&mut self, body: &str) -> bool {
        let Some((label, count)) = body.split_once(' ') else { return false };
        let Some(count) = number(count.trim_ascii_start()) else { return false };
        match label {
            "tests" => self.tests = Some(count),
            "pass" => self.passed = Some(count),
            "fail" => self.failed = Some(count),
            "skip" | "skipped" => self.skipped = Some(count),
            "todo" => self.todo = count,
            "cancelled" if count > 0 => self.failed = Some(self.failed.unwrap_or(0) + count),
            _ => return false,
        }
        true
    }

    /// Remarks on trailers that equal none of the ways to count what was seen.
    pub(super) fn check(self, seen: &[Counts], record: &mut ReportBuilder) {
        let Some(first) = seen.first() else { return };
        if let Some(failed) = self.failed
            && failed > 0
            && seen.iter().all(|seen| seen.failed == 0)
        {
            record.claim(failed);
        }
        if let Some(told) = self.tests.filter(|told| !seen.iter().any(|seen| seen.all() == *told)) {
            record.compare("tests", told, first.all());
        }
        // A skip, and a failure that is declared, is a pass to some.
        let passes =
            |seen: &Counts, told| (seen.passed..=seen.passed + seen.skipped).contains(&told);
        if let Some(told) = self.passed.filter(|&told| !seen.iter().any(|s| passes(s, told))) {
            record.compare("passes", told, first.passed);
        }
        let skips = |seen: &Counts, told| (told..=told + self.todo).contains(&seen.skipped);
        if let Some(told) = self.skipped.filter(|&told| !seen.iter().any(|s| skips(s, told))) {
            record.compare("skipped", told, first.skipped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_a_suite_and_of_all_are_read() {
        let totals = Totals::parse("Totals: pass:2 fail:1 xfail:1 xpass:1 skip:2 error:1").unwrap();
        assert!(totals.of_all);
        assert_eq!((totals.passed, totals.failed, totals.skipped), (3, 2, Some(3)));
        let suite = Totals::parse("list: pass:1 fail:0 skip:0 total:1").unwrap();
        assert_eq!((suite.of_all, suite.total), (false, Some(1)));
        assert!(Totals::parse("note: nothing").is_none());
    }

    #[test]
    fn trailers_are_a_word_and_a_count() {
        let mut trailers = Trailers::default();
        for (body, is_one) in [
            ("tests 3", true),
            ("pass  2", true),
            ("fail  1", true),
            ("skipped 0", true),
            ("duration_ms 12", false),
            ("pass the salt", false),
            ("tests", false),
        ] {
            assert_eq!(trailers.line(body), is_one, "{body}");
        }
    }
}
