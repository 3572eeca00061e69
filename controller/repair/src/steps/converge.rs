//! CONVERGENCE_CHECK: whether the run goes on. Pure: figures of the journal in, a decision out.

use crate::convergence::{
    ConvergenceCriteria, ConvergenceOutcome, IterationCounts, PlateauOutcome, PlateauStrategy,
    TestCounts, decide, handle_plateau,
};
use crate::drive::StepResult;
use crate::limits::{LimitReached, limit_reached};
use crate::machine::RepairEvent;
use crate::proof::{Lack, proven};
use crate::run::Run;
use crate::setup::{RepairSetup, now_ms};

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let rungs = setup.agents.len() as u64;
    let (event, reason) = next_event(run, rungs, PlateauStrategy::of(setup.task.mode), now_ms());
    StepResult::of(event, reason)
}

/// Decides. `rungs` is the length of the ladder of agents.
fn next_event(
    run: &Run,
    rungs: u64,
    plateau: PlateauStrategy,
    now_ms: u64,
) -> (RepairEvent, String) {
    // What another agent achieved says nothing of this one.
    let tested = run.attempts.iter().filter(|one| one.strategy == run.strategy);
    let history: Vec<TestCounts> = tested.map(|one| one.counts).collect();
    // The iteration behind the last allowed one is the first that is too late.
    let max = run.contract.limits.iterations.saturating_add(1);
    let counts = IterationCounts { current: run.iteration, max };
    let decision = decide(&history, counts, &ConvergenceCriteria::default());
    let passed = run.attempts.last().is_some_and(|last| last.signature.is_none());
    if passed && let Some(facts) = &run.proof {
        match proven(facts) {
            Ok(_) if decision.outcome == Some(ConvergenceOutcome::Success) => {
                return (RepairEvent::Converged, decision.reason);
            }
            Ok(_) => {}
            Err(lacks) if lacks.contains(&Lack::HealedItself) => {
                return (RepairEvent::NoProgress, Lack::HealedItself.to_string());
            }
            Err(_) => {}
        }
    }
    let limit = limit_reached(run, now_ms).or_else(|| {
        let all = run.contract.limits.iterations;
        (run.iteration >= all).then_some(LimitReached::Iterations(all))
    });
    if let Some(limit) = limit {
        return (RepairEvent::NoProgress, limit.to_string());
    }
    if passed && let Some(Err(lacks)) = run.proof.as_ref().map(proven) {
        let lacks: Vec<_> = lacks.iter().map(ToString::to_string).collect();
        return (RepairEvent::Continue, format!("not proven: {}", lacks.join("; ")));
    }
    let next_rung = run.strategy + 1 < rungs;
    match decision.outcome {
        None | Some(ConvergenceOutcome::Success) => (RepairEvent::Continue, decision.reason),
        Some(_) if next_rung => (RepairEvent::StrategySwitched, decision.reason),
        Some(ConvergenceOutcome::Failure | ConvergenceOutcome::Timeout) => {
            (RepairEvent::NoProgress, decision.reason)
        }
        Some(ConvergenceOutcome::Plateaued | ConvergenceOutcome::ConvergedWithImprovement) => {
            let switches = u32::try_from(run.strategy).unwrap_or(u32::MAX);
            let event = match handle_plateau(plateau, switches) {
                PlateauOutcome::HumanReview => RepairEvent::HumanReview,
                PlateauOutcome::SuccessWithWarning => RepairEvent::AcceptedWithWarning,
                PlateauOutcome::StrategySwitch => RepairEvent::StrategySwitched,
                PlateauOutcome::Failure => RepairEvent::NoProgress,
            };
            (event, decision.reason)
        }
    }
}
