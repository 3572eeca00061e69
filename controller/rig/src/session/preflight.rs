//! A look at the rig before a test: what cannot work costs no time-out and blames no firmware.
//!
//! # Design
//! *The look is beside what a start does anyway*: reading images, making the run's folder. So it
//! opens no port and switches no outlet; the run's own first command tells of these as soon.
//!
//! *A place that is not well is asked itself*, as after a recovery: its emulator is tried, its
//! debug port read. One that is well is not, because that costs more than a short test; nor is
//! one that may not be recovered, because there the test itself names what is wrong.
//!
//! *What passes is not noted.* The end of the run tells the same, and would count twice.

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
use crate::attempt::EventSink as _;
use crate::health::{HealthEvent, HealthState, examine};

/// How long one check may take: all of them read a few files of the kernel's.
const EACH: Duration = Duration::from_secs(5);

/// How long what a run cannot do without is waited for: as long as for what it must write.
///
/// The scripted checks of the tests do not change their mind.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });

/// Pause between two looks.
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

/// What the look found wrong.
#[derive(Default)]
struct Findings {
    must: Vec<Failed>,
    should: Vec<Failed>,
}

/// A look under way; ends when dropped.
pub(super) struct Preflight {
    looking: JoinSet<Findings>,
    /// Whether the rig may be recovered. Once: what breaks again, breaks under the test.
    recovers: bool,
}

impl Preflight {
    /// Begins to look at what the place of a run stands on. Call within a tokio runtime.
    pub(super) fn begin(lab: &dyn LabServices, place: &PlaceName, recovers: bool) -> Self {
        let mut looking = JoinSet::new();
        let checks = lab.start_checks(place);
        if !checks.should.is_empty() {
            looking.spawn(look(checks));
        }
        Self { looking, recovers }
    }

    /// Returns what was found. A look that could not be made has found nothing.
    async fn findings(mut self) -> Findings {
        let looked = self.looking.join_next().await.and_then(Result::ok);
        looked.unwrap_or_default()
    }
}

/// Looks at what should be; where that is not so, at what must be, until that is so.
async fn look(checks: StartChecks) -> Findings {
    let StartChecks { mut should, mut must } = checks;
    let mut should = failed(&mut should).await;
    if should.is_empty() {
        return Findings::default();
    }
    let end = Instant::now() + TIMEOUT;
    let mut must_not = failed(&mut must).await;
    while !must_not.is_empty() && Instant::now() < end {
        sleep(PAUSE).await;
        must_not = failed(&mut must).await;
    }
    // The same shortage is told once.
    should.retain(|one| must_not.iter().all(|other| other.report.check != one.report.check));
    Findings { must: must_not, should }
}

async fn failed(checks: &mut [Box<dyn HealthCheck>]) -> Vec<Failed> {
    let causes: Vec<Cause> = checks.iter().map(|check| check.cause()).collect();
    let reports = causes.into_iter().zip(examine(checks, EACH).await);
    let failed = reports.filter(|(_, report)| !report.ok);
    failed.map(|(cause, report)| Failed { cause, report }).collect()
}

/// Whether the test can be begun.
#[derive(Default)]
pub(super) struct Ready {
    /// What the run's verdict has to tell of the look.
    pub(super) notes: Vec<Note>,
    /// What the run amounts to, if it cannot be begun.
    pub(super) unfit: Option<Verdict>,
    /// Whether a known-good image has passed.
    pub(super) vouched: bool,
}

impl Preflight {
    /// Waits for the look's end, and recovers the rig if the test cannot be begun as it is.
    pub(super) async fn end(self, dut: &mut Dut<'_>) -> Ready {
        let (cancel, recovers) = (dut.cancel.clone(), self.recovers);
        let findings = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ready::default(),
            findings = self.findings() => findings,
        };
        // Asked before what follows is noted: what was just seen needs no second look.
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
        let ready = Ready { notes, ..Ready::default() };
        let missing = findings.must.first().map(|one| (one.cause, one.words()));
        match missing {
            Some((cause, words)) if recovers => prepare(dut, cause, words, ready).await,
            Some((cause, words)) => Ready { unfit: Some(unfit(cause, &words)), ..ready },
            None if ill => match ask(dut).await {
                Err(error) => prepare(dut, Cause::RigUnhealthy, chain(&error), ready).await,
                Ok(()) => ready,
            },
            None => ready,
        }
    }
}

/// Asks the board itself; says what is wrong with it.
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

/// Recovers a rig that no test can be begun on.
async fn prepare(dut: &mut Dut<'_>, cause: Cause, words: String, mut ready: Ready) -> Ready {
    let outcome = dut.recover(cause).await;
    ready.vouched = outcome.vouched;
    match outcome.recovered_by {
        Some(step) => {
            ready.notes.push(Note::RecoveredBeforeTest { step, found: words });
        }
        None if outcome.cancelled => {
            let words = "somebody asked to stop while the rig was recovered";
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
