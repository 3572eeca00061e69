//! The repair loop: it changes firmware only on evidence.
//!
//! **Invariant: nothing in this crate touches a board.** Its state machine, its fold, its convergence
//! rules and its analysis are pure functions: no I/O, no clock. The journal is its only file. Of the
//! workspace it imports `jig-model` alone.

pub mod agents;
pub mod analysis;
pub mod bundle;
pub mod convergence;
pub mod drive;
mod excerpt;
pub mod explain;
pub mod git;
pub mod journal;
pub mod limits;
pub mod localise;
pub mod machine;
pub mod patch;
pub mod policy;
pub mod proof;
pub mod recovery;
pub mod redact;
pub mod run;
pub mod signature;
pub mod task;
pub mod templates;

#[cfg(test)]
mod tests;
