//! Repairing a place without a test: `jig recover`, and whoever keeps a rig.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_model::plan::default_plan;
use jig_model::profile::BoardProfile;
use jig_model::recovery::{RecoveryStep, Rung};
use jig_model::rig_file::{Canary, Place};
use jig_model::{Cause, Verdict};
use tracing::Instrument as _;

use super::dut_recovery::DutRecovery;
use super::lab::{DutSpec, LabServices};
use super::ledger::RunEvents;
use super::recorder::HealthRecorder;
use super::retry_policy::RetryPolicy;
use super::run::{Observer, RunEnvironment, SessionError};
use super::run_driver::{RunDriver, means};
use crate::attempt::RunPatterns;
use crate::recovery::{Proof, StepActions as _, ladder, ladder_timeout};
use crate::store::{NewRun, PlanRecord, RunRecord, SystemClock};
use crate::workflow::CancelToken;

/// Name under which a recovery is recorded in place of a plan.
const PLAN: &str = "recover";

/// Which place to recover, and how.
pub struct RecoverRequest {
    /// The place.
    pub place: Arc<Place>,
    /// Its board.
    pub profile: Arc<BoardProfile>,
    /// The place's known-good image, where somebody declares one; its path resolved.
    pub canary: Option<Canary>,
    /// How far to go.
    pub extent: Extent,
}

/// How far a recovery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The place is only asked whether it works.
    Ask,
    /// It is recovered if it does not prove to work.
    Recover,
    /// Its ladder is run from this step, whether it works or not.
    From(RecoveryStep),
}

/// Returns the ladder of a place as a test would take it, and how long that takes at most.
///
/// `spare` are the places that may stand in for it.
pub(super) fn rungs(
    dut_spec: &DutSpec<'_>,
    spare: &[DutSpec<'_>],
    lab: &dyn LabServices,
    from: Option<RecoveryStep>,
) -> (Vec<Rung>, Duration) {
    let recovery = &dut_spec.profile.recovery;
    let mut rungs = ladder(recovery, &means(dut_spec, spare, lab));
    if let Some(from) = from {
        let start = rungs.iter().position(|rung| rung.step == from);
        rungs.drain(..start.unwrap_or(0));
    }
    let timeout = ladder_timeout(&rungs, recovery.timeout);
    (rungs, timeout)
}

/// Returns the ladder by which a place is recovered without a test: a run could move to another
/// place, but that would not recovery this one.
pub fn recovery_rungs(
    dut_spec: &DutSpec<'_>,
    lab: &dyn LabServices,
    from: Option<RecoveryStep>,
) -> (Vec<Rung>, Duration) {
    let (mut rungs, timeout) = rungs(dut_spec, &[], lab, from);
    for rung in rungs.iter_mut().filter(|rung| rung.step == RecoveryStep::FailOver) {
        rung.skip = Some("a run would move to another place, which recovers nothing".to_owned());
    }
    (rungs, timeout)
}

/// Proves that a place works, or runs its ladder until it does; recorded as a run.
///
/// # Errors
/// The recovery could not be recorded. Whether it helped is in the verdict.
pub async fn recover(
    request: RecoverRequest,
    environment: &RunEnvironment<'_>,
    observer: Arc<dyn Observer>,
    cancel: CancelToken,
) -> Result<RunRecord, SessionError> {
    let RecoverRequest { place, profile, canary, extent } = request;
    // It is this place that is to work again.
    let environment = &RunEnvironment { spare: &[], ..environment.clone() };
    let (factory, outlet) = (environment.factory, environment.outlet);
    let dut_spec = DutSpec { place, profile, factory, outlet, canary };
    let new = NewRun {
        jig_version: environment.version.to_owned(),
        place: Some(dut_spec.place.name.clone()),
        board: Some(dut_spec.profile.id.clone()),
        plan: Some(PlanRecord { name: PLAN.to_owned(), origin: "built-in".to_owned() }),
        images: Vec::new(),
        host: BTreeMap::new(),
    };
    let mut live = environment.store.begin(new, Arc::new(SystemClock::new()))?;
    observer.began(live.id(), live.dir().path());
    let span = tracing::info_span!("recover", trace = %live.id());
    let events = RunEvents::new(&live, &observer);
    let recorder = HealthRecorder::new(environment.health, live.id().clone());
    let from = match extent {
        Extent::From(step) => Some(step),
        Extent::Ask | Extent::Recover => None,
    };
    let (rungs, timeout) = recovery_rungs(&dut_spec, environment.lab, from);
    let patterns = Arc::new(RunPatterns::new(Arc::clone(&dut_spec.profile)));
    let (plan, images) = (default_plan(false, None, Duration::ZERO), BTreeMap::new());
    let mut driver = RunDriver {
        environment,
        dut_spec,
        plan: &plan,
        images: &images,
        live: &mut live,
        patterns,
        events,
        observer,
        cancel,
        retries: RetryPolicy::new(0),
        displaced: false,
        number: 0,
        syncing: Vec::new(),
        recorder: recorder.clone(),
    };
    let verdict = recover_place(&mut driver, &rungs, timeout, extent).instrument(span).await;
    for log in std::mem::take(&mut driver.syncing) {
        // What a recovery printed explains it; that it survives a power cut is not needed.
        let _ = log.done().await;
    }
    Ok(live.finish(verdict)?)
}

async fn recover_place(
    driver: &mut RunDriver<'_>,
    rungs: &[Rung],
    timeout: Duration,
    extent: Extent,
) -> Verdict {
    let mut found = None;
    if !matches!(extent, Extent::From(_)) {
        let Some(proof) = prove(driver).await else { return cancelled() };
        if proof.ok {
            return confirmed(driver, format!("works: {}", proof.detail)).await;
        }
        if extent == Extent::Ask {
            return Verdict::of(Cause::RigUnhealthy, format!("does not work: {}", proof.detail));
        }
        found = Some(format!("before: {}", proof.detail));
    }
    let outcome = driver.run_ladder(Cause::RigUnhealthy, rungs, timeout).await;
    let verdict = match outcome.recovered_by {
        Some(step) => {
            let words = format!("works again, by {step}: {}", outcome.detail);
            confirmed(driver, words).await
        }
        None if outcome.cancelled => cancelled(),
        None => Verdict::of(Cause::RigUnhealthy, format!("not recovered: {}", outcome.detail)),
    };
    Verdict { notes: found.into_iter().chain(verdict.notes).collect(), ..verdict }
}

/// Asks for a proof; nothing if somebody asked to stop meanwhile.
async fn prove(driver: &mut RunDriver<'_>) -> Option<Proof> {
    let cancel = driver.cancel.clone();
    let mut recovery = DutRecovery::new(driver, true);
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        proof = recovery.prove(RecoveryStep::Reopen) => Some(proof),
    }
}

/// Proves it again as often as the place's record asks for, so that it is in service at the end.
async fn confirmed(driver: &mut RunDriver<'_>, words: String) -> Verdict {
    for _ in 0..MOST_PROOFS {
        let health =
            driver.environment.health.and_then(|store| store.of(&driver.dut_spec.place.name).ok());
        if health.is_none_or(|health| health.passes_needed == 0) {
            break;
        }
        match prove(driver).await {
            None => return cancelled(),
            Some(proof) if proof.ok => {}
            Some(proof) => {
                let words = format!("works only now and then: {}", proof.detail);
                return Verdict::of(Cause::RigUnhealthy, words);
            }
        }
    }
    Verdict::of(Cause::ExpectationsMet, words)
}

/// More proofs in a row than any policy asks for.
const MOST_PROOFS: u32 = 20;

fn cancelled() -> Verdict {
    Verdict::of(Cause::Cancelled, "somebody asked to stop")
}
