//! The store of record: one SQLite file with all units, their history, links and feedback.
//!
//! Owns what is durable. A change is durable when the call that makes it returns. Each change of a
//! unit gets the next number of the change sequence; the index, the cache and replicas follow it.
//!
//! Refuses to rank or to search text: that is the index's.

mod alternation;
mod learn;
mod outbox;
mod past;
mod read;
mod schema;
mod write;

pub use learn::{CaptureRules, Learnt, LearntUnit};
pub use outbox::{Outbox, OutboxItem};
pub use read::{HistoryLine, Link, StoreCounts};
pub use schema::KnowledgeStore;
pub use write::{Inserted, LinkKind};

pub(crate) use read::ChangedUnit;

#[cfg(test)]
mod disk_tests;
#[cfg(test)]
mod tests;
