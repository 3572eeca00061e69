//! Child processes that cannot be left behind.
//!
//! Owns every child of Jig: each is the leader of its own process group, dies with Jig
//! (parent-death signal), is killed as a group and reaped. Refuses shells: a command is a
//! program and a list of arguments. Standard input is never inherited.

mod fork;
mod managed;
mod starved;
mod stillness;

pub use managed::{Ending, ManagedProcess, SpawnError, SpawnRequest};
pub use stillness::{Stillness, StillnessWatch};
