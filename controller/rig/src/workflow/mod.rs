//! The workflow: a plan driven, move by move, through one closed state machine.
//!
//! Owns which moves exist, their owners, and what is written down about them. Refuses every other
//! move, and knows no board: actions are done by an [`ActionExecutor`].

mod built_in;
mod cancel;
mod executor;
mod location;
mod machine;
mod planning;
mod proposals;
mod record;
mod render;
mod runner;
mod state;
mod table;

pub use built_in::{PlanGenerator, PlanPlanner, RejectUpdates};
pub use cancel::CancelToken;
pub use executor::{ActionDone, ActionExecutor, ActionFailure, describe, overdue};
pub use location::{Depth, Position};
pub use machine::{Refused, WorkflowMachine};
pub use planning::{
    ActionEffect, ContextUpdate, Decision, Generator, Planner, PlannerError, PlannerObservation,
    PlanningResponse, Proposal, StageRetry, TransitionAdvice, UpdateDecider,
};
pub use record::{
    Current, Fsm, Goals, Location, PlanProgress, RefusedMove, RefusedReason, Track, WorkflowMove,
    WorkflowRecord,
};
pub use render::render;
pub use runner::{Cast, MAX_EXTRA_BEHAVIORS, WorkflowOutcome, run};
pub use state::{Event, Owner, State};
pub use table::{Illegal, TRANSITIONS, Transition, find, next};
