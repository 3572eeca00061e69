//! What is said of each test case, once for all formats.

use std::collections::BTreeMap;

use jig_model::result::{CaseStatus, TestCase};
use jig_model::{Cause, VerdictKind};

use super::RunReport;

/// Says how a report shows a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowOutcome {
    /// Good.
    Pass,
    /// Not run.
    Skip,
    /// The target failed.
    Failure,
    /// The rig failed, evidence is missing, or the run was called off.
    Error,
    /// Good in some attempts, bad in others.
    Flaky,
}

/// One line of a report: a test case, or the plan itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportRow {
    /// The case's name, or the plan's.
    pub name: String,
    /// How it is shown.
    pub outcome: RowOutcome,
    /// Why, on one or more lines.
    pub message: Option<String>,
    /// How long it took, where the target says so.
    pub duration_ms: Option<u64>,
    /// Whether it stands for the plan instead of a test case.
    pub whole_plan: bool,
}

impl RunReport {
    /// Returns the rows of the report.
    ///
    /// | verdict | case passed | skipped | failed | unfinished | if no row is bad |
    /// |---|---|---|---|---|---|
    /// | pass | pass | skip | - | - | - |
    /// | fail | pass | skip | failure | failure | one failure for the plan |
    /// | flaky | pass | skip | flaky | flaky | one flaky for the plan |
    /// | the others | pass | skip | error | error | one error for the plan |
    ///
    /// A failed case of a run that proves nothing is an error and not a failure: blaming
    /// the target is up to the verdict. A pass without cases has one good row for the
    /// plan, because an empty report counts as trouble with many readers.
    pub fn rows(&self) -> Vec<ReportRow> {
        let bad = bad_outcome(self.verdict.kind);
        let mut rows: Vec<ReportRow> = match self.verdict.kind {
            VerdictKind::Flaky => self.rows_of_all_attempts(),
            VerdictKind::Pass
            | VerdictKind::Fail
            | VerdictKind::EnvError
            | VerdictKind::Inconclusive
            | VerdictKind::Cancelled => {
                self.verdict.tests.cases.iter().map(|case| row(self, case)).collect()
            }
        };
        let shown = rows.iter().any(|row| row.outcome == bad);
        if !shown && (rows.is_empty() || bad != RowOutcome::Pass) {
            rows.push(ReportRow {
                name: named(&self.suite),
                outcome: bad,
                message: (bad != RowOutcome::Pass)
                    .then(|| format!("{}: {}", self.verdict.cause, self.verdict.summary)),
                duration_ms: self.duration_ms,
                whole_plan: true,
            });
        }
        rows
    }

    /// A flaky run's case list: those of the verdict, then those that only other attempts
    /// had; each as bad as it ever was.
    fn rows_of_all_attempts(&self) -> Vec<ReportRow> {
        let counted = self.attempts.iter().filter(|a| !a.replaced).map(|a| &a.verdict.tests);
        let mut rows: Vec<ReportRow> = Vec::new();
        // Per attempt a name may repeat; the n-th of a name is the n-th in all of them.
        let mut known: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for tests in std::iter::once(&self.verdict.tests).chain(counted) {
            let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
            for case in &tests.cases {
                let nth = seen.entry(&case.name).or_default();
                let fresh = row(self, case);
                let at = *known.entry((case.name.clone(), *nth)).or_insert(rows.len());
                *nth += 1;
                match rows.get_mut(at) {
                    None => rows.push(fresh),
                    Some(old) if rank(fresh.outcome) > rank(old.outcome) => *old = fresh,
                    Some(_) => {}
                }
            }
        }
        rows
    }
}

/// What a verdict makes of what went wrong.
fn bad_outcome(kind: VerdictKind) -> RowOutcome {
    match kind {
        VerdictKind::Pass => RowOutcome::Pass,
        VerdictKind::Fail => RowOutcome::Failure,
        VerdictKind::Flaky => RowOutcome::Flaky,
        VerdictKind::EnvError | VerdictKind::Inconclusive | VerdictKind::Cancelled => {
            RowOutcome::Error
        }
    }
}

fn rank(outcome: RowOutcome) -> u8 {
    match outcome {
        RowOutcome::Skip => 0,
        RowOutcome::Pass => 1,
        RowOutcome::Flaky | RowOutcome::Failure | RowOutcome::Error => 2,
    }
}

fn row(report: &RunReport, case: &TestCase) -> ReportRow {
    let verdict = &report.verdict;
    let outcome = match case.status {
        CaseStatus::Pass => RowOutcome::Pass,
        CaseStatus::Skip => RowOutcome::Skip,
        CaseStatus::Fail | CaseStatus::Unfinished => bad_outcome(verdict.kind),
    };
    let own = case.message.clone().filter(|text| !text.is_empty());
    let message = match (case.status, outcome) {
        (CaseStatus::Unfinished, _) => {
            Some(format!("began and never ended; the run: {}: {}", verdict.cause, verdict.summary))
        }
        (CaseStatus::Fail, RowOutcome::Error) => {
            let own = own.map(|text| format!("\n{text}")).unwrap_or_default();
            Some(format!(
                "reported failed, but the run proves nothing: {}: {}{own}",
                verdict.cause, verdict.summary
            ))
        }
        (CaseStatus::Fail, _) => {
            let own = own.unwrap_or_else(|| "failed; the target says no more".into());
            // Something worse may have happened beside it; a case that was cut short says so.
            let told = matches!(verdict.cause, Cause::TestFailed | Cause::Flaky)
                || verdict.tests.count(CaseStatus::Unfinished) > 0;
            let worse =
                (!told).then(|| format!("\nthe run: {}: {}", verdict.cause, verdict.summary));
            Some(own + &worse.unwrap_or_default())
        }
        (CaseStatus::Pass | CaseStatus::Skip, _) => own,
    };
    ReportRow {
        name: named(&case.name),
        outcome,
        message,
        duration_ms: case.duration_ms,
        whole_plan: false,
    }
}

/// Readers drop or merge cases without a name.
fn named(name: &str) -> String {
    if name.is_empty() { "(no name)".to_owned() } else { name.to_owned() }
}
