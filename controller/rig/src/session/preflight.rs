//! Preflight: checks of the rig before a test, so that a broken rig costs no time-out and is not
//! blamed on the firmware.
//!
//! # Design
//! *The checks run while the images are read and the run directory is made*, so they cost no time.
//! They open no port and switch no outlet: the first command of the run reports those failures just
//! as early.
//!
//! *The board of an unhealthy place is checked, too*, as after a recovery: its emulator is started,
//! its debug port read. The board of a healthy place is not, because that costs more than a short
//! test. Nor is it where recovery is not allowed, because there the test itself shows what is
//! wrong.
//!
//! *Passed checks are not recorded in the health store.* The end of the run is, and they would
//! count twice.

use std::sync::Arc;
use std::time::Duration;

use jig_model::protocol::{CheckReport, HealthCheck};
use jig_model::{Cause, Note, PlaceName, RunEvent, Verdict, chain};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::dut::Dut;
use super::environment::{LabServices, StartChecks};
use super::step_outcome::StepError;
use super::steps::{Steps, verdict_of};
use crate::attempt::RunEventSink as _;
use crate::health::{HealthEvent, HealthState, examine};

/// Time-out of one check. Each reads a few files of the kernel.
const EACH: Duration = Duration::from_secs(5);

/// How long preflight waits for the checks in `must` to pass: as long as a run waits for a disk.
///
/// Zero in unit tests, whose checks always give the same answer.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });

/// Pause before checks are made again.
const PAUSE: Duration = Duration::from_millis(100);

/// A check that failed.
struct Failed {
    cause: Cause,
    report: CheckReport,
}

impl Failed {
    fn words(&self) -> String {
        format!("{}: {}", self.report.check, self.report.detail)
    }
}

/// The checks that failed.
#[derive(Default)]
struct FailedChecks {
    must: Vec<Failed>,
    should: Vec<Failed>,
}

/// Checks under way; dropping it ends them.
pub(super) struct Preflight {
    looking: JoinSet<FailedChecks>,
    /// Whether the rig may be recovered, once. If it breaks again, the test shows it.
    recovers: bool,
}

impl Preflight {
    /// Starts the checks of the place of a run. Call within a tokio runtime.
    pub(super) fn begin(lab: &dyn LabServices, place: &PlaceName, recovers: bool) -> Self {
        let mut looking = JoinSet::new();
        let checks = lab.start_checks(place);
        if !checks.should.is_empty() {
            looking.spawn(look(checks));
        }
        Self { looking, recovers }
    }

    /// Returns the checks that failed; none if they could not be made.
    async fn findings(mut self) -> FailedChecks {
        let looked = self.looking.join_next().await.and_then(Result::ok);
        looked.unwrap_or_default()
    }
}

/// Makes the checks in `should`. If one fails, makes those in `must` until they pass or the time is
/// over.
async fn look(checks: StartChecks) -> FailedChecks {
    let StartChecks { mut should, mut must } = checks;
    let mut should = failed(&mut should).await;
    if should.is_empty() {
        return FailedChecks::default();
    }
    let end = Instant::now() + TIMEOUT;
    let mut must_not = failed(&mut must).await;
    while !must_not.is_empty() && Instant::now() < end {
        sleep(PAUSE).await;
        must_not = failed(&mut must).await;
    }
    // The same failure is reported once.
    should.retain(|one| must_not.iter().all(|other| other.report.check != one.report.check));
    FailedChecks { must: must_not, should }
}

async fn failed(checks: &mut [Box<dyn HealthCheck>]) -> Vec<Failed> {
    let causes: Vec<Cause> = checks.iter().map(|check| check.cause()).collect();
    let reports = causes.into_iter().zip(examine(checks, EACH).await);
    let failed = reports.filter(|(_, report)| !report.ok);
    failed.map(|(cause, report)| Failed { cause, report }).collect()
}

/// Result of preflight.
#[derive(Default)]
pub(super) struct PreflightResult {
    /// Notes for the verdict of the run.
    pub(super) notes: Vec<Note>,
    /// Verdict of the run, if the test cannot be begun.
    pub(super) unfit: Option<Verdict>,
    /// Whether a known-good image has passed.
    pub(super) vouched: bool,
}

impl Preflight {
    /// Waits for the end of the checks, and recovers the rig if the test cannot be begun as it is.
    pub(super) async fn end(self, dut: &mut Dut<'_>) -> PreflightResult {
        let (cancel, recovers) = (dut.cancel.clone(), self.recovers);
        let findings = tokio::select! {
            biased;
            () = cancel.cancelled() => return PreflightResult::default(),
            findings = self.findings() => findings,
        };
        // Read before the failed checks are recorded: they alone are no reason to check the board.
        let ill = recovers && dut.health().is_some_and(|now| now.state != HealthState::Healthy);
        let reports: Vec<CheckReport> =
            findings.must.iter().chain(&findings.should).map(|one| one.report.clone()).collect();
        for report in &reports {
            dut.events.emit(RunEvent::Health(report.clone()));
        }
        if !reports.is_empty() {
            dut.recorder.note(dut.place(), &HealthEvent::Checked(reports));
        }
        let notes = findings.should.iter().map(|one| {
            let CheckReport { check, detail, .. } = one.report.clone();
            Note::BeforeTest { check, detail }
        });
        let notes = notes.collect();
        let ready = PreflightResult { notes, ..PreflightResult::default() };
        let missing = findings.must.first().map(|one| (one.cause, one.words()));
        match missing {
            Some((cause, words)) if recovers => prepare(dut, cause, words, ready).await,
            Some((cause, words)) => PreflightResult { unfit: Some(unfit(cause, &words)), ..ready },
            None if ill => match ask(dut).await {
                Err(error) => prepare(dut, Cause::RigUnhealthy, chain(&error), ready).await,
                Ok(()) => ready,
            },
            None => ready,
        }
    }
}

/// Checks the board itself.
async fn ask(dut: &mut Dut<'_>) -> Result<(), StepError> {
    let (cancel, place) = (dut.cancel.clone(), Arc::clone(&dut.spec.place));
    let mut steps = Steps::new(dut, false);
    let reports = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(()),
        reports = steps.examined(&place) => reports?,
    };
    for report in reports.iter().filter(|report| !report.ok) {
        dut.events.emit(RunEvent::Health(report.clone()));
    }
    verdict_of(&reports).map(drop)
}

/// Recovers a rig on which no test can be begun.
async fn prepare(
    dut: &mut Dut<'_>,
    cause: Cause,
    words: String,
    mut ready: PreflightResult,
) -> PreflightResult {
    let outcome = dut.recover(cause).await;
    ready.vouched = outcome.vouched;
    match outcome.recovered_by {
        Some(step) => {
            ready.notes.push(Note::RecoveredBeforeTest { step, found: words });
        }
        None if outcome.cancelled => {
            let words = "a stop was requested while the rig was recovered";
            ready.unfit = Some(Verdict::of(Cause::Cancelled, words));
        }
        None => {
            let mut unfit = unfit(cause, &words);
            unfit.notes.push(Note::NotRecovered { detail: outcome.detail });
            ready.unfit = Some(unfit);
        }
    }
    ready
}

fn unfit(cause: Cause, words: &str) -> Verdict {
    Verdict::of(cause, format!("before the test: {words}"))
}
