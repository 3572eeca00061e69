//! Runs the recovery ladder: one step after the other, until one is proven to have helped.

use std::time::Duration;

use jig_model::protocol::BoxFuture;
use jig_model::recovery::{RecoveryEvent, RecoveryStep, Rung};
use jig_model::{Cause, chain};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ladder::millis;
use super::step_outcome::{StepDone, StepError};
use crate::workflow::CancelToken;

/// Answer of a rig to the question whether it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StepProof {
    /// Whether it works.
    pub(super) ok: bool,
    /// What proves it, or what is still wrong; may quote devices.
    pub(super) detail: String,
}

/// Takes the steps and asks for the proofs.
///
/// Both futures are dropped when their time is over or the run is cancelled; a step that is
/// repeated must complete what a dropped one left half done.
pub(super) trait StepActions: Send {
    /// Takes a step; says what was done, or why it failed.
    fn act(&mut self, step: RecoveryStep) -> BoxFuture<'_, Result<StepDone, StepError>>;
    /// Proves that the rig works after it.
    fn prove(&mut self, step: RecoveryStep) -> BoxFuture<'_, StepProof>;
    /// Returns the pause after which a step whose proof failed is taken again, if it may help then.
    /// `spent` is the time that the step and its proofs have taken so far.
    fn again(&self, step: RecoveryStep, spent: Duration) -> Option<Duration>;
    /// Records an event of the ladder.
    fn tell(&mut self, event: RecoveryEvent);
}

/// How a ladder ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LadderOutcome {
    /// The step that recovered, if one did.
    pub(super) recovered_by: Option<RecoveryStep>,
    /// One line for people: what helped, or what is wrong at the end.
    pub(super) detail: String,
    /// How long it took.
    pub(super) took: Duration,
    /// Whether the known-good image passed meanwhile, here or as a step.
    pub(super) vouched: bool,
    /// Whether the run was cancelled.
    pub(super) cancelled: bool,
}

/// Longest time for a proof, within that of the whole ladder: a known-good image on a slow board.
const PROOF: Duration = Duration::from_secs(90);

/// Returns how long a ladder takes at most: the sum of its steps and proofs, or the time-out of the
/// ladder if that is less.
pub(super) fn ladder_timeout(rungs: &[Rung], timeout: Duration) -> Duration {
    let taken = rungs.iter().filter(|rung| rung.skip.is_none());
    let longest = taken.map(|rung| {
        let proof = if rung.step == RecoveryStep::OutOfService { Duration::ZERO } else { PROOF };
        Duration::from_millis(rung.budget_ms).saturating_add(proof)
    });
    longest.fold(Duration::ZERO, Duration::saturating_add).min(timeout)
}

/// Takes steps until one is proven to have recovered the rig, the ladder or the time is over, or
/// the run is cancelled.
pub(super) async fn run_ladder(
    cause: Cause,
    rungs: &[Rung],
    timeout: Duration,
    dut_recovery: &mut dyn StepActions,
    cancel: &CancelToken,
) -> LadderOutcome {
    let began = Instant::now();
    let end = began + timeout;
    dut_recovery.tell(RecoveryEvent::Began {
        cause,
        ladder: rungs.to_vec(),
        timeout_ms: millis(timeout),
    });
    let mut recovered_by = None;
    let mut cancelled = false;
    let mut found = false;
    let mut detail = "no step of the ladder can be taken at this place".to_owned();
    let mut rungs = rungs.iter().filter(|rung| rung.skip.is_none());
    let mut next = rungs.next().map(|rung| (rung, Instant::now()));
    while let Some((rung, first)) = next {
        if Instant::now() >= end {
            detail = format!("the time for it ({timeout:?}) was over; last: {detail}");
            break;
        }
        let since = Instant::now();
        dut_recovery.tell(RecoveryEvent::Step { step: rung.step });
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                cancelled = true;
                Taken { asked: true, proof: no(&StepError::Cancelled) }
            }
            taken = take(rung, end, dut_recovery) => taken,
        };
        let Taken { asked, proof } = taken;
        dut_recovery.tell(RecoveryEvent::Proof {
            step: rung.step,
            ok: proof.ok,
            detail: proof.detail.clone(),
            took_ms: millis(since.elapsed()),
        });
        if asked || !found {
            // The answer of the rig explains more than the error of a step.
            detail = proof.detail;
            found |= asked;
        }
        if proof.ok {
            recovered_by = Some(rung.step);
        }
        if proof.ok || cancelled {
            break;
        }
        let pause = dut_recovery.again(rung.step, first.elapsed()).filter(|_| asked);
        next = match pause {
            None => rungs.next().map(|rung| (rung, Instant::now())),
            Some(pause) => {
                // A cancellation during the pause takes effect at the next step.
                tokio::select! {
                    () = cancel.cancelled() => {}
                    () = sleep_until(end.min(Instant::now() + pause)) => {}
                }
                Some((rung, first))
            }
        };
    }
    let took = began.elapsed();
    dut_recovery.tell(RecoveryEvent::Ended {
        recovered_by,
        took_ms: millis(took),
        detail: detail.clone(),
    });
    LadderOutcome { recovered_by, detail, took, vouched: false, cancelled }
}

/// A step that was taken.
struct Taken {
    /// Whether the rig was asked for a proof.
    asked: bool,
    proof: StepProof,
}

fn no(error: &StepError) -> StepProof {
    StepProof { ok: false, detail: chain(error) }
}

/// Takes one step and asks for its proof.
async fn take(rung: &Rung, end: Instant, dut_recovery: &mut dyn StepActions) -> Taken {
    let step = rung.step;
    let until = end.min(Instant::now() + Duration::from_millis(rung.budget_ms));
    let done = match timeout_at(until, dut_recovery.act(step)).await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => return Taken { asked: false, proof: no(&error) },
        Err(_) => return Taken { asked: false, proof: no(&StepError::Overdue { step }) },
    };
    if step == RecoveryStep::OutOfService {
        // Out of service recovers nothing, so it needs no proof.
        let detail = done.to_string();
        return Taken { asked: false, proof: StepProof { ok: false, detail } };
    }
    let until = end.min(Instant::now() + PROOF);
    let proof = match timeout_at(until, dut_recovery.prove(step)).await {
        Ok(proof) => StepProof { detail: format!("{done}; {}", proof.detail), ..proof },
        Err(_) => StepProof { ok: false, detail: format!("{done}; the proof took too long") },
    };
    Taken { asked: true, proof }
}

#[cfg(test)]
mod tests {
    use jig_model::recovery::Recovery;

    use super::*;
    use crate::session::ladder::{Means, ladder};

    /// A rig that one step recovers, of which some fail or hang.
    #[derive(Default)]
    struct Patient {
        recovered_by: Option<RecoveryStep>,
        fails: Vec<RecoveryStep>,
        hangs: Vec<RecoveryStep>,
        proof_hangs: bool,
        /// Waiting helps, if it lasts this long.
        wait_timeout: Option<Duration>,
        told: Vec<RecoveryEvent>,
        done: Vec<RecoveryStep>,
        stop_at: Option<(RecoveryStep, CancelToken)>,
    }

    impl StepActions for Patient {
        fn act(&mut self, step: RecoveryStep) -> BoxFuture<'_, Result<StepDone, StepError>> {
            Box::pin(async move {
                assert_eq!(self.told.last(), Some(&RecoveryEvent::Step { step }), "told first");
                self.done.push(step);
                if let Some((_, token)) = self.stop_at.as_ref().filter(|(at, _)| *at == step) {
                    token.cancel();
                    std::future::pending::<()>().await;
                }
                if self.hangs.contains(&step) {
                    std::future::pending::<()>().await;
                }
                if self.fails.contains(&step) {
                    Err(StepError::NoReset)
                } else {
                    Ok(StepDone::Waited)
                }
            })
        }
        fn prove(&mut self, step: RecoveryStep) -> BoxFuture<'_, StepProof> {
            Box::pin(async move {
                if self.proof_hangs {
                    std::future::pending::<()>().await;
                }
                let waits = self.done.iter().filter(|step| **step == RecoveryStep::Wait).count();
                if self.recovered_by == Some(RecoveryStep::Wait) && waits < 3 {
                    return no(&StepError::NoProof);
                }
                StepProof { ok: self.recovered_by == Some(step), detail: "asked".to_owned() }
            })
        }
        fn again(&self, step: RecoveryStep, spent: Duration) -> Option<Duration> {
            let most = self.wait_timeout.filter(|_| step == RecoveryStep::Wait)?;
            (spent < most).then_some(Duration::from_secs(1))
        }
        fn tell(&mut self, event: RecoveryEvent) {
            self.told.push(event);
        }
    }

    fn all() -> Vec<Rung> {
        let means = Means {
            probe: true,
            resets: true,
            emulated: false,
            of_command: false,
            outlet: Some(Duration::ZERO),
            known_good: true,
            hub: Some(Duration::ZERO),
            equivalents: vec!["b".parse().unwrap()],
        };
        ladder(&Recovery::default(), &means)
    }

    async fn run_ladder_with(patient: &mut Patient, timeout: u64) -> LadderOutcome {
        let cancel = patient.stop_at.as_ref().map_or_else(CancelToken::new, |(_, c)| c.clone());
        let timeout = Duration::from_secs(timeout);
        run_ladder(Cause::ProbeLost, &all(), timeout, patient, &cancel).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_step_that_is_proven_ends_the_climb() {
        let mut patient = Patient {
            recovered_by: Some(RecoveryStep::PowerCycle),
            fails: vec![RecoveryStep::Reset],
            hangs: vec![RecoveryStep::AttachUnderReset],
            ..Patient::default()
        };
        let outcome = run_ladder_with(&mut patient, 600).await;
        assert_eq!(outcome.recovered_by, Some(RecoveryStep::PowerCycle));
        assert_eq!(outcome.detail, "it was given time; asked");
        let steps = &RecoveryStep::ALL[..6];
        let taken: Vec<_> =
            steps.iter().filter(|s| **s != RecoveryStep::RestartEmulator).copied().collect();
        assert_eq!(patient.done, taken);
        // The one that hung was given its budget, no more.
        assert_eq!(outcome.took, RecoveryStep::AttachUnderReset.budget());
        let proofs = patient.told.iter().filter(|e| matches!(e, RecoveryEvent::Proof { .. }));
        assert_eq!(proofs.count(), taken.len());
        assert!(
            matches!(patient.told.first(), Some(RecoveryEvent::Began { ladder, .. }) if ladder.len() == 11)
        );
        assert!(matches!(
            patient.told.last(),
            Some(RecoveryEvent::Ended { recovered_by: Some(_), .. })
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_without_proof_recovers_nothing_and_the_last_takes_out_of_service() {
        let mut patient = Patient::default();
        let outcome = run_ladder_with(&mut patient, 600).await;
        assert_eq!((outcome.recovered_by, outcome.cancelled), (None, false));
        assert_eq!(patient.done.last(), Some(&RecoveryStep::OutOfService));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_may_help_the_next_time_is_taken_again_for_a_while() {
        for (wait_timeout, recovered) in [(None, false), (Some(1), false), (Some(2), true)] {
            let wait_timeout = wait_timeout.map(Duration::from_secs);
            let recovered_by = Some(RecoveryStep::Wait);
            let mut patient = Patient { recovered_by, wait_timeout, ..Patient::default() };
            let outcome = run_ladder_with(&mut patient, 600).await;
            assert_eq!(outcome.recovered_by.is_some(), recovered, "{wait_timeout:?}");
            // Each time it is told, and has its proof.
            let told = |event: &&RecoveryEvent| {
                matches!(event, RecoveryEvent::Proof { step: RecoveryStep::Wait, .. })
            };
            let waits = patient.done.iter().filter(|step| **step == RecoveryStep::Wait).count();
            assert_eq!(patient.told.iter().filter(told).count(), waits);
        }
        let (cancel, wait_timeout) = (CancelToken::new(), Some(Duration::from_secs(500)));
        let mut patient = Patient { wait_timeout, ..Patient::default() };
        let half_a_minute = Duration::from_secs(30);
        let stops = async {
            tokio::time::sleep(half_a_minute).await;
            cancel.cancel();
            std::future::pending().await
        };
        let (rungs, timeout) = (all(), Duration::from_secs(600));
        let outcome = tokio::select! {
            outcome = run_ladder(Cause::ProbeLost, &rungs, timeout, &mut patient, &cancel) => outcome,
            never = stops => never,
        };
        assert_eq!((outcome.cancelled, outcome.took), (true, half_a_minute));
    }

    #[tokio::test(start_paused = true)]
    async fn the_whole_ladder_is_bounded_whatever_hangs() {
        let hangs = RecoveryStep::ALL.to_vec();
        let mut patient = Patient { hangs, ..Patient::default() };
        assert_eq!(run_ladder_with(&mut patient, 40).await.took, Duration::from_secs(40));
        let mut patient = Patient { proof_hangs: true, ..Patient::default() };
        let outcome = run_ladder_with(&mut patient, 100).await;
        assert_eq!(outcome.took, Duration::from_secs(100));
        assert!(outcome.recovered_by.is_none());
    }

    #[test]
    fn a_short_ladder_takes_less_than_it_is_given() {
        let emulated = Means { emulated: true, known_good: true, ..Means::default() };
        let given = Recovery::default().timeout;
        let rungs = ladder(&Recovery::default(), &emulated);
        let steps = RecoveryStep::RestartEmulator.budget() + RecoveryStep::Wait.budget();
        assert_eq!(ladder_timeout(&rungs, given), steps + PROOF * 2);
        assert_eq!(ladder_timeout(&all(), given), given);
        assert_eq!(ladder_timeout(&[], given), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_to_stop_is_heard_within_a_step() {
        let stop_at = Some((RecoveryStep::Reset, CancelToken::new()));
        let mut patient = Patient { stop_at, ..Patient::default() };
        let outcome = run_ladder_with(&mut patient, 600).await;
        assert!(outcome.cancelled && outcome.recovered_by.is_none());
        assert_eq!(patient.done, [RecoveryStep::Reopen, RecoveryStep::Reset]);
    }
}
