//! ERROR_RECOVERY: what follows an error, by the table of [`crate::recovery`]. The rig comes first:
//! what it did is never paid for by an iteration.

use jig_model::chain;

use crate::journal::{Fact, StepResult, now_ms};
use crate::limits::{LimitReached, limit_reached};
use crate::machine::RepairEvent;
use crate::recovery::{RecoveryAction, recovery_of};
use crate::run::Run;
use crate::setup::RepairSetup;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let end = |why: String| StepResult::of(RepairEvent::Unrecoverable, why);
    let Some(error) = run.error else { return end("no error is recorded".to_owned()) };
    if let Some(limit) = limit_reached(run, now_ms()) {
        return end(limit.to_string());
    }
    let recovery = recovery_of(error.class, error.state, error.retries, run.applied.is_some());
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
            let next = usize::try_from(run.strategy).unwrap_or(usize::MAX).saturating_add(1);
            if next >= setup.agents.len() && error.retries + 1 >= crate::recovery::MAX_RETRIES {
                return end("no agent is left that has a usable proposal".to_owned());
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
            let times = error.retries + 1;
            return end(match times {
                1 => run.why.clone(),
                _ => format!("{} ({} in {}, {times} times)", run.why, error.class, error.state),
            });
        }
    };
    match done {
        Ok(reason) => StepResult { facts, ..StepResult::of(recovery.event, reason) },
        Err(error) => end(format!("the recovery failed: {}", chain(&error))),
    }
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
