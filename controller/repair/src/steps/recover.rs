//! ERROR_RECOVERY: what follows an error, by the table of [`crate::recovery`]. The rig comes first:
//! what it did is never paid for by an iteration.

use jig_model::chain;

use crate::journal::{Fact, StepResult, now_ms};
use crate::limits::{LimitReached, limit_reached};
use crate::machine::RepairEvent;
use crate::proof::lack_of_proof;
use crate::recovery::{ErrorClass, MAX_RETRIES, RecoveryAction, recovery_of};
use crate::run::Run;
use crate::setup::{PatchSource, RepairSetup};

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let end = |why: String| {
        // What came behind a candidate that passes is not what the repair fails by.
        let lack = run.proof.as_ref().and_then(lack_of_proof);
        let why = lack.map_or(why.clone(), |lack| format!("{lack}; then: {why}"));
        StepResult::of(RepairEvent::Unrecoverable, why)
    };
    let Some(error) = run.error else { return end("no error is recorded".to_owned()) };
    if let Some(limit) = limit_reached(run, now_ms()) {
        return end(limit.to_string());
    }
    let next = usize::try_from(run.strategy).unwrap_or(usize::MAX).saturating_add(1);
    let agents_left = next < setup.agents.len();
    let (class, state, retries) = (error.class, error.state, error.retries);
    let recovery = recovery_of(class, state, retries, run.applied.is_some(), agents_left);
    let (action, uses_iteration) = (recovery.action, recovery.uses_iteration);
    let all = run.contract.limits.iterations;
    if uses_iteration && run.iteration >= all {
        return end(format!(
            "{}; the last one ended with: {}",
            LimitReached::Iterations(all),
            run.why
        ));
    }
    let mut facts = vec![Fact::Recovered { action, uses_iteration }];
    let done = match action {
        RecoveryAction::CleanBuild => {
            let tree = setup.tree();
            let cleaned = async {
                tree.unlock_tree().await?;
                tree.clean_ignored().await
            };
            cleaned.await.map(|()| "the build folder is clean".to_owned())
        }
        RecoveryAction::RecoverRig => match setup.recover_rig().await {
            Ok(how) => Ok(format!("the rig works: {how}")),
            Err(failure) => return end(format!("the rig does not recover: {}", failure.why)),
        },
        RecoveryAction::CollectAgain => Ok("the results are collected again".to_owned()),
        RecoveryAction::Degrade => {
            let same_again = class == ErrorClass::ModelFailure && is_deterministic(setup, run);
            if !agents_left && (same_again || retries + 1 >= MAX_RETRIES) {
                let why = "no agent is left that has a usable proposal; the last one: ";
                return end(why.to_owned() + &run.why);
            }
            Ok(match setup.agents.get(next) {
                Some(agent) => format!("{} is asked next", agent.name),
                None => "the last agent is asked again".to_owned(),
            })
        }
        RecoveryAction::RollBack => {
            facts.push(Fact::RolledBack);
            let reset = setup.hold(&run.contract.base).await;
            reset.map(|()| "the patch is taken back".to_owned())
        }
        RecoveryAction::GiveUp => {
            // Why the run is here is the reason of the step that failed.
            let times = retries + 1;
            return end(match times {
                1 => run.why.clone(),
                _ => format!("{} ({class} in {state}, {times} times)", run.why),
            });
        }
    };
    match done {
        Ok(reason) => StepResult { facts, ..StepResult::of(recovery.event, reason) },
        Err(error) => end(format!("the recovery failed: {}", chain(&error))),
    }
}

/// Tells whether the agent whose turn it is has no other answer to the same question.
fn is_deterministic(setup: &RepairSetup, run: &Run) -> bool {
    matches!(&setup.agent(run).source, PatchSource::Agent(agent) if agent.is_deterministic())
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
