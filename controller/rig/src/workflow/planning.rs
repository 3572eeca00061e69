//! The protocols of planner, generator and update decider: they judge goals, yield actions, and
//! answer proposals.
//!
//! Owns the shapes of question and answer, which a program at the other end of a connection can
//! speak, too. Refuses to trust an answer: what it leads to is decided by the machine's table.

use std::time::Duration;

use jig_model::plan::{Action, Plan, Stage, Step};
use jig_model::protocol::BoxFuture;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::location::Position;
use super::record::{Fsm, Location};
use super::state::State;

/// What became of one action of the current behaviour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionEffect {
    /// Path of names.
    pub path: String,
    /// Whether it went well.
    pub ok: bool,
    /// What was seen; may quote the target.
    pub detail: String,
}

/// What is known when a planner or generator is asked.
///
/// As JSON it is `{"location", "context": {"FSM", "effects"}, "workflow_template"}`.
#[derive(Debug, Clone, Copy)]
pub struct PlannerObservation<'a> {
    /// The plan as it stands, confirmed changes included.
    pub plan: &'a Plan,
    /// Where in it the workflow is.
    pub position: &'a Position,
    /// State and history.
    pub fsm: &'a Fsm,
    /// What the actions of the current behaviour, and of its last failed attempt, did.
    pub effects: &'a [ActionEffect],
}

impl<'a> PlannerObservation<'a> {
    /// Returns the state that the question is asked in.
    pub fn state(&self) -> State {
        self.fsm.state
    }

    /// Returns the current stage.
    pub fn stage(&self) -> Option<&'a Stage> {
        self.position.stage(self.plan)
    }

    /// Returns the current step.
    pub fn step(&self) -> Option<&'a Step> {
        self.position.step(self.plan)
    }

    /// Computes where the workflow is, in names, with what is behind and ahead.
    pub fn location(&self) -> Location {
        self.position.location(self.plan, self.fsm.state)
    }
}

impl Serialize for PlannerObservation<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Context<'a> {
            #[serde(rename = "FSM")]
            fsm: &'a Fsm,
            effects: &'a [ActionEffect],
        }
        let mut object = serializer.serialize_struct("Observation", 3)?;
        object.serialize_field("location", &self.location())?;
        let context = Context { fsm: self.fsm, effects: self.effects };
        object.serialize_field("context", &context)?;
        object.serialize_field("workflow_template", self.plan)?;
        object.end()
    }
}

/// How the workflow should go on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransitionAdvice {
    /// Whether the step needs a further behaviour.
    pub continue_behaviors: bool,
    /// Repeats the answer's `targetAchieved`, which is the one that counts.
    pub target_achieved: bool,
}

/// Changes that a planner proposes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextUpdate {
    /// Stages instead of those that remain, in the plan language: `{"stage": [...]}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_update: Option<Value>,
    /// Steps instead of those that remain in the stage: `{"step": [...]}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_steps_update: Option<Value>,
}

/// A planner's answer. The goal it is about follows from the observation's state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanningResponse {
    /// Whether the goal in question is reached.
    #[serde(rename = "targetAchieved")]
    pub target_achieved: bool,
    /// How to go on.
    #[serde(default)]
    pub transition: TransitionAdvice,
    /// What to change.
    #[serde(default)]
    pub context_update: ContextUpdate,
}

impl PlanningResponse {
    /// Builds an answer that proposes nothing.
    pub fn new(target_achieved: bool, continue_behaviors: bool) -> Self {
        Self {
            target_achieved,
            transition: TransitionAdvice { continue_behaviors, target_achieved },
            context_update: ContextUpdate::default(),
        }
    }

    /// Returns the answer that stands in for a planner that gives none: the goal is not
    /// reached, so the step is tried; and nothing is repeated, so that it ends.
    pub fn fallback() -> Self {
        Self::new(false, false)
    }
}

/// Says that a planner or generator gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlannerError {
    /// What went wrong: lower case, no full stop.
    pub message: String,
}

/// Judges goals.
pub trait Planner: Send {
    /// Judges the goal that the observation's state puts in question: of the workflow in
    /// `idle` and `stage_completed`, of the stage in `stage_running` and `step_completed`,
    /// of the step in `step_running`, and after a behaviour (feedback) in
    /// `action_completed`, or in `behavior_running` where it had no action.
    fn check_goal<'a>(
        &'a mut self,
        observation: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Result<PlanningResponse, PlannerError>>;
}

/// Yields actions.
pub trait Generator: Send {
    /// Yields the actions of the current behaviour; none completes it at once.
    fn actions<'a>(
        &'a mut self,
        observation: &'a PlannerObservation<'a>,
    ) -> BoxFuture<'a, Result<Vec<Action>, PlannerError>>;
}

/// A valid change that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// Other stages after the current one.
    Workflow(Value),
    /// Other steps after the current one of the current stage.
    Steps(Value),
}

/// The answer to a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The change is made.
    Confirm,
    /// The change is not made.
    Reject,
}

/// Answers proposals, for the user.
pub trait UpdateDecider: Send {
    /// Answers a proposal. `changed` is the plan as it would be.
    fn decide<'a>(
        &'a mut self,
        proposal: &'a Proposal,
        changed: &'a Plan,
    ) -> BoxFuture<'a, Decision>;
}

/// How often, and after which pauses, a planner or generator that failed is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageRetry {
    /// How often it is asked; at least once.
    pub tries: u32,
    /// The pause after the first failure; each further one is twice as long.
    pub pause: Duration,
}

impl Default for StageRetry {
    /// Three tries, a second and two apart: enough for a service that restarts, and little
    /// beside the time-out of a plan.
    fn default() -> Self {
        Self { tries: 3, pause: Duration::from_secs(1) }
    }
}

impl StageRetry {
    /// Returns the pause after a try, counted from 0, or nothing after the last one.
    pub fn pause_after(&self, tried: u32) -> Option<Duration> {
        let again = tried.saturating_add(1) < self.tries;
        again.then(|| self.pause.saturating_mul(2_u32.saturating_pow(tried)))
    }
}
