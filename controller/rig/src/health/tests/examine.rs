//! Checks that answer, fail and hang.

use std::time::Duration;

use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck};

use super::report;
use crate::health::examine;

struct Fine;

impl HealthCheck for Fine {
    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async { report(true) })
    }
}

/// A check that never ends.
struct Stuck;

impl HealthCheck for Stuck {
    fn name(&self) -> String {
        "stuck".to_owned()
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_has_failed_and_holds_up_no_other() {
    let mut checks: Vec<Box<dyn HealthCheck>> = vec![Box::new(Stuck), Box::new(Fine)];
    let began = tokio::time::Instant::now();
    let reports = examine(&mut checks, Duration::from_secs(5)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(reports.len(), 2);
    assert_eq!((reports[0].check.as_str(), reports[0].ok), ("stuck", false));
    assert_eq!(reports[0].detail, "no result within 5.0 s");
    assert!(reports[1].ok);
}
