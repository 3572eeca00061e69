//! The decision: the outcomes in the order in which they are tried.

use serde::{Deserialize, Serialize};

use super::counts::{IterationCounts, TestCounts};
use super::criteria::ConvergenceCriteria;
use super::indicators::{
    average_improvement, improvement, is_stable, last_delta, pass_rate, score, streak,
};

jig_model::words! {
    /// Names how a run ends.
    ConvergenceOutcome, "convergence outcome" {
        /// The goal is reached, and the result is stable.
        Success = "success",
        /// The goal is not reached, and the current strategy can do no better.
        ConvergedWithImprovement = "converged_with_improvement",
        /// Nothing improves any more.
        Plateaued = "plateaued",
        /// Most tests fail, again and again.
        Failure = "failure",
        /// The last allowed iteration is done.
        Timeout = "timeout",
    }
}

/// Result of a convergence check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConvergenceDecision {
    /// How the run ends; `None` if it goes on.
    pub outcome: Option<ConvergenceOutcome>,
    /// The run goes on, but slowly: the strategy should change.
    pub slow_improvement: bool,
    /// Mean improvement over the window.
    pub average_improvement: f64,
    /// Difference of the last two pass rates.
    pub last_stability_delta: f64,
    /// How far the run has converged, from 0 to 1.
    pub convergence_score: f64,
    /// The figures that decided, in words.
    #[serde(skip)]
    pub reason: String,
}

/// Decides whether a run has converged. Without any iteration it goes on.
///
/// The limit of iterations decides before everything else, so that no rule can make a run endless.
pub fn decide(
    history: &[TestCounts],
    iterations: IterationCounts,
    criteria: &ConvergenceCriteria,
) -> ConvergenceDecision {
    let rates: Vec<f64> = history.iter().copied().map(pass_rate).collect();
    let rate = rates.last().copied().unwrap_or(0.0);
    let average = average_improvement(history, criteria.avg_improvement_window);
    let delta = last_delta(&rates);
    let check = Check { history, iterations, criteria, rates: &rates, rate, average, delta };
    let ended = if history.is_empty() { None } else { check.outcome() };
    let slow = ended.is_none() && check.is_slow();
    let (outcome, reason) = match ended {
        Some((outcome, reason)) => (Some(outcome), reason),
        None if slow => (None, check.slow_text()),
        None => (None, "next iteration".to_owned()),
    };
    ConvergenceDecision {
        outcome,
        slow_improvement: slow,
        average_improvement: average,
        last_stability_delta: delta,
        convergence_score: score(rate, delta, average, criteria),
        reason,
    }
}

struct Check<'a> {
    history: &'a [TestCounts],
    iterations: IterationCounts,
    criteria: &'a ConvergenceCriteria,
    rates: &'a [f64],
    rate: f64,
    average: f64,
    delta: f64,
}

impl Check<'_> {
    fn outcome(&self) -> Option<(ConvergenceOutcome, String)> {
        use ConvergenceOutcome as O;
        let rules = [
            (O::Timeout, self.timed_out()),
            (O::Success, self.succeeded()),
            (O::Failure, self.failed()),
            (O::Plateaued, self.plateaued()),
            (O::ConvergedWithImprovement, self.did_its_best()),
        ];
        rules.into_iter().find_map(|(outcome, reason)| Some((outcome, reason?)))
    }

    fn timed_out(&self) -> Option<String> {
        let IterationCounts { current, max } = self.iterations;
        (current >= max).then(|| format!("iteration {current} of at most {max}"))
    }

    fn succeeded(&self) -> Option<String> {
        let ConvergenceCriteria {
            target_pass_rate: target,
            stable_iterations_required: n,
            stability_delta_threshold: threshold,
            ..
        } = *self.criteria;
        (self.rate >= target && is_stable(self.rates, n, threshold)).then(|| {
            format!(
                "pass rate {} >= {}, stable over {n} iterations (difference {} <= {})",
                percent(self.rate),
                percent(target),
                percent(self.delta),
                percent(threshold)
            )
        })
    }

    fn failed(&self) -> Option<String> {
        let limit = self.criteria.failure_rate_threshold;
        let fails_badly = |rate: &f64| 1.0 - rate > limit;
        let bad = streak(self.rates.iter().map(fails_badly));
        let rate = format!("failure rate {} > {}", percent(1.0 - self.rate), percent(limit));
        if bad >= self.criteria.failure_rate_consecutive_limit {
            return Some(format!("{rate} in {bad} iterations in a row"));
        }
        let stuck = self.without_improvement();
        (fails_badly(&self.rate) && stuck >= self.criteria.consecutive_no_improvement_limit)
            .then(|| format!("{rate}, and {stuck} iterations in a row without improvement"))
    }

    fn plateaued(&self) -> Option<String> {
        let limit = self.criteria.plateau_improvement_threshold;
        let current = self.iterations.current;
        let long_enough = current >= self.criteria.min_iterations_for_plateau;
        (long_enough && self.average < limit).then(|| {
            let average = percent(self.average);
            format!("average improvement {average} < {} after {current} iterations", percent(limit))
        })
    }

    fn did_its_best(&self) -> Option<String> {
        let passed = self.history.last()?.passed;
        let best = self.history.iter().map(|counts| counts.passed).max()?;
        let stuck = self.without_improvement();
        let applies = self.rate < self.criteria.target_pass_rate
            && passed == best
            && self.is_slow()
            && stuck >= self.criteria.consecutive_no_improvement_limit;
        applies.then(|| {
            format!(
                "best result is {best} passed tests ({} < {}), {stuck} iterations in a row without \
                 improvement",
                percent(self.rate),
                percent(self.criteria.target_pass_rate)
            )
        })
    }

    fn is_slow(&self) -> bool {
        self.iterations.current >= self.criteria.min_iterations_for_slow_improvement
            && self.average < self.criteria.slow_improvement_threshold
    }

    fn slow_text(&self) -> String {
        format!(
            "slow: average improvement {} < {} after {} iterations",
            percent(self.average),
            percent(self.criteria.slow_improvement_threshold),
            self.iterations.current
        )
    }

    fn without_improvement(&self) -> usize {
        let epsilon = self.criteria.no_improvement_epsilon;
        streak(self.history.windows(2).map(|pair| improvement(pair[0], pair[1]) <= epsilon))
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
