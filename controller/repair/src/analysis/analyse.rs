//! The analysis of a history.

use serde::{Deserialize, Serialize};

use super::iteration::IterationResult;
use super::preset::{AnalysisCriteria, Preset};
use super::scores;

jig_model::words! {
    /// Names the direction of the pass rate.
    Trend, "trend" {
        /// It rises.
        Improving = "improving",
        /// It stays.
        Stable = "stable",
        /// It falls.
        Declining = "declining",
        /// It changes, and not clearly.
        Mixed = "mixed",
    }
}

/// Result of an analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvergenceAnalysis {
    /// The history counts as converged.
    pub is_converged: bool,
    /// How far it has converged, from 0 to 1.
    pub convergence_score: f64,
    /// Direction of the pass rate.
    pub improvement_trend: Trend,
    /// How steady the pass rate is, from 0 to 1.
    pub stability_score: f64,
    /// How far the figures can be trusted, from 0 to 1.
    pub confidence_level: f64,
    /// Iterations with a regression.
    pub regression_count: usize,
    /// Improvements from one iteration to the next.
    pub total_improvements: usize,
    /// Number of iterations that were looked at.
    pub pass_rate_trend_len: usize,
    /// Last iterations in a row in which most tests failed.
    pub consecutive_failures: usize,
    /// What the figures mean.
    #[serde(skip)]
    pub reasons: Vec<String>,
    /// What should be done.
    #[serde(skip)]
    pub recommendations: Vec<String>,
}

/// Analyses the last iterations of a run: twice as many as the stability window.
pub fn analyse(history: &[IterationResult], preset: Preset) -> ConvergenceAnalysis {
    let criteria = AnalysisCriteria::of(preset);
    let kept = history.len().saturating_sub(2 * criteria.stability_window);
    let history = &history[kept..];
    let consecutive_failures = scores::consecutive_failures(history);
    if history.len() < 2 {
        return ConvergenceAnalysis {
            is_converged: false,
            convergence_score: 0.0,
            improvement_trend: Trend::Stable,
            stability_score: 0.0,
            confidence_level: 0.0,
            regression_count: 0,
            total_improvements: 0,
            pass_rate_trend_len: 0,
            consecutive_failures,
            reasons: vec!["fewer than two iterations".to_owned()],
            recommendations: vec!["run more iterations".to_owned()],
        };
    }
    let mut analysis = ConvergenceAnalysis {
        is_converged: false,
        convergence_score: scores::of_convergence(history, &criteria),
        improvement_trend: trend(history, &criteria),
        stability_score: scores::of_stability(history, &criteria),
        confidence_level: scores::of_trust(history, &criteria),
        regression_count: history.iter().filter(|result| result.regression_detected).count(),
        total_improvements: scores::improvements(history, &criteria),
        pass_rate_trend_len: history.len(),
        consecutive_failures,
        reasons: Vec::new(),
        recommendations: Vec::new(),
    };
    analysis.is_converged = is_converged(history, &criteria, &analysis);
    explain(&mut analysis, &criteria);
    analysis
}

fn trend(history: &[IterationResult], criteria: &AnalysisCriteria) -> Trend {
    let limit = criteria.improvement_threshold;
    match scores::trend_slope(history) {
        None => Trend::Stable,
        Some(slope) if slope > limit => Trend::Improving,
        Some(slope) if slope < -limit => Trend::Declining,
        Some(slope) if slope.abs() <= limit / 2.0 => Trend::Stable,
        Some(_) => Trend::Mixed,
    }
}

fn is_converged(
    history: &[IterationResult],
    criteria: &AnalysisCriteria,
    analysis: &ConvergenceAnalysis,
) -> bool {
    let ConvergenceAnalysis {
        convergence_score: score,
        stability_score: stability,
        confidence_level: confidence,
        improvement_trend: trend,
        ..
    } = *analysis;
    let iterations = history.len();
    let quick = iterations >= 3
        && score >= 0.9
        && stability >= 0.8
        && matches!(trend, Trend::Improving | Trend::Stable);
    let acceptable = history.last().is_some_and(|last| {
        last.pass_rate >= criteria.min_pass_rate
            && last.confidence_score >= criteria.min_confidence_score
    });
    let steady = iterations >= criteria.stability_window
        && score >= 0.7
        && stability >= 0.6
        && confidence >= 0.6
        && acceptable;
    let late = iterations as f64 >= f64::from(criteria.max_iterations) * 0.8
        && score >= 0.6
        && stability >= 0.5;
    quick || steady || late
}

/// Adds what the figures mean, and what to do about them.
fn explain(analysis: &mut ConvergenceAnalysis, criteria: &AnalysisCriteria) {
    let graded = |value: f64, good: f64, fair: f64| {
        if value >= good {
            "high"
        } else if value >= fair {
            "fair"
        } else {
            "low"
        }
    };
    let score = graded(analysis.convergence_score, 0.8, 0.6);
    let stability = graded(analysis.stability_score, 0.8, 0.5);
    let confidence = graded(analysis.confidence_level, 0.8, 0.6);
    analysis.reasons = vec![
        format!("the convergence score is {score}"),
        match analysis.improvement_trend {
            Trend::Improving => "the pass rate rises".to_owned(),
            Trend::Stable => "the pass rate stays".to_owned(),
            Trend::Declining => "the pass rate falls".to_owned(),
            Trend::Mixed => "the pass rate changes without a clear direction".to_owned(),
        },
        format!("the stability is {stability}"),
        format!("the confidence is {confidence}"),
    ];
    let failures = analysis.consecutive_failures;
    let advice = [
        (score == "low", "improve more before expecting convergence".to_owned()),
        (
            analysis.improvement_trend == Trend::Declining,
            "check whether the last changes broke something".to_owned(),
        ),
        (analysis.improvement_trend == Trend::Mixed, "collect more results".to_owned()),
        (stability == "fair", "look at a longer window".to_owned()),
        (stability == "low", "check the rig and the way the tests run".to_owned()),
        (confidence == "low", "run more tests".to_owned()),
        (
            failures >= criteria.max_consecutive_failures,
            format!("consider stopping: {failures} failed iterations in a row"),
        ),
    ];
    analysis.recommendations =
        advice.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect();
}
