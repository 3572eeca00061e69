//! What an analysis is told of an iteration.

use serde::{Deserialize, Serialize};

/// Result of one iteration. Rates and scores are fractions from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct IterationResult {
    /// Number of the iteration, from 1.
    pub iteration: u64,
    /// Tests that ran.
    pub test_count: u64,
    /// Tests that passed.
    pub pass_count: u64,
    /// Tests that failed.
    pub fail_count: u64,
    /// Tests that were skipped.
    pub skip_count: u64,
    /// Tests that could not be judged.
    pub error_count: u64,
    /// Share of tests that passed.
    pub pass_rate: f64,
    /// Time of the tests in seconds.
    pub execution_time: f64,
    /// Performance of the firmware.
    pub performance_score: f64,
    /// Confidence in the result.
    pub confidence_score: f64,
    /// A test that passed before fails.
    #[serde(default)]
    pub regression_detected: bool,
    /// Loss of performance.
    #[serde(default)]
    pub performance_degradation: f64,
}
