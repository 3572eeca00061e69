//! What is written down about a workflow: the `FSM` record and the location.
//!
//! Owns the shapes, which other programs read. Refuses to know how they come about.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::state::{Event, Owner, State};
use super::table::{Illegal, next};

/// One move that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowMove {
    /// State before.
    pub from: State,
    /// What moved it.
    pub event: Event,
    /// State after.
    pub to: State,
    /// When.
    pub timestamp: Timestamp,
}

/// Where the machine stands and how it came there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fsm {
    /// The state it is in.
    pub state: State,
    /// The last move as `EVENT -> state`, or nothing before the first.
    pub last_transition: Option<String>,
    /// When the last move was made; the machine's birth before the first.
    pub timestamp: Timestamp,
    /// Every move, in order.
    pub history: Vec<WorkflowMove>,
}

impl Fsm {
    /// Computes the state again, from the history alone.
    ///
    /// # Errors
    /// Refuses a history with a move that the table does not hold.
    pub fn replay(&self) -> Result<State, Illegal> {
        self.history.iter().try_fold(State::Idle, |state, step| next(state, step.event))
    }
}

/// Names why a move was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum RefusedReason {
    /// The table does not hold the pair.
    NoSuchMove,
    /// The table holds the pair for another owner.
    NotTheOwner {
        /// The party that may make the move.
        owner: Owner,
    },
}

impl RefusedReason {
    pub(super) fn text(self) -> String {
        match self {
            Self::NoSuchMove => "the table holds no such move".to_owned(),
            Self::NotTheOwner { owner } => format!("the move belongs to {owner}"),
        }
    }
}

/// One move that was asked for and refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedMove {
    /// The state, which stayed.
    pub from: State,
    /// The event.
    pub event: Event,
    /// The party that asked.
    pub by: Owner,
    /// Why it was refused.
    pub reason: RefusedReason,
    /// When.
    pub timestamp: Timestamp,
}

/// Where in the plan the workflow stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    /// Name of the stage.
    pub stage_id: Option<String>,
    /// Name of the step.
    pub step_id: Option<String>,
    /// Name of the behaviour.
    pub behavior_id: Option<String>,
    /// How many behaviours were started in this step, repetitions included.
    pub behavior_iteration: u32,
}

/// What is behind and what is ahead on one level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Names of what was completed, in order.
    pub completed: Vec<String>,
    /// Name of what is under way.
    pub current: Option<String>,
    /// Names of what follows.
    pub remaining: Vec<String>,
}

/// What is behind and what is ahead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanProgress {
    /// Stages of the workflow.
    pub stages: Track,
    /// Steps of the current stage.
    pub steps: Track,
    /// Behaviours of the current step.
    pub behaviors: Track,
}

/// What is to be reached, level by level; empty where the plan says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goals {
    /// By the workflow.
    pub workflow: String,
    /// By the current stage.
    pub stage: String,
    /// By the current step.
    pub step: String,
}

/// Where the workflow stands, what is behind it and what it is to reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Where it stands.
    pub current: Current,
    /// What is behind and ahead.
    pub progress: PlanProgress,
    /// What is to be reached.
    pub goals: Goals,
}

/// Everything that a run keeps about its workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// The machine.
    #[serde(rename = "FSM")]
    pub fsm: Fsm,
    /// Moves that were refused.
    pub refused: Vec<RefusedMove>,
    /// Where in the plan it ended.
    pub location: Location,
}
