//! Asking planner and generator, with a timeout.
//!
//! Owns retries, the fallback, and what follows if no answer comes in time. Refuses to make a move.

use std::future::Future;

use jig_model::Cause;
use jig_model::plan::{Action, Plan};
use tokio::time::Instant;

use super::{Halt, Judgement, WorkflowRun};
use crate::workflow::cancel::CancelToken;
use crate::workflow::executor::ActionFailure;
use crate::workflow::location::Position;
use crate::workflow::machine::WorkflowMachine;
use crate::workflow::planning::{ActionEffect, PlannerError, PlannerObservation, PlanningResponse};

/// Why an await was given up.
pub(super) enum Interrupt {
    Cancelled,
    Overdue,
}

impl WorkflowRun<'_> {
    /// Asks the planner about the goal in question, again if it fails.
    pub(super) async fn ask(&mut self) -> Result<Judgement, Halt> {
        let mut tried = 0;
        let (response, instead_of) = loop {
            let observation = observe(&self.plan, &self.position, &self.machine, &self.effects);
            let asking = self.cast.planner.check_goal(&observation);
            match guarded(&self.cast.cancel, self.deadline, asking).await {
                Ok(Ok(response)) => break (response, None),
                Ok(Err(error)) => {
                    if let Some(error) = self.pause("planner", tried, error).await? {
                        break (PlanningResponse::fallback(), Some(error));
                    }
                }
                Err(interrupt) => return Err(given_up("planner", interrupt)),
            }
            tried += 1;
        };
        let update = response.context_update;
        for note in self.proposals.hold(update, &self.plan, &self.position) {
            self.note(note);
        }
        let again = response.transition.continue_behaviors;
        Ok(Judgement { achieved: response.target_achieved, again, instead_of })
    }

    /// Asks the generator for the behaviour's actions, again if it fails.
    pub(super) async fn generate(&mut self) -> Result<Vec<Action>, Halt> {
        let mut tried = 0;
        loop {
            let observation = observe(&self.plan, &self.position, &self.machine, &self.effects);
            let asking = self.cast.generator.actions(&observation);
            match guarded(&self.cast.cancel, self.deadline, asking).await {
                Ok(Ok(actions)) => return Ok(actions),
                Ok(Err(error)) => {
                    if let Some(error) = self.pause("generator", tried, error).await? {
                        let detail = format!("the generator yields no actions: {error}");
                        let failure = ActionFailure::new(Cause::PlannerFailed, detail);
                        return Err(Halt::Final(failure));
                    }
                }
                Err(interrupt) => return Err(given_up("generator", interrupt)),
            }
            tried += 1;
        }
    }

    /// Waits before the next try; returns the error where there is none.
    async fn pause(
        &mut self,
        who: &str,
        tried: u32,
        error: PlannerError,
    ) -> Result<Option<PlannerError>, Halt> {
        let Some(pause) = self.cast.retry.pause_after(tried) else {
            self.note(format!("gave up on the {who}: {error}"));
            return Ok(Some(error));
        };
        self.note(format!("the {who} failed, asked again in {} ms: {error}", pause.as_millis()));
        let waiting = tokio::time::sleep(pause);
        match guarded(&self.cast.cancel, self.deadline, waiting).await {
            Ok(()) => Ok(None),
            Err(interrupt) => Err(given_up(who, interrupt)),
        }
    }
}

fn observe<'a>(
    plan: &'a Plan,
    position: &'a Position,
    machine: &'a WorkflowMachine,
    effects: &'a [ActionEffect],
) -> PlannerObservation<'a> {
    PlannerObservation { plan, position, fsm: machine.fsm(), effects }
}

fn given_up(who: &str, interrupt: Interrupt) -> Halt {
    match interrupt {
        Interrupt::Cancelled => Halt::Cancelled,
        Interrupt::Overdue => Halt::Final(ActionFailure::new(
            Cause::PlannerFailed,
            format!("the plan's time was over before the {who} answered"),
        )),
    }
}

/// Awaits something unless the caller asks to stop or the plan's time is over.
///
/// What is ready counts even past the deadline: it did happen, and only awaits can be late.
pub(super) async fn guarded<T>(
    cancel: &CancelToken,
    deadline: Instant,
    what: impl Future<Output = T>,
) -> Result<T, Interrupt> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Interrupt::Cancelled),
        output = what => Ok(output),
        () = tokio::time::sleep_until(deadline) => Err(Interrupt::Overdue),
    }
}
