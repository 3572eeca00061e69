//! The console that should have been waited on. Pure.

use jig_model::ConsoleName;
use jig_model::result::CaseStatus;

use super::observation::{ConsoleReport, Observation};

/// Says how to wait on another console.
pub(crate) fn console_advice(console: &ConsoleName) -> String {
    format!("add --console {console}, or console = \"{console}\" in a plan")
}

/// Returns the last complete report on a console that the plan does not wait on.
pub(super) fn complete_report(seen: &Observation) -> Option<&ConsoleReport> {
    let mut latest = seen.elsewhere.iter().rev();
    latest.find(|other| {
        let mut cases = other.report.cases.iter();
        other.report.ended && cases.any(|case| case.status != CaseStatus::Unfinished)
    })
}
