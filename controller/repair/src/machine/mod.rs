//! The states of a repair run, what moves it, and the one table of transitions.

mod render;
mod state;
mod table;

pub use render::render;
pub use state::{RepairEvent, RepairState, RepairSubState};
pub use table::{IllegalRepairEvent, RepairTransition, next, transitions};
