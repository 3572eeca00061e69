//! Recovery of a place without a test: `jig recover` and the daemon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_model::recovery::{RecoveryStep, Rung};
use jig_model::{Cause, Note, Verdict};
use tracing::Instrument as _;

use super::dut::Dut;
use super::environment::{DutSpec, LabServices, Observer, RunEnvironment};
use super::run_driver::SessionError;
use super::run_ladder::{StepActions as _, StepProof};
use super::steps::{Steps, rungs};
use crate::store::{NewRun, PlanRecord, RunRecord, SystemClock};
use crate::workflow::CancelToken;

/// Name under which a recovery is recorded in place of a plan.
const PLAN: &str = "recover";

/// How far a recovery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The place is only checked.
    Ask,
    /// The place is recovered unless it is proven to work.
    Recover,
    /// Its ladder is run from this step, whether it works or not.
    From(RecoveryStep),
}

/// Returns the ladder by which a place is recovered without a test: a run could move to another
/// place, but that would not recover this one.
pub fn recovery_rungs(
    spec: &DutSpec<'_>,
    lab: &dyn LabServices,
    from: Option<RecoveryStep>,
) -> (Vec<Rung>, Duration) {
    let (mut rungs, timeout) = rungs(spec, &[], lab, from);
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
    spec: DutSpec<'_>,
    extent: Extent,
    environment: &RunEnvironment<'_>,
    observer: Arc<dyn Observer>,
    cancel: CancelToken,
) -> Result<RunRecord, SessionError> {
    // A move to another place would recover nothing here.
    let environment = &RunEnvironment { spare: &[], ..environment.clone() };
    let new = NewRun {
        jig_version: environment.version.to_owned(),
        place: Some(spec.place.name.clone()),
        board: Some(spec.profile.id.clone()),
        plan: Some(PlanRecord { name: PLAN.to_owned(), origin: "built-in".to_owned() }),
        images: Vec::new(),
        host: BTreeMap::new(),
        identity: None,
        asked: None,
    };
    let live = environment.store.begin(new, Arc::new(SystemClock::new()))?;
    observer.began(live.id(), live.dir().path());
    let span = tracing::info_span!("recover", trace = %live.id());
    let from = match extent {
        Extent::From(step) => Some(step),
        Extent::Ask | Extent::Recover => None,
    };
    let (rungs, timeout) = recovery_rungs(&spec, environment.lab, from);
    let mut dut = Dut::new(environment, spec, live, observer, cancel);
    let verdict = recover_place(&mut dut, &rungs, timeout, extent).instrument(span).await;
    for log in std::mem::take(&mut dut.syncing) {
        // An error is ignored: the logs of a recovery need not survive a power cut.
        let _ = log.done().await;
    }
    Ok(dut.live.finish(verdict)?)
}

async fn recover_place(
    dut: &mut Dut<'_>,
    rungs: &[Rung],
    timeout: Duration,
    extent: Extent,
) -> Verdict {
    let mut found = None;
    if !matches!(extent, Extent::From(_)) {
        let Some(proof) = prove(dut).await else { return cancelled() };
        if proof.ok {
            return confirmed(dut, format!("works: {}", proof.detail)).await;
        }
        if extent == Extent::Ask {
            return Verdict::of(Cause::RigUnhealthy, format!("does not work: {}", proof.detail));
        }
        found = Some(Note::BeforeRecovery { found: proof.detail });
    }
    let outcome = dut.run_ladder(Cause::RigUnhealthy, rungs, timeout).await;
    let verdict = match outcome.recovered_by {
        Some(step) => {
            let words = format!("works again, by {step}: {}", outcome.detail);
            confirmed(dut, words).await
        }
        None if outcome.cancelled => cancelled(),
        None => Verdict::of(Cause::RigUnhealthy, format!("not recovered: {}", outcome.detail)),
    };
    Verdict { notes: found.into_iter().chain(verdict.notes).collect(), ..verdict }
}

/// Asks for a proof; returns none if the recovery is cancelled meanwhile.
async fn prove(dut: &mut Dut<'_>) -> Option<StepProof> {
    let cancel = dut.cancel.clone();
    let mut steps = Steps::new(dut, true);
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        proof = steps.prove(RecoveryStep::Reopen) => Some(proof),
    }
}

/// Repeats the proof as often as the health of the place requires to be in service again.
async fn confirmed(dut: &mut Dut<'_>, words: String) -> Verdict {
    for _ in 0..MOST_PROOFS {
        if dut.health().is_none_or(|health| health.passes_needed == 0) {
            break;
        }
        match prove(dut).await {
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

/// Limit on proofs in a row, above that of every health policy.
const MOST_PROOFS: u32 = 20;

fn cancelled() -> Verdict {
    Verdict::of(Cause::Cancelled, "a stop was requested")
}
