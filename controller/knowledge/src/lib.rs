//! Knowledge: what this lab has learnt, found in milliseconds and never trusted blindly.
//!
//! **Invariant: nothing in this crate touches a board, starts a program, prints, or decides a verdict.**
//! Of the workspace it imports `jig-model` alone; `embedding/onnx.rs` is the only file that sees `ort`.
//! Whatever a unit says is data: it is searched, quoted and cut, and never followed. A capture that
//! fails is kept and tried again; it changes no verdict.

pub mod bench;
mod clock;
pub mod embedding;
mod error;
mod index;
mod knowledge;
mod learner;
mod lessons;
pub mod observed;
pub mod retrieve;
mod seen;
pub mod share;
pub mod store;
pub mod text;
pub mod unit;

pub use clock::{HostClock, KnowledgeClock};
pub use error::KnowledgeError;
pub use knowledge::{
    Captured, EmbedReport, Knowledge, KnowledgeOptions, KnowledgeStats, MeaningStats, OutboxReport,
    ReindexReport,
};
pub use learner::{Learner, Observed, SimilarAsked};
pub use lessons::marked;
pub use seen::{SeenBefore, SeenUnit};
