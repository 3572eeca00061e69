//! CONVERGENCE_CHECK: whether the run goes on. Pure: figures of the journal in, a decision out.

use crate::convergence::{
    ConvergenceCriteria, ConvergenceOutcome, IterationCounts, PlateauOutcome, PlateauStrategy,
    TestCounts, decide, handle_plateau,
};
use crate::journal::{StepResult, now_ms};
use crate::limits::{LimitReached, limit_reached};
use crate::machine::RepairEvent;
use crate::proof::{Lack, lack_of_proof, proven};
use crate::run::{Attempt, Run};
use crate::setup::RepairSetup;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let rungs = setup.agents.len() as u64;
    let rules = ConvergenceRules {
        criteria: ConvergenceCriteria::of(setup.task.preset),
        plateau: PlateauStrategy::of(setup.task.mode),
    };
    let (event, reason) = next_event(run, rungs, &rules, now_ms());
    StepResult::of(event, reason)
}

/// What preset and mode of a task decide.
struct ConvergenceRules {
    criteria: ConvergenceCriteria,
    plateau: PlateauStrategy,
}

/// Decides. `rungs` is the length of the ladder of agents.
///
/// A success needs both: the proof of the candidate, and a decision for success from the figures.
fn next_event(
    run: &Run,
    rungs: u64,
    rules: &ConvergenceRules,
    now_ms: u64,
) -> (RepairEvent, String) {
    // The iteration behind the last allowed one is the first that is too late.
    let max = run.contract.limits.iterations.saturating_add(1);
    let counts = IterationCounts { current: run.iteration, max };
    let decision = decide(&history(run), counts, &rules.criteria);
    let passed = run.attempts.last().is_some_and(|last| last.signature.is_none());
    let proof = run.proof.as_ref().filter(|_| passed).map(proven);
    match proof {
        Some(Ok(_)) if decision.outcome == Some(ConvergenceOutcome::Success) => {
            return (RepairEvent::Converged, decision.reason);
        }
        Some(Err(lacks)) if lacks.contains(&Lack::HealedItself) => {
            return (RepairEvent::NoProgress, Lack::HealedItself.to_string());
        }
        _ => {}
    }
    let limit = limit_reached(run, now_ms).or_else(|| {
        let all = run.contract.limits.iterations;
        (run.iteration >= all).then_some(LimitReached::Iterations(all))
    });
    let lack = run.proof.as_ref().filter(|_| passed).and_then(lack_of_proof);
    if let Some(limit) = limit {
        let why = lack.map_or(limit.to_string(), |lack| format!("{lack}; {limit}"));
        return (RepairEvent::NoProgress, why);
    }
    if let Some(lack) = lack {
        return (RepairEvent::Continue, lack);
    }
    if let Some(last) = run.attempts.last().filter(|last| last.diagnostic) {
        let shown = last.signature.as_deref().unwrap_or("it passes");
        let reason = format!("the diagnostic change is taken back; it has shown: {shown}");
        return (RepairEvent::Continue, reason);
    }
    let event = match decision.outcome {
        None | Some(ConvergenceOutcome::Success) => RepairEvent::Continue,
        Some(_) if run.strategy + 1 < rungs => RepairEvent::StrategySwitched,
        Some(ConvergenceOutcome::Failure | ConvergenceOutcome::Timeout) => RepairEvent::NoProgress,
        Some(ConvergenceOutcome::Plateaued | ConvergenceOutcome::ConvergedWithImprovement) => {
            let switches = u32::try_from(run.strategy).unwrap_or(u32::MAX);
            match handle_plateau(rules.plateau, switches) {
                PlateauOutcome::HumanReview => RepairEvent::HumanReview,
                PlateauOutcome::SuccessWithWarning => RepairEvent::AcceptedWithWarning,
                PlateauOutcome::StrategySwitch => RepairEvent::StrategySwitched,
                PlateauOutcome::Failure => RepairEvent::NoProgress,
            }
        }
    };
    let said = match event {
        RepairEvent::HumanReview => "a person has to decide: ",
        RepairEvent::AcceptedWithWarning => "accepted with a warning, as the mode says: ",
        _ => "",
    };
    (event, said.to_owned() + &decision.reason)
}

/// Returns the results of the agent whose turn it is: what another one achieved says nothing of it. A
/// candidate that failed is one result, however often it passed before; one that passed shows by each
/// of its runs that it is stable.
fn history(run: &Run) -> Vec<TestCounts> {
    let tested: Vec<_> =
        run.attempts.iter().filter(|one| one.strategy == run.strategy && !one.diagnostic).collect();
    let of_one_patch = |a: &&Attempt, b: &&Attempt| a.patch == b.patch;
    let candidates = tested.chunk_by(of_one_patch).map(|runs| {
        let failed = runs.iter().rposition(|one| one.signature.is_some());
        &runs[failed.unwrap_or(0)..]
    });
    candidates.flatten().map(|one| one.counts).collect()
}

#[cfg(test)]
#[path = "converge_tests.rs"]
mod tests;
