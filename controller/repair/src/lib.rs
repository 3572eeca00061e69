//! The repair loop: it changes firmware only on evidence.
//!
//! **Invariant: nothing in this crate touches a board.** Its state machine, its fold, its convergence
//! rules and its analysis are pure functions: no I/O, no clock. Of the workspace it imports
//! `jig-model` alone.

pub mod analysis;
pub mod convergence;
pub mod explain;
pub mod localise;
pub mod machine;
pub mod patch;
pub mod recovery;
