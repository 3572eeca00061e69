//! The health of places: what is known of each, since when, and what was seen.
//!
//! **Owns** the state machine with its hysteresis, the store that keeps states and history
//! between processes, and the running of checks with a time limit each. **Refuses** to decide
//! which checks a place has, when they run, and what is done about a place that is not well.
//!
//! # Design
//! *Two failures make a place unhealthy, several passes make it healthy again*, so that one
//! hiccup neither takes a place out nor puts it back.
//!
//! *Only what the rig did counts.* A run whose firmware failed says nothing about the place: it
//! is recorded and changes nothing. A run that passed shows that everything between Jig and the
//! target works.
//!
//! *Quarantine differs from unhealthy.* It means that the state of the place is unknown. So nothing
//! but proof in a row leads out of it: not a run that happened to pass, not a recovery, not a
//! person's word.
//!
//! *Health is that of devices, not of a name.* A rig file that gives a name to another board or to other
//! devices makes another place, with a row, history and figures of its own. Where the old devices come
//! back, so do theirs: an edit and its undoing clear nothing. What switches the power is no part of it.
//!
//! *The store is a convenience, never a condition.* If it cannot be read, health is unknown, and
//! runs go on.

mod event;
mod examine;
mod figures;
mod render;
mod schema;
mod state;
mod store;
mod table;
#[cfg(test)]
mod tests;

pub use event::{HealthEvent, Signal};
pub use examine::examine;
pub use figures::Figures;
pub use render::render;
pub use state::{HealthPolicy, HealthState, HealthSubject, PlaceHealth, Proof};
pub use store::{HealthStore, HistoryEntry};
pub use table::{HealthMove, MOVES, Streak, next};
