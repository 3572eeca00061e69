//! The states of a repair run, what moves it, and the one table of transitions.

mod state;
mod table;

pub use state::{RepairEvent, RepairState, RepairSubState};
pub use table::{IllegalRepairEvent, condition, next};
