//! The criteria of convergence, with their defaults.

use serde::{Deserialize, Serialize};

use crate::analysis::{AnalysisCriteria, Preset};

/// Thresholds of the convergence check. Rates are fractions from 0 to 1 unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvergenceCriteria {
    /// Pass rate that is the goal.
    pub target_pass_rate: f64,
    /// Failure rate above which an iteration counts as failing badly.
    pub failure_rate_threshold: f64,
    /// Iterations in a row that fail badly and end the run.
    pub failure_rate_consecutive_limit: usize,
    /// Iterations over which improvement is averaged.
    pub avg_improvement_window: usize,
    /// Average improvement below which progress is slow.
    pub slow_improvement_threshold: f64,
    /// Average improvement below which there is no progress.
    pub plateau_improvement_threshold: f64,
    /// First iteration that can be called slow.
    pub min_iterations_for_slow_improvement: u64,
    /// First iteration that can be called a plateau.
    pub min_iterations_for_plateau: u64,
    /// Iterations in a row whose pass rates must agree.
    pub stable_iterations_required: usize,
    /// Largest difference of two pass rates that agree.
    pub stability_delta_threshold: f64,
    /// Largest improvement that counts as none.
    pub no_improvement_epsilon: f64,
    /// Iterations in a row without improvement that end a run.
    pub consecutive_no_improvement_limit: usize,
}

impl ConvergenceCriteria {
    /// Returns the criteria of a preset: how much improvement counts as progress, and how many
    /// results must agree. The goal is the same in each: every required test passes.
    pub fn of(preset: Preset) -> Self {
        let AnalysisCriteria { improvement_threshold, stability_window, .. } =
            AnalysisCriteria::of(preset);
        Self {
            slow_improvement_threshold: improvement_threshold,
            stable_iterations_required: stability_window,
            ..Self::default()
        }
    }
}

impl Default for ConvergenceCriteria {
    fn default() -> Self {
        Self {
            target_pass_rate: 1.0,
            failure_rate_threshold: 0.70,
            failure_rate_consecutive_limit: 3,
            avg_improvement_window: 3,
            slow_improvement_threshold: 0.05,
            plateau_improvement_threshold: 0.01,
            min_iterations_for_slow_improvement: 5,
            min_iterations_for_plateau: 7,
            stable_iterations_required: 2,
            stability_delta_threshold: 0.02,
            no_improvement_epsilon: 0.0,
            consecutive_no_improvement_limit: 2,
        }
    }
}
