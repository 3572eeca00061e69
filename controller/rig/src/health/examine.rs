//! Running checks.

use std::time::Duration;

use jig_model::protocol::{CheckReport, HealthCheck};

/// Runs checks one after the other and gives each so much time. A check that is not done by
/// then has failed and is dropped.
///
/// One after the other, because several of them may want the same board.
pub async fn examine(checks: &mut [Box<dyn HealthCheck>], each: Duration) -> Vec<CheckReport> {
    let mut reports = Vec::with_capacity(checks.len());
    for check in checks {
        let name = check.name();
        let report = match tokio::time::timeout(each, check.check()).await {
            Ok(report) => report,
            Err(_) => CheckReport {
                check: name,
                ok: false,
                detail: format!("no result within {:.1} s", each.as_secs_f64()),
            },
        };
        reports.push(report);
    }
    reports
}
