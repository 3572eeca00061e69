//! Memory: what is kept of a session for later ones, and instructions that are revised by it.
//!
//! **Owns** cases, how often a failure class has come back, and the versions of instructions. **Refuses** to
//! change an instruction by itself: a revision is proposed, and used after a person has approved it.
//!
//! # Design
//! *Two memories.* What a session was is its journal. What outlives it is a case: kept here with its class, so
//! that classes can be counted, and handed to the knowledge of the lab, where it is found again by its words.
//! The operator knows no store of knowledge: the program binds [`CaseMemory`].
//!
//! *An instruction holds no word of a target.* A revision is made of names of tools, error codes and causes,
//! which are closed lists, and of nothing that a log, a file or a person has said. So no text can instruct a
//! later planner by failing.

mod case;
mod revision;
mod store;
#[cfg(test)]
mod tests;

use jig_model::protocol::BoxFuture;

pub use self::case::{CaseRole, FailureClass, SessionCase};
pub use self::revision::{CaseComparison, InstructionRevision, RevisionStatus, RoleInstruction};
pub use self::store::{CaseStore, CaseStoreError, KeptCase, REPEATS};

use crate::error::OperatorError;

/// What became of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RememberedCase {
    /// The unit of knowledge that was made of it, or that it was added to.
    pub unit: Option<String>,
}

/// Keeps cases. The program binds it to the stores of the host.
pub trait CaseMemory: Send + Sync {
    /// Keeps a case. A session is kept once, however often it is handed in.
    fn keep(&self, case: SessionCase) -> BoxFuture<'_, Result<RememberedCase, OperatorError>>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemory;

impl CaseMemory for NoMemory {
    fn keep(&self, _: SessionCase) -> BoxFuture<'_, Result<RememberedCase, OperatorError>> {
        Box::pin(async { Ok(RememberedCase::default()) })
    }
}
