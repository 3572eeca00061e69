//! What a decision counts.

use serde::{Deserialize, Serialize};

/// Tests of one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that should have run.
    pub total: u64,
}

/// How many iterations are done, and how many are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationCounts {
    /// Number of the iteration that has just ended, from 1.
    pub current: u64,
    /// Most iterations of the run.
    pub max: u64,
}
