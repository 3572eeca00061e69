//! Consoles beside the one that is waited on. Pure.

use std::path::Path;

use jig_model::ConsoleName;
use jig_model::result::CaseStatus;

use super::observation::{ByteRange, ConsoleReport, Observation};

/// Says how to wait on another console.
pub(crate) fn console_advice(console: &ConsoleName) -> String {
    format!("add --console {console}, or console = \"{console}\" in a plan")
}

/// Begins a sentence about a range of a log with the console, if it is not the one of the results.
pub(super) fn on_other_console(seen: &Observation, range: &ByteRange) -> String {
    let (log, results) = (Path::new(&range.file), Path::new(&seen.output.file));
    let known = log.parent() == results.parent() && log != results;
    let console = log.file_stem().filter(|_| known).and_then(|name| name.to_str());
    console.map_or_else(String::new, |console| format!("on console {console}: "))
}

/// Returns the last complete report on a console that the plan does not wait on.
pub(super) fn complete_report(seen: &Observation) -> Option<&ConsoleReport> {
    let mut latest = seen.elsewhere.iter().rev();
    latest.find(|other| {
        let mut cases = other.report.cases.iter();
        other.report.ended && cases.any(|case| case.status != CaseStatus::Unfinished)
    })
}
