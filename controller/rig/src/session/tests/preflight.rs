//! What is looked at before a test, and what comes of it.

use std::sync::Arc;

use jig_model::protocol::{BoxFuture, CheckReport, HealthCheck};
use jig_model::{Cause, VerdictKind};

use super::super::StartChecks;
use super::recoveries::Bind::{self, Says};
use super::recoveries::{Case, green};
use crate::health::{HealthEvent, HealthState};

/// A check of the host that says this.
struct Host(&'static str, bool);

impl HealthCheck for Host {
    fn name(&self) -> String {
        self.0.to_owned()
    }
    fn cause(&self) -> Cause {
        Cause::StorageFailed
    }
    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let (check, ok) = (self.0.to_owned(), self.1);
        Box::pin(async move { CheckReport { check, ok, detail: format!("says {ok}") } })
    }
}

fn checks(must: &[(&'static str, bool)], should: &[(&'static str, bool)]) -> StartChecks {
    let made = |list: &[(&'static str, bool)]| {
        list.iter().map(|&(name, ok)| Box::new(Host(name, ok)) as Box<dyn HealthCheck>).collect()
    };
    StartChecks { must: made(must), should: made(should) }
}

fn with(binds: Vec<Bind>, start: fn() -> StartChecks) -> Case {
    let mut case = Case::of(binds);
    case.lab.start = Some(start);
    case
}

/// A run on a place of which this was noted before.
fn after(event: HealthEvent, mut case: Case) -> Case {
    case.before = vec![event];
    case
}

#[tokio::test]
async fn a_test_that_cannot_work_is_not_begun() {
    let full = || checks(&[("disk", false), ("memory", true)], &[("disk", false)]);
    // The ladder is run in vain: it is the disk that lacks.
    let case = with(vec![Says(false), Says(false)], full);
    let health = Arc::clone(&case.health);
    let record = case.made().await;
    assert!(record.attempts.is_empty(), "{:?}", record.attempts);
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, Cause::StorageFailed));
    assert_eq!(verdict.summary, "before the test: disk: says false");
    assert!(
        verdict.notes[0].to_string().starts_with("the rig was not recovered: "),
        "{:?}",
        verdict.notes
    );
    assert_eq!(health.lock().unwrap().as_ref().unwrap().state, HealthState::Unhealthy);
    // With a limit of 0, there is no recovery.
    let mut case = with(vec![], full);
    case.max_recoveries = 0;
    assert_eq!(case.made().await.verdict.unwrap().cause, Cause::StorageFailed);
}

#[tokio::test]
async fn a_rig_that_is_repaired_before_the_test_has_cost_it_nothing() {
    let record = with(vec![Says(true), green()], || checks(&[("disk", false)], &[("disk", false)]))
        .made()
        .await;
    assert_eq!(record.attempts.len(), 1);
    let verdict = record.verdict.unwrap();
    let told = "the rig was recovered by restart-emulator before the test: disk: says false";
    assert_eq!(verdict.cause, Cause::Passed);
    assert_eq!(verdict.notes, [told]);
}

#[tokio::test]
async fn what_a_run_can_do_without_is_told_and_noted() {
    let case = with(vec![green()], || checks(&[("disk", true)], &[("disk", false)]));
    let health = Arc::clone(&case.health);
    let verdict = case.made().await.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::Passed);
    assert_eq!(verdict.notes, ["before the test: disk: says false"]);
    assert_eq!(health.lock().unwrap().as_ref().unwrap().state, HealthState::Suspect);
    // A look that finds all well notes nothing: the run's end is what is noted.
    let out = HealthEvent::Quarantined { why: "x".to_owned() };
    let case = with(vec![Says(true), green()], || checks(&[("disk", true)], &[("clock", true)]));
    let case = after(out, case);
    let health = Arc::clone(&case.health);
    let verdict = case.made().await.verdict.unwrap();
    assert_eq!((verdict.cause, verdict.notes.len()), (Cause::Passed, 0));
    assert_eq!(health.lock().unwrap().as_ref().unwrap().passes, 0);
}

#[tokio::test]
async fn the_board_of_a_place_that_is_not_well_is_asked_before_the_test() {
    let ill = || {
        let (check, detail) = ("board-answers".to_owned(), "no".to_owned());
        HealthEvent::Checked(vec![CheckReport { check, ok: false, detail }])
    };
    let record = after(ill(), Case::of(vec![Says(true), green()])).made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::Passed);
    // It says no; the ladder helps, and the test has its turn.
    let binds = vec![Says(false), Says(true), green()];
    let verdict = after(ill(), Case::of(binds)).made().await.verdict.unwrap();
    assert_eq!(verdict.cause, Cause::Passed);
    assert!(
        verdict.notes[0].to_string().ends_with("board-answers: says false"),
        "{:?}",
        verdict.notes
    );
    let binds = vec![Says(false), Says(false), Says(false)];
    let record = after(ill(), Case::of(binds)).made().await;
    assert_eq!(record.verdict.unwrap().cause, Cause::RigUnhealthy);
    assert!(record.attempts.is_empty());
}
