//! The audit log: what was asked at the places of a rig, by whom, and whether it was let in.
//!
//! **Owns** the files in the state folder, their format and the chain of their lines. **Refuses** to
//! decide anything, and to keep what a caller sends: no image, no plan, no input, no secret.
//!
//! # Design
//! *A line before the act.* It is on the disk before the command touches the place. The run that the
//! command makes has a line of its own, because it has no name before.
//!
//! *Each line has the SHA-256 of the one before.* A line that is changed, taken out or put in breaks
//! the chain at the next one. A chain does not show that its end was cut off, and the owner of the
//! files can write a new one: note the last hash elsewhere, and `jig audit verify --contains` finds it.
//!
//! *One writer at a time*, by a lock on a file of its own, for a log that is sealed gets another name.
//! What a writer that was killed has left of a line was never acted upon: the next one takes it off,
//! and says so in its line.
//!
//! *A file that is full is sealed*: it gets the number of its last line as its name, and is never
//! written again. The first line of the next file has the hash of the last line of the sealed one.

mod error;
mod line;
mod log;
mod reader;
#[cfg(test)]
mod tests;

pub use error::AuditError;
pub use line::{AuditDecision, AuditEntry, AuditLease, AuditLine};
pub use log::AuditLog;
pub use reader::{AuditChain, AuditFinding, AuditItem, AuditReader};
