//! The repair loop: it changes firmware only on evidence.
//!
//! **Invariant: nothing in this crate touches a board or starts a program.** Steps ask for both by
//! protocols ([`rig::RigDoor`], [`jig_model::program::Programs`]). The state machine, the fold, the
//! convergence rules and the analysis are pure functions: no I/O, no clock. All files lie in the
//! folder of the run. Of the workspace it imports `jig-model` and
//! `jig-agents` alone.

pub mod agents;
pub mod analysis;
mod attempt;
pub mod breaker;
pub mod bundle;
mod c_text;
pub mod convergence;
mod digest;
pub mod drive;
pub mod driver_lock;
mod excerpt;
pub mod explain;
pub mod export;
pub mod git;
pub mod journal;
pub mod known;
pub mod limits;
pub mod localise;
pub mod machine;
mod past;
pub mod patch;
pub mod policy;
mod poll;
pub mod proof;
pub mod recovery;
pub mod render;
pub mod rig;
pub mod run;
pub mod setup;
pub mod steps;
pub mod submit;
pub mod suspects;
pub mod task;
pub mod templates;
pub mod test_code;
mod tests_ran;
mod toolchain;
pub mod waiting;

pub use jig_model::{redact, signature};

#[cfg(test)]
mod runs_for_tests;
#[cfg(test)]
mod setup_for_tests;
#[cfg(test)]
mod tests;
