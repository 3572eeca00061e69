//! Candidates of a run: those that were tested, and those that were refused. Pure.

use crate::convergence::TestCounts;

/// A tested candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The iteration.
    pub iteration: u64,
    /// The run of the plan.
    pub run: String,
    /// The rung of the ladder of agents that proposed it.
    pub strategy: u64,
    /// Identity of its patch.
    pub patch: String,
    /// It shows where the failure is, and is never part of a repair.
    pub diagnostic: bool,
    /// Its tests.
    pub counts: TestCounts,
    /// Signature of the failure; `None` where all tests passed.
    pub signature: Option<String>,
}

/// A proposal that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedProposal {
    /// The iteration.
    pub iteration: u64,
    /// Identity of the change; empty where it is not even a patch.
    pub patch: String,
    /// Why; may quote hostile text.
    pub why: String,
}
