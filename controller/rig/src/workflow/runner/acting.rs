//! Doing one action, and raising what was proposed.
//!
//! Owns the way from `action_running` to `action_completed`, with or without a stop in one
//! of the pending states.

use jig_model::plan::Plan;
use jig_model::{Cause, RunEvent};
use tokio::time::Instant;

use super::asking::{Interrupt, guarded};
use super::{Halt, WorkflowRun};
use crate::workflow::executor::{ActionFailure, describe};
use crate::workflow::planning::{ActionEffect, Decision, Proposal};
use crate::workflow::state::{Event, Owner, State};

impl WorkflowRun<'_> {
    /// Does the current action; then raises a proposal, if one is held.
    pub(super) async fn act(&mut self) -> Result<(), Halt> {
        let Some(action) = self.queue.actions.get(self.queue.current) else {
            let detail = "there is no action to do".to_owned();
            return Err(Halt::Final(ActionFailure::new(Cause::PlannerFailed, detail)));
        };
        let path = self.position.path(&self.plan, &action.name);
        let what = describe(&action.kind);
        (self.cast.observer)(RunEvent::ActionStarted { path: path.clone(), what });
        let begun = Instant::now();
        let doing = self.cast.executor.execute(&path, action);
        let ended = match guarded(&self.cast.cancel, self.deadline, doing).await {
            Ok(Ok(done)) => Ok(done.detail),
            Ok(Err(failure)) => Err(Halt::Action(blaming_somebody(failure))),
            Err(Interrupt::Cancelled) => Err(Halt::Cancelled),
            Err(Interrupt::Overdue) => {
                let after = begun.elapsed();
                Err(Halt::Final(self.cast.executor.overdue(&path, action, after).await))
            }
        };
        let (failed, detail) = match &ended {
            Ok(detail) => (None, detail.clone()),
            Err(Halt::Action(f) | Halt::Final(f)) => (Some(f.cause), f.detail.clone()),
            Err(Halt::Cancelled) => (Some(Cause::Cancelled), "cancelled".to_owned()),
        };
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.effects.push(ActionEffect {
            path: path.clone(),
            ok: failed.is_none(),
            detail: detail.clone(),
        });
        (self.cast.observer)(RunEvent::ActionEnded { path, failed, detail, duration_ms });
        ended?;
        match self.proposals.take(&self.plan, &self.position) {
            None => self.apply(Event::CompleteAction, Owner::Client).map(drop),
            Some((proposal, changed)) => self.propose(&proposal, changed).await,
        }
    }

    /// Raises a proposal out of a running action whose work is done, and acts on the answer.
    async fn propose(&mut self, proposal: &Proposal, changed: Plan) -> Result<(), Halt> {
        let (raise, confirm, reject) = match proposal {
            Proposal::Workflow(_) => (
                Event::UpdateWorkflow,
                Event::UpdateWorkflowConfirmed,
                Event::UpdateWorkflowRejected,
            ),
            Proposal::Steps(_) => {
                (Event::UpdateStep, Event::UpdateStepConfirmed, Event::UpdateStepRejected)
            }
        };
        self.apply(raise, Owner::Planning)?;
        if self.machine.allows(Event::CompleteAction, Owner::Client) {
            // The table's placeholder: the action is done while the answer is awaited.
            self.apply(Event::CompleteAction, Owner::Client)?;
        }
        let deciding = self.cast.decider.decide(proposal, &changed);
        let decision = match guarded(&self.cast.cancel, self.deadline, deciding).await {
            Ok(decision) => decision,
            Err(Interrupt::Cancelled) => return Err(Halt::Cancelled),
            Err(Interrupt::Overdue) => {
                // A pending state has no FAIL: the unanswered proposal is rejected first.
                self.apply(reject, Owner::Client)?;
                let detail = "the plan's time was over before a proposal was answered";
                return Err(Halt::Final(ActionFailure::new(Cause::PlannerFailed, detail)));
            }
        };
        match decision {
            Decision::Confirm => {
                self.apply(confirm, Owner::Client)?;
                self.plan = changed;
                Ok(())
            }
            Decision::Reject => match self.apply(reject, Owner::Client)? {
                State::Error => Err(Halt::Final(ActionFailure::new(
                    Cause::Cancelled,
                    "the proposed steps were rejected, and the stage cannot go on without them",
                ))),
                _ => Ok(()),
            },
        }
    }
}

/// Keeps a failure from passing for a success: an executor that fails with the cause of a
/// pass contradicts itself, and proves nothing.
fn blaming_somebody(failure: ActionFailure) -> ActionFailure {
    if failure.cause.fault().is_some() {
        return failure;
    }
    let detail = format!("failed, yet {}: {}", failure.cause, failure.detail);
    ActionFailure { cause: Cause::GoalMissed, detail, ..failure }
}
