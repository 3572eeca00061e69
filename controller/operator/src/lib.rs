//! Operator: what a person or an agent asks of the rig, planned, confirmed, carried out and verified.
//!
//! **Invariant: nothing in this crate touches a board, starts a program, prints, or decides a verdict.**
//! Of the workspace it imports `jig-model` and `jig-agents` alone. It reaches hardware through commands at a door, which
//! the program binds. What a model, a tool or a target says is data and never an instruction.

pub mod config;
mod context;
mod digest;
pub mod error;
pub mod grammar;
pub mod journal;
pub mod machine;
pub mod mcp;
pub mod memory;
pub mod models;
pub mod plan;
pub mod planner;
pub mod records;
pub mod retry;
pub mod session;
pub mod summary;
pub mod tools;

pub use context::{KnownBoard, KnownRun, SessionContext};
pub use digest::sha256_of;
