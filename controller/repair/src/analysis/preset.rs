//! The thresholds of the analysis: defaults, and what the presets change.

jig_model::words! {
    /// Names a set of thresholds.
    Preset, "preset" {
        /// A higher goal, a longer window.
        Strict = "strict",
        /// The middle.
        Balanced = "balanced",
        /// A lower goal, few iterations.
        Aggressive = "aggressive",
    }
}

/// Thresholds of the analysis. Rates are fractions from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnalysisCriteria {
    /// Most iterations of a run.
    pub max_iterations: u32,
    /// Change of the pass rate in one iteration that is a trend.
    pub improvement_threshold: f64,
    /// Iterations over which stability is measured; twice as many are kept.
    pub stability_window: usize,
    /// Coefficient of variation of the pass rate that counts as stable.
    pub stability_threshold: f64,
    /// Pass rate that is the goal.
    pub target_pass_rate: f64,
    /// Lowest acceptable pass rate.
    pub min_pass_rate: f64,
    /// Loss of performance that is too much.
    pub performance_degradation_threshold: f64,
    /// Gain of performance that counts.
    pub performance_improvement_threshold: f64,
    /// Lowest acceptable confidence.
    pub min_confidence_score: f64,
    /// Confidence of a success.
    pub success_confidence_threshold: f64,
    /// Fewest tests that say something.
    pub min_test_count: f64,
    /// Iterations in a row with most tests failing after which the run should be stopped.
    pub max_consecutive_failures: usize,
}

impl AnalysisCriteria {
    /// Returns the thresholds of a preset.
    pub fn of(preset: Preset) -> Self {
        let balanced = Self {
            max_iterations: 10,
            improvement_threshold: 0.05,
            stability_window: 3,
            stability_threshold: 0.03,
            target_pass_rate: 0.95,
            min_pass_rate: 0.80,
            performance_degradation_threshold: 0.05,
            performance_improvement_threshold: 0.02,
            min_confidence_score: 0.7,
            success_confidence_threshold: 0.85,
            min_test_count: 10.0,
            max_consecutive_failures: 3,
        };
        match preset {
            Preset::Balanced => balanced,
            Preset::Strict => Self {
                max_iterations: 15,
                improvement_threshold: 0.03,
                stability_window: 5,
                target_pass_rate: 0.98,
                success_confidence_threshold: 0.9,
                ..balanced
            },
            Preset::Aggressive => Self {
                max_iterations: 5,
                improvement_threshold: 0.02,
                target_pass_rate: 0.90,
                success_confidence_threshold: 0.8,
                ..balanced
            },
        }
    }
}
