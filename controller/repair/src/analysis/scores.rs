//! The scores from which an analysis is made, each from 0 to 1.

use super::iteration::IterationResult;
use super::preset::AnalysisCriteria;
use super::slope::slope;

/// Weights of the scores of pass rate, stability, confidence, performance and regressions.
const WEIGHTS: [f64; 5] = [0.3, 0.25, 0.2, 0.15, 0.1];

/// A pass rate below this is a failed iteration.
const FAILED_BELOW: f64 = 0.5;

fn tail<T>(all: &[T], n: usize) -> &[T] {
    &all[all.len().saturating_sub(n)..]
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn rates(history: &[IterationResult]) -> impl ExactSizeIterator<Item = f64> + '_ {
    history.iter().map(|result| result.pass_rate)
}

/// Returns the slope of the pass rate over the last five iterations; `None` for fewer than three.
pub(super) fn trend_slope(history: &[IterationResult]) -> Option<f64> {
    slope(&rates(tail(history, 5)).collect::<Vec<f64>>())
}

fn of_pass_rate(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    let rate = history.last().map_or(0.0, |result| result.pass_rate);
    if rate >= criteria.target_pass_rate {
        let bonus = trend_slope(history).map_or(0.0, |slope| (slope * 10.0).min(0.2));
        (0.8 + bonus).min(1.0)
    } else if rate >= criteria.min_pass_rate {
        0.5
    } else {
        0.2
    }
}

/// Rates stability by the coefficient of variation of the pass rate in the window.
pub(super) fn of_stability(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    if history.len() < criteria.stability_window {
        return 0.0;
    }
    let window = tail(history, criteria.stability_window);
    let centre = mean(rates(window));
    if centre == 0.0 {
        return 0.0;
    }
    let variance = mean(rates(window).map(|rate| (rate - centre) * (rate - centre)));
    let variation = variance.sqrt() / centre;
    match variation / criteria.stability_threshold {
        _ if variation <= criteria.stability_threshold => 1.0,
        _ if variation <= criteria.stability_threshold * 2.0 => 0.7,
        _ if variation <= criteria.stability_threshold * 3.0 => 0.4,
        _ => 0.1,
    }
}

fn of_confidence(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    let average = mean(tail(history, 3).iter().map(|result| result.confidence_score));
    if average >= criteria.success_confidence_threshold {
        1.0
    } else if average >= criteria.min_confidence_score {
        0.7
    } else {
        0.3
    }
}

fn of_performance(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    let limit = criteria.performance_degradation_threshold;
    if history.iter().any(|result| result.performance_degradation > limit) {
        return 0.3;
    }
    let [first, .., last] = tail(history, 3) else { return 0.5 };
    let change = last.performance_score - first.performance_score;
    if change >= criteria.performance_improvement_threshold {
        0.9
    } else if change >= -limit {
        0.7
    } else {
        0.4
    }
}

fn of_regressions(history: &[IterationResult]) -> f64 {
    match tail(history, 3).iter().filter(|result| result.regression_detected).count() {
        0 => 1.0,
        1 => 0.6,
        _ => 0.2,
    }
}

/// Returns the weighted sum of all scores.
pub(super) fn of_convergence(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    let scores = [
        of_pass_rate(history, criteria),
        of_stability(history, criteria),
        of_confidence(history, criteria),
        of_performance(history, criteria),
        of_regressions(history),
    ];
    scores.iter().zip(WEIGHTS).map(|(score, weight)| score * weight).sum()
}

/// Rates how far the figures can be trusted: enough tests, few errors, no failed iterations.
pub(super) fn of_trust(history: &[IterationResult], criteria: &AnalysisCriteria) -> f64 {
    if history.len() < criteria.stability_window {
        return 0.5;
    }
    let window = tail(history, criteria.stability_window);
    let tests = mean(window.iter().map(|result| result.test_count as f64));
    let enough = if tests < criteria.min_test_count { 0.5 } else { 1.0 };
    let error_rate =
        |result: &IterationResult| result.error_count as f64 / result.test_count.max(1) as f64;
    let errors = mean(window.iter().map(error_rate));
    let clean = if errors <= 0.01 {
        1.0
    } else if errors <= 0.05 {
        0.7
    } else {
        0.3
    };
    let steady = match consecutive_failures(history) {
        0 => 1.0,
        1 | 2 => 0.6,
        _ => 0.2,
    };
    (enough + clean + steady) / 3.0
}

/// Counts the last iterations in a row in which most tests failed.
pub(super) fn consecutive_failures(history: &[IterationResult]) -> usize {
    history.iter().rev().take_while(|result| result.pass_rate < FAILED_BELOW).count()
}

/// Counts improvements of the pass rate and of the confidence from one iteration to the next.
pub(super) fn improvements(history: &[IterationResult], criteria: &AnalysisCriteria) -> usize {
    let of_pair = |pair: &[IterationResult]| {
        let rate = pair[1].pass_rate > pair[0].pass_rate + criteria.improvement_threshold;
        let confidence = pair[1].confidence_score > pair[0].confidence_score + 0.05;
        usize::from(rate) + usize::from(confidence)
    };
    history.windows(2).map(of_pair).sum()
}
