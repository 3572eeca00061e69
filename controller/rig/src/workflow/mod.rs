//! The workflow: a plan driven, move by move, through one closed state machine.
//!
//! Owns which moves exist, who may make them, and what is written down about them. Refuses
//! every other move, and knows no board: actions are done by an executor.

mod machine;
mod record;
mod render;
mod state;
mod table;

pub use machine::{Machine, Refused, RefusedReason};
pub use record::{
    Current, Fsm, Goals, Location, Move, Progress, RefusedMove, Track, WorkflowRecord,
};
pub use render::{RenderFormat, render};
pub use state::{Event, Owner, State, UnknownName};
pub use table::{Illegal, TRANSITIONS, Transition, find, next};
