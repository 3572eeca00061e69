//! The runner: drives a plan through the machine until nothing can move any more.
//!
//! Owns the order of questions, moves and actions, and the plan's time. Refuses to set a
//! state: every move goes through [`WorkflowMachine::apply`]; where the table has no `FAIL` or
//! `CANCEL`, none is tried. Refuses to know boards, and to keep an action's own time-out,
//! which is the executor's.
//!
//! # Design
//! The loop looks at the state alone and does what that state calls for, so there is no
//! second notion of where the run stands. The planner is asked before every move that the
//! table gives to planning, and once per move: the answer after a behaviour's last action
//! decides both `COMPLETE_BEHAVIOR` and the move that follows.
//!
//! Only a failure that blames the target uses up an attempt. A failure of the rig says
//! nothing about the target; it ends the workflow, so that the rig can be recovered first.

use jiff::Timestamp;
use jig_model::plan::{Action, MAX_WAIT, Plan};
use jig_model::{Cause, Fault, RunEvent};
use tokio::time::Instant;

use super::cancel::CancelToken;
use super::executor::{ActionExecutor, ActionFailure};
use super::location::{Depth, Position};
use super::machine::WorkflowMachine;
use super::planning::{ActionEffect, Generator, Planner, PlannerError, StageRetry, UpdateDecider};
use super::proposals::Proposals;
use super::record::WorkflowRecord;
use super::state::{Event, Owner, State};

/// Most behaviours of one step beyond those the plan lists. A planner that wants more is
/// not converging: each costs a question and at least one action, and a hundred of them
/// outlast the plan's time wherever an action takes a while.
pub const MAX_EXTRA_BEHAVIORS: u32 = 100;

/// The parts of a run.
pub struct Cast<'a> {
    /// Judges goals.
    pub planner: &'a mut dyn Planner,
    /// Yields actions.
    pub generator: &'a mut dyn Generator,
    /// Does actions.
    pub executor: &'a mut dyn ActionExecutor,
    /// Answers proposals.
    pub decider: &'a mut dyn UpdateDecider,
    /// Is told everything, in order.
    pub observer: &'a mut (dyn FnMut(RunEvent) + Send),
    /// Tells the wall-clock time, for the record.
    pub clock: &'a (dyn Fn() -> Timestamp + Send + Sync),
    /// Asks to stop.
    pub cancel: CancelToken,
    /// How a planner or generator that fails is asked again.
    pub retry: StageRetry,
}

/// How a workflow ended.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkflowOutcome {
    /// The state it ended in. Only `workflow_completed` is good.
    pub state: State,
    /// History, refusals and location.
    pub record: WorkflowRecord,
    /// How often a behaviour was started again after it failed. Where this is not zero,
    /// the verdict is never a plain pass.
    pub restarts: u32,
    /// The failure that led to the first of these, with the name of its step.
    pub restarted_after: Option<ActionFailure>,
    /// Why it ended before its goal, if it did.
    pub failure: Option<ActionFailure>,
}

/// Runs a plan to its end. Never takes longer than the plan's time-out, apart from what a
/// dropped future takes to be dropped, and the executor to judge that.
pub async fn run(plan: &Plan, cast: Cast<'_>) -> WorkflowOutcome {
    let machine = WorkflowMachine::new((cast.clock)());
    let now = Instant::now();
    let run = WorkflowRun {
        // A plan that was read is within the limit; one that was built by hand may not be.
        deadline: now + plan.timeout.min(MAX_WAIT),
        plan: plan.clone(),
        cast,
        machine,
        position: Position::default(),
        effects: Vec::new(),
        queue: ActionQueue::default(),
        feedback: None,
        starts: 0,
        extra: 0,
        restarts: 0,
        restarted_after: None,
        proposals: Proposals::default(),
    };
    run.drive().await
}

/// Why the loop cannot simply go on.
enum Halt {
    /// An action failed; there may be another attempt.
    Action(ActionFailure),
    /// Something else failed, or the time is over: there is no other attempt.
    Final(ActionFailure),
    /// The caller asked to stop.
    Cancelled,
}

/// A planner's answer, without its proposals.
#[derive(Debug, Clone)]
struct Judgement {
    achieved: bool,
    again: bool,
    /// The planner's last error, where the answer is the fallback.
    instead_of: Option<PlannerError>,
}

impl Judgement {
    /// Builds the failure of a goal that was not reached.
    fn missed(self, level: &str) -> Halt {
        Halt::Final(match self.instead_of {
            Some(error) => ActionFailure::new(
                Cause::PlannerFailed,
                format!("the planner could not judge the goal of the {level}: {error}"),
            ),
            None => ActionFailure::new(
                Cause::GoalMissed,
                format!("the planner finds the goal of the {level} unmet"),
            ),
        })
    }
}

/// The actions of the current behaviour.
#[derive(Default)]
struct ActionQueue {
    actions: Vec<Action>,
    current: usize,
}

struct WorkflowRun<'a> {
    plan: Plan,
    cast: Cast<'a>,
    machine: WorkflowMachine,
    position: Position,
    effects: Vec<ActionEffect>,
    queue: ActionQueue,
    /// The answer that completed the behaviour.
    feedback: Option<Judgement>,
    /// How often the current behaviour was started.
    starts: u32,
    /// Behaviours of the current step beyond those the plan lists.
    extra: u32,
    restarts: u32,
    restarted_after: Option<ActionFailure>,
    proposals: Proposals,
    deadline: Instant,
}

impl WorkflowRun<'_> {
    async fn drive(mut self) -> WorkflowOutcome {
        let failure = loop {
            match self.machine.state() {
                State::WorkflowCompleted | State::Error | State::Cancelled => break None,
                State::Idle
                | State::StageRunning
                | State::StepRunning
                | State::BehaviorRunning
                | State::ActionRunning
                | State::ActionCompleted
                | State::BehaviorCompleted
                | State::StepCompleted
                | State::StageCompleted
                | State::WorkflowUpdatePending
                | State::StepUpdatePending => {}
            }
            let advanced = if self.cast.cancel.is_cancelled() {
                Err(Halt::Cancelled)
            } else {
                self.advance().await
            };
            if let Err(Some(failure)) = advanced.map_err(|halt| self.halt(halt)) {
                break Some(failure);
            }
        };
        let left = self.proposals.left();
        if left > 0 {
            self.note(format!("{left} proposed changes were never raised: no action followed"));
        }
        let state = self.machine.state();
        let location = self.position.location(&self.plan, state);
        let (fsm, refused) = self.machine.into_parts();
        let record = WorkflowRecord { fsm, refused, location };
        let Self { restarts, restarted_after, .. } = self;
        WorkflowOutcome { state, record, restarts, restarted_after, failure }
    }

    /// Does what the state calls for, up to and including one move (or a proposal's two).
    async fn advance(&mut self) -> Result<(), Halt> {
        use {Event as E, Owner::*};
        match self.machine.state() {
            State::Idle => {
                self.ask().await?;
                self.apply(E::StartWorkflow, Planning)?;
                self.position.enter_stage(0);
            }
            State::StageRunning => {
                if self.ask().await?.achieved {
                    self.apply(E::CompleteStage, Planning)?;
                } else {
                    self.apply(E::StartStep, Planning)?;
                    self.position.enter_step(0);
                }
            }
            State::StepRunning => {
                if self.ask().await?.achieved {
                    self.apply(E::CompleteStep, Planning)?;
                } else {
                    self.apply(E::StartBehavior, Planning)?;
                    self.position.enter_behavior(0);
                    (self.starts, self.extra) = (1, 0);
                    self.effects.clear();
                }
            }
            State::BehaviorRunning => {
                let actions = self.generate().await?;
                if actions.is_empty() {
                    self.complete_behavior().await?;
                } else {
                    self.apply(E::StartAction, Generating)?;
                    self.queue = ActionQueue { actions, current: 0 };
                }
            }
            State::ActionRunning => self.act().await?,
            State::ActionCompleted => {
                if self.queue.current + 1 < self.queue.actions.len() {
                    self.apply(E::NextAction, Client)?;
                    self.queue.current += 1;
                } else {
                    self.complete_behavior().await?;
                }
            }
            State::BehaviorCompleted => self.after_behavior()?,
            State::StepCompleted => {
                if self.position.has_next_step(&self.plan) {
                    self.apply(E::NextStep, Client)?;
                    self.position.enter_step(self.position.step + 1);
                } else {
                    let judgement = self.ask().await?;
                    if !judgement.achieved {
                        return Err(judgement.missed("stage"));
                    }
                    self.apply(E::CompleteStage, Planning)?;
                    self.position.leave_to(Depth::Stage);
                }
            }
            State::StageCompleted => {
                if self.position.has_next_stage(&self.plan) {
                    self.apply(E::NextStage, Client)?;
                    self.position.enter_stage(self.position.stage + 1);
                } else {
                    let judgement = self.ask().await?;
                    if !judgement.achieved {
                        return Err(judgement.missed("workflow"));
                    }
                    self.apply(E::CompleteWorkflow, Planning)?;
                    self.position.leave_to(Depth::Workflow);
                }
            }
            // `act` answers a proposal before it returns, and the loop ends in the others.
            State::WorkflowUpdatePending
            | State::StepUpdatePending
            | State::WorkflowCompleted
            | State::Error
            | State::Cancelled => {}
        }
        Ok(())
    }

    async fn complete_behavior(&mut self) -> Result<(), Halt> {
        let judgement = self.ask().await?;
        self.apply(Event::CompleteBehavior, Owner::Planning)?;
        self.feedback = Some(judgement);
        Ok(())
    }

    fn after_behavior(&mut self) -> Result<(), Halt> {
        let fallback = Judgement { achieved: false, again: false, instead_of: None };
        let feedback = self.feedback.take().unwrap_or(fallback);
        if feedback.again {
            let mut index = self.position.behavior;
            if self.position.has_next_behavior(&self.plan) {
                index += 1;
            } else if self.extra < MAX_EXTRA_BEHAVIORS {
                // The plan lists no further one, so its last one is done again.
                self.extra += 1;
            } else {
                return Err(Halt::Final(ActionFailure::new(
                    Cause::GoalMissed,
                    format!(
                        "the planner asked for over {MAX_EXTRA_BEHAVIORS} behaviours more than \
                         the step has"
                    ),
                )));
            }
            self.apply(Event::NextBehavior, Owner::Planning)?;
            self.position.enter_behavior(index);
            self.starts = 1;
            self.effects.clear();
        } else if feedback.achieved {
            self.apply(Event::CompleteStep, Owner::Planning)?;
            self.position.leave_to(Depth::Step);
        } else {
            return Err(feedback.missed("step"));
        }
        Ok(())
    }

    /// Makes the moves that a halt calls for. Returns the failure if the run ends with it.
    fn halt(&mut self, halt: Halt) -> Option<ActionFailure> {
        let (failure, may_repeat) = match halt {
            Halt::Cancelled => return Some(self.call_off("cancelled".to_owned())),
            Halt::Action(failure) => {
                let may_repeat = match failure.cause.fault() {
                    Some(Fault::Target) => true,
                    Some(Fault::Cancelled) => return Some(self.call_off(failure.detail)),
                    // Another attempt cannot help: the fault is not the target's.
                    Some(
                        Fault::Lab | Fault::Unknown | Fault::Profile | Fault::Usage | Fault::Bug,
                    )
                    | None => false,
                };
                (failure, may_repeat)
            }
            Halt::Final(failure) => (failure, false),
        };
        if self.machine.allows(Event::Fail, Owner::Client)
            && let Err(Halt::Final(refusal)) = self.apply(Event::Fail, Owner::Client)
        {
            return Some(refusal);
        }
        let attempts = self.position.step(&self.plan).map_or(1, |step| step.attempts);
        let in_time = Instant::now() < self.deadline;
        if !(may_repeat && in_time && self.starts < attempts) {
            return Some(failure);
        }
        if self.cast.cancel.is_cancelled() {
            // What another attempt would have shown is unknown.
            let detail = format!("cancelled after a failed attempt: {}", failure.detail);
            return Some(ActionFailure { cause: Cause::Cancelled, detail, ..failure });
        }
        if self.apply(Event::StartBehavior, Owner::Client).is_err() {
            return Some(failure);
        }
        self.position.enter_behavior(self.position.behavior);
        self.starts += 1;
        self.restarts = self.restarts.saturating_add(1);
        if let (None, Some(step)) = (&self.restarted_after, self.position.step(&self.plan)) {
            let detail = format!("step {} failed before: {}", step.name, failure.detail);
            self.restarted_after = Some(ActionFailure { detail, ..failure });
        }
        // Only the failed attempt's effects help the planner of the next one.
        let last = self.effects.len().saturating_sub(self.queue.current + 1);
        self.effects.drain(..last);
        None
    }

    fn call_off(&mut self, detail: String) -> ActionFailure {
        if self.machine.allows(Event::Cancel, Owner::Client) {
            // It is allowed, so it cannot be refused.
            let _ = self.apply(Event::Cancel, Owner::Client);
        }
        ActionFailure::new(Cause::Cancelled, detail)
    }

    /// Makes one move and tells of it.
    fn apply(&mut self, event: Event, by: Owner) -> Result<State, Halt> {
        let from = self.machine.state();
        let moved = self.machine.apply(event, by, (self.cast.clock)());
        (self.cast.observer)(RunEvent::Workflow {
            from: from.as_str().to_owned(),
            trigger: event.as_str().to_owned(),
            to: moved.as_ref().map_or(from, |to| *to).as_str().to_owned(),
            refused: moved.is_err(),
        });
        moved.map_err(|refused| {
            Halt::Final(ActionFailure::new(Cause::PlannerFailed, refused.to_string()))
        })
    }

    fn note(&mut self, text: String) {
        (self.cast.observer)(RunEvent::Note { text });
    }
}

mod acting;
mod asking;

#[cfg(test)]
mod tests;
