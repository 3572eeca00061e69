//! Comparison with an earlier result: a regression told from a known failure.

use std::collections::BTreeMap;

use jig_model::result::{CaseStatus, TestReport};
use serde::{Deserialize, Serialize};

use super::ReportError;
use super::json::check_head;

const FORMAT: &str = "jig-baseline";
const VERSION: u32 = 1;

/// An earlier result, by case name: what is kept to compare with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    format: String,
    version: u32,
    /// Status of each case; where a name came several times, the worst.
    pub cases: BTreeMap<String, CaseStatus>,
}

/// Names what changed about a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was good or not run before, and is bad now.
    Regression,
    /// It was bad and is good now.
    Fixed,
    /// It was bad and still is.
    KnownFailure,
    /// It was not known before and ran now.
    New,
    /// It ran before and does not run any more.
    Vanished,
}

/// One case that is worth telling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The case.
    pub name: String,
    /// What changed.
    pub kind: ChangeKind,
    /// How it ended before.
    pub old: Option<CaseStatus>,
    /// How it ended now.
    pub new: Option<CaseStatus>,
}

impl Change {
    /// Tells whether it makes the result worse than the baseline. A case that vanished
    /// does: what no longer runs no longer proves anything.
    pub fn is_worse(&self) -> bool {
        match self.kind {
            ChangeKind::Regression | ChangeKind::Vanished => true,
            ChangeKind::New => self.new.is_some_and(is_bad),
            ChangeKind::Fixed | ChangeKind::KnownFailure => false,
        }
    }
}

impl Baseline {
    /// Keeps what a comparison needs of a report.
    pub fn of(report: &TestReport) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, cases: by_name(report) }
    }

    /// Reads a stored baseline.
    ///
    /// # Errors
    /// Refuses other formats and newer versions.
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        check_head(text, FORMAT, VERSION)?;
        Ok(serde_json::from_str(text)?)
    }

    /// Writes it for storage; cases are sorted, so that it can be kept under version control.
    ///
    /// # Errors
    /// Only a bug can make it fail.
    pub fn to_json(&self) -> Result<String, ReportError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
    }

    /// Compares a new result with this one; see [`compare`].
    pub fn compare(&self, new: &TestReport) -> Vec<Change> {
        changes(&self.cases, &by_name(new))
    }
}

/// Compares two results, by case name and in its order.
///
/// | old \ new | absent | skip | pass | fail, unfinished |
/// |---|---|---|---|---|
/// | absent | - | - | new | new |
/// | skip | - | - | new | regression |
/// | pass | vanished | vanished | - | regression |
/// | fail, unfinished | vanished | vanished | fixed | known failure |
pub fn compare(old: &TestReport, new: &TestReport) -> Vec<Change> {
    changes(&by_name(old), &by_name(new))
}

fn changes(old: &BTreeMap<String, CaseStatus>, new: &BTreeMap<String, CaseStatus>) -> Vec<Change> {
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let (old, new) = (old.get(name).copied(), new.get(name).copied());
            let kind = change(old, new)?;
            Some(Change { name: name.clone(), kind, old, new })
        })
        .collect()
}

fn change(old: Option<CaseStatus>, new: Option<CaseStatus>) -> Option<ChangeKind> {
    use CaseStatus::{Fail, Pass, Skip, Unfinished};
    match (old, new) {
        (None | Some(Skip), None | Some(Skip)) | (Some(Pass), Some(Pass)) => None,
        (None, Some(Pass | Fail | Unfinished)) | (Some(Skip), Some(Pass)) => Some(ChangeKind::New),
        (Some(Skip | Pass), Some(Fail | Unfinished)) => Some(ChangeKind::Regression),
        (Some(Pass | Fail | Unfinished), None | Some(Skip)) => Some(ChangeKind::Vanished),
        (Some(Fail | Unfinished), Some(Pass)) => Some(ChangeKind::Fixed),
        (Some(Fail | Unfinished), Some(Fail | Unfinished)) => Some(ChangeKind::KnownFailure),
    }
}

fn is_bad(status: CaseStatus) -> bool {
    matches!(status, CaseStatus::Fail | CaseStatus::Unfinished)
}

fn by_name(report: &TestReport) -> BTreeMap<String, CaseStatus> {
    let severity = |status: CaseStatus| match status {
        CaseStatus::Skip => 0,
        CaseStatus::Pass => 1,
        CaseStatus::Unfinished => 2,
        CaseStatus::Fail => 3,
    };
    let mut cases = BTreeMap::new();
    for case in &report.cases {
        let known = cases.entry(case.name.clone()).or_insert(case.status);
        if severity(case.status) > severity(*known) {
            *known = case.status;
        }
    }
    cases
}

#[cfg(test)]
mod tests {
    use jig_model::result::TestCase;

    use super::*;

    fn report(cases: &[(&str, CaseStatus)]) -> TestReport {
        let case = |&(name, status): &(&str, CaseStatus)| TestCase {
            name: name.to_owned(),
            status,
            message: None,
            duration_ms: None,
            start: 0,
            end: 0,
        };
        TestReport { cases: cases.iter().map(case).collect(), ..TestReport::default() }
    }

    #[test]
    fn each_change_has_its_name() {
        use CaseStatus::{Fail, Pass, Skip, Unfinished};
        let old = report(&[("a", Pass), ("b", Fail), ("c", Fail), ("d", Pass), ("e", Skip)]);
        let new = report(&[("a", Unfinished), ("b", Pass), ("c", Fail), ("e", Fail), ("f", Fail)]);
        let seen: Vec<_> = compare(&old, &new).into_iter().map(|c| (c.name, c.kind)).collect();
        let expected = [
            ("a", ChangeKind::Regression),
            ("b", ChangeKind::Fixed),
            ("c", ChangeKind::KnownFailure),
            ("d", ChangeKind::Vanished),
            ("e", ChangeKind::Regression),
            ("f", ChangeKind::New),
        ];
        assert_eq!(seen, expected.map(|(name, kind)| (name.to_owned(), kind)));
        let worse: Vec<_> = compare(&old, &new).into_iter().filter(Change::is_worse).collect();
        assert_eq!(worse.len(), 4);
        assert_eq!(compare(&old, &old).len(), 2);
    }

    #[test]
    fn the_worst_of_a_name_counts() {
        let twice = report(&[("a", CaseStatus::Fail), ("a", CaseStatus::Pass)]);
        let baseline = Baseline::of(&twice);
        assert_eq!(baseline.cases.get("a"), Some(&CaseStatus::Fail));
    }

    #[test]
    fn baselines_are_stored_and_newer_ones_refused() {
        let baseline =
            Baseline::of(&report(&[("a", CaseStatus::Pass), ("]]>\n", CaseStatus::Fail)]));
        let text = baseline.to_json().unwrap();
        assert_eq!(Baseline::parse(&text).unwrap(), baseline);
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert!(matches!(Baseline::parse(&newer), Err(ReportError::Newer { found: 2, known: 1 })));
        let other = text.replace(FORMAT, "jig-verdict");
        assert!(matches!(Baseline::parse(&other), Err(ReportError::OtherFormat { .. })));
    }
}
