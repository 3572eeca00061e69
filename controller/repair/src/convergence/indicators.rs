//! Indicators computed from the counts of the iterations so far.

use super::counts::TestCounts;

/// Divisors are at least this.
const EPSILON: f64 = 1e-9;

/// Returns the share of tests that passed; 0 where there are none.
pub(super) fn pass_rate(counts: TestCounts) -> f64 {
    counts.passed as f64 / counts.total.max(1) as f64
}

/// Returns the growth of passed tests as a share of the tests before; negative for a regression.
pub(super) fn improvement(before: TestCounts, after: TestCounts) -> f64 {
    (after.passed as f64 - before.passed as f64) / before.total.max(1) as f64
}

/// Returns the mean improvement over the last iterations. A regression counts as zero: it must not
/// hide an improvement, and has its own signal.
pub(super) fn average_improvement(history: &[TestCounts], window: usize) -> f64 {
    let start = history.len().saturating_sub(window).max(1);
    let steps: Vec<f64> = history
        .get(start - 1..)
        .unwrap_or_default()
        .windows(2)
        .map(|pair| improvement(pair[0], pair[1]).max(0.0))
        .collect();
    if steps.is_empty() { 0.0 } else { steps.iter().sum::<f64>() / steps.len() as f64 }
}

/// Returns the difference of the last two pass rates; 0 for fewer than two.
pub(super) fn last_delta(rates: &[f64]) -> f64 {
    match rates {
        [.., before, after] => (after - before).abs(),
        _ => 0.0,
    }
}

/// Tells whether the last `n` pass rates agree, each with the one before it.
pub(super) fn is_stable(rates: &[f64], n: usize, threshold: f64) -> bool {
    let Some(start) = rates.len().checked_sub(n) else { return false };
    rates[start..].windows(2).all(|pair| (pair[1] - pair[0]).abs() <= threshold)
}

/// Counts how many of the last values hold, in a row.
pub(super) fn streak(values: impl DoubleEndedIterator<Item = bool>) -> usize {
    values.rev().take_while(|&holds| holds).count()
}

/// Returns how far the run has converged, from 0 to 1; shown, and never decides.
pub(super) fn score(
    rate: f64,
    delta: f64,
    average: f64,
    criteria: &super::ConvergenceCriteria,
) -> f64 {
    let share = |value: f64, of: f64| value / of.max(EPSILON);
    let progress = share(rate, criteria.target_pass_rate).min(1.0);
    let stability = (1.0 - share(delta, criteria.stability_delta_threshold)).max(0.0);
    let slowdown = (1.0 - share(average, criteria.slow_improvement_threshold)).max(0.0);
    0.5 * progress + 0.3 * stability + 0.2 * slowdown
}
