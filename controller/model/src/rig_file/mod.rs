//! The rig file: which places there are, and where runs are kept.
//!
//! A place binds a board profile to the resources that make it real. The only kind of
//! resource so far is the emulator; each kind is a table of its own below `[[place]]`, so
//! that a new kind is a new key and an unknown one is an unknown key.
//!
//! Refuses to look anything up: texts and their origins are handed in, the main file first
//! and drop-ins after it.

mod lower;
mod raw;
mod types;

pub use lower::RigText;
pub use types::{EmulatorResource, Place, Resource, Rig, RunStorage, UnknownPlace};

#[cfg(test)]
mod tests;
