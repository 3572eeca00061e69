//! JUnit XML, as CI services read it.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::text::{cut, one_line};
use super::{ReportError, ReportRow, RowOutcome, RunReport};

/// Longest `message` attribute; the element's text holds the rest.
const MAX_MESSAGE: usize = 500;

/// Writes a run as JUnit XML: `failure` is the target's, `error` the rig's or missing
/// evidence, `flakyFailure` a case that passed in another attempt.
///
/// # Errors
/// Only a bug can make it fail.
pub fn junit(report: &RunReport) -> Result<String, ReportError> {
    let mut suite = TestSuite::new(report.suite.as_str());
    let time = report.duration_ms.map(Duration::from_millis);
    suite.time = time;
    for (name, value) in properties(report) {
        suite.add_property((name.as_str(), value.as_str()));
    }
    let class = match &report.board {
        Some(board) => format!("{}.{board}", report.suite),
        None => report.suite.clone(),
    };
    for row in report.rows() {
        let mut case = TestCase::new(row.name.as_str(), status(report, &row));
        case.set_classname(class.as_str());
        case.time = row.duration_ms.map(Duration::from_millis);
        suite.add_test_case(case);
    }
    if let Some(text) = &report.console_tail {
        suite.set_system_out(text.as_str());
    }
    let mut document = Report::new(report.suite.as_str());
    document.time = time;
    if let Some(stamp) = report.started.and_then(|t| t.to_string().parse().ok()) {
        suite.timestamp = Some(stamp);
        document.timestamp = Some(stamp);
    }
    document.add_test_suite(suite);
    Ok(document.to_string()?)
}

/// Everything that has no place of its own in JUnit.
fn properties(report: &RunReport) -> Vec<(String, String)> {
    let mut all = vec![
        ("jig.verdict".to_owned(), report.verdict.kind.to_string()),
        ("jig.cause".to_owned(), report.verdict.cause.to_string()),
        ("jig.summary".to_owned(), report.verdict.summary.clone()),
        ("jig.exit_code".to_owned(), report.exit_code().to_string()),
    ];
    let named = [("run", &report.run), ("board", &report.board), ("place", &report.place)];
    for (name, value) in named {
        all.extend(value.iter().map(|value| (name.to_owned(), value.clone())));
    }
    let identity = report.identity.as_ref().map(|by| one_line(&by.to_string()));
    all.extend(identity.map(|by| ("jig.identity".to_owned(), by)));
    all.extend(report.properties.iter().cloned());
    for attempt in &report.attempts {
        let note = if attempt.replaced { " (rig recovered, made again)" } else { "" };
        let verdict = &attempt.verdict;
        all.push((
            format!("jig.attempt.{}", attempt.attempt),
            format!("{} {} in {} ms{note}", verdict.kind, verdict.cause, attempt.duration_ms),
        ));
    }
    all
}

fn status(report: &RunReport, row: &ReportRow) -> TestCaseStatus {
    let text = row.message.as_deref().unwrap_or_default();
    let head = one_line(&cut(text.lines().next().unwrap_or_default(), MAX_MESSAGE));
    let cause = report.verdict.cause.as_str();
    let bad = |kind| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(head.as_str()).set_type(cause).set_description(text);
        status
    };
    match row.outcome {
        RowOutcome::Pass => TestCaseStatus::success(),
        RowOutcome::Skip => {
            let mut status = TestCaseStatus::skipped();
            if !head.is_empty() {
                status.set_message(head.as_str());
            }
            status
        }
        RowOutcome::Failure => bad(NonSuccessKind::Failure),
        RowOutcome::Error => bad(NonSuccessKind::Error),
        RowOutcome::Flaky => {
            let mut failed = TestRerun::new(NonSuccessKind::Failure);
            failed.set_message(head.as_str()).set_type(cause).set_description(text);
            let mut status = TestCaseStatus::success();
            status.add_rerun(failed);
            status
        }
    }
}
