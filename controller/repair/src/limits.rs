//! What ends a run that does not converge: limits that are used up, and results that go round in a
//! circle; the circuit breaker is asked, too. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::breaker::BrokenCircuit;
use crate::machine::RepairState;
use crate::run::Run;

/// Says why a run ends before it has converged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitReached {
    /// The last allowed iteration is done.
    #[error("all {0} iterations are done")]
    Iterations(u64),
    /// The time is over.
    #[error("the run has taken its {0} s")]
    Wall(u64),
    /// The agents have used their tokens.
    #[error("the agents have used {used} tokens of {allowed}")]
    Tokens {
        /// What was used.
        used: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// The agents have used their money.
    #[error("the agents have used {} USD of {}", usd(*.used), usd(*.allowed))]
    Money {
        /// What was used, in millionths of a US dollar.
        used: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// A board was flashed often enough.
    #[error("the board was flashed {0} times, as often as it may be")]
    FlashCycles(u64),
    /// The last four results are two failures in turns.
    #[error("the results alternate between two failures")]
    Alternates,
    /// The run does damage, or wastes its iterations.
    #[error("circuit breaker: {0}")]
    Breaker(BrokenCircuit),
}

/// Returns the limit that a run has reached. To be asked before anything that costs.
pub fn limit_reached(run: &Run, now_ms: u64) -> Option<LimitReached> {
    let limits = run.contract.limits;
    let used = run.usage;
    let elapsed_s = run.driven_ms(now_ms) / 1000;
    if run.iteration > limits.iterations {
        Some(LimitReached::Iterations(limits.iterations))
    } else if elapsed_s >= limits.wall_s {
        Some(LimitReached::Wall(limits.wall_s))
    } else if is_spent(used.tokens, limits.tokens) {
        Some(LimitReached::Tokens { used: used.tokens, allowed: limits.tokens })
    } else if is_spent(used.micro_usd, limits.micro_usd) {
        Some(LimitReached::Money { used: used.micro_usd, allowed: limits.micro_usd })
    } else if is_spent(run.flash_cycles, limits.flash_cycles) {
        Some(LimitReached::FlashCycles(limits.flash_cycles))
    } else {
        let broken = run.breaker.broken(regressions(run)).map(LimitReached::Breaker);
        alternates(run).then_some(LimitReached::Alternates).or(broken)
    }
}

impl Run {
    /// Returns how long the run has been driven, in milliseconds.
    pub fn driven_ms(&self, now_ms: u64) -> u64 {
        let waits = self.waited_ms(now_ms);
        now_ms.saturating_sub(self.begun_ms).saturating_sub(self.idle_ms).saturating_sub(waits)
    }

    /// Returns how long the run has waited for the answer that it waits for, in milliseconds.
    pub fn waited_ms(&self, now_ms: u64) -> u64 {
        if self.waits.is_some() { now_ms.saturating_sub(self.last_ms) } else { 0 }
    }

    /// Returns how long the step that is next may take. The end of the time of a run does not cut off
    /// what follows it: the report, and the recovery of a rig, which others need.
    pub fn time_left(&self, now_ms: u64) -> Duration {
        if self.state.is_final() || self.state == RepairState::ErrorRecovery {
            return Duration::MAX;
        }
        let allowed = self.contract.limits.wall_s.saturating_mul(1000);
        Duration::from_millis(allowed.saturating_sub(self.driven_ms(now_ms)))
    }
}

/// Counts the candidates with which fewer tests pass than without a patch.
fn regressions(run: &Run) -> u32 {
    let before = run.baseline.as_ref().map_or(0, |baseline| baseline.counts.passed);
    let worse = run.attempts.iter().filter(|one| !one.diagnostic && one.counts.passed < before);
    let patches: BTreeSet<_> = worse.map(|one| &one.patch).collect();
    u32::try_from(patches.len()).unwrap_or(u32::MAX)
}

/// Tells whether nothing is left. Where nothing is allowed, a run may go on that uses nothing: an
/// agent without costs, an emulated board.
fn is_spent(used: u64, allowed: u64) -> bool {
    used > 0 && used >= allowed
}

fn alternates(run: &Run) -> bool {
    let repairs = run.attempts.iter().filter(|attempt| !attempt.diagnostic);
    let signatures: Vec<_> = repairs.map(|attempt| &attempt.signature).collect();
    match signatures.as_slice() {
        [.., a, b, c, d] => a == c && b == d && a != b && a.is_some() && b.is_some(),
        _ => false,
    }
}

fn usd(micro: u64) -> String {
    format!("{:.2}", micro as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convergence::TestCounts;
    use crate::journal::{FailedBaseline, Usage};
    use crate::runs_for_tests::{attempt, begun};
    use crate::task::RepairLimits;

    fn run() -> Run {
        begun(1000)
    }

    #[test]
    fn every_limit_is_reached_and_not_before() {
        let limits = RepairLimits::default();
        let reached = |change: fn(&mut Run, u64), amount| {
            let mut run = run();
            change(&mut run, amount);
            limit_reached(&run, 1000)
        };
        let iterations = |run: &mut Run, n| run.iteration = n;
        assert_eq!(reached(iterations, limits.iterations), None);
        assert_eq!(reached(iterations, limits.iterations + 1), Some(LimitReached::Iterations(10)));
        let tokens = |run: &mut Run, tokens| run.usage = Usage { tokens, micro_usd: 0 };
        assert_eq!(reached(tokens, limits.tokens - 1), None);
        let text = reached(tokens, limits.tokens).unwrap().to_string();
        assert_eq!(text, "the agents have used 200000 tokens of 200000");
        let money = |run: &mut Run, micro_usd| run.usage = Usage { tokens: 0, micro_usd };
        assert_eq!(reached(money, limits.micro_usd - 1), None);
        let text = reached(money, limits.micro_usd).unwrap().to_string();
        assert_eq!(text, "the agents have used 5.00 USD of 5.00");
        let flash = |run: &mut Run, n| run.flash_cycles = n;
        assert_eq!(reached(flash, limits.flash_cycles - 1), None);
        assert_eq!(reached(flash, limits.flash_cycles), Some(LimitReached::FlashCycles(200)));
        let mut nothing_allowed = run();
        let limits_of_none = &mut nothing_allowed.contract.limits;
        (limits_of_none.tokens, limits_of_none.micro_usd, limits_of_none.flash_cycles) = (0, 0, 0);
        assert_eq!(limit_reached(&nothing_allowed, 1000), None);
        let end = 1000 + limits.wall_s * 1000;
        assert_eq!(limit_reached(&run(), end - 1), None);
        assert_eq!(limit_reached(&run(), end), Some(LimitReached::Wall(1800)));
    }

    #[test]
    fn the_circuit_breaker_is_a_limit() {
        let mut run = run();
        run.breaker.rollbacks = 5;
        let reached = limit_reached(&run, 1000).unwrap();
        assert_eq!(reached, LimitReached::Breaker(BrokenCircuit::Rollbacks(5)));
        assert!(
            reached.to_string().starts_with("circuit breaker: 5 patches in a row"),
            "{reached}"
        );
        let broken = |patches: &[&str], passed| {
            let mut run = begun(1000);
            let counts = TestCounts { passed: 3, total: 4 };
            let (signature, id, image) = (String::new(), String::new(), String::new());
            run.baseline =
                Some(FailedBaseline { counts, signature, run: id, image, silent: false });
            let counts = TestCounts { passed, total: 4 };
            run.attempts = patches.iter().map(|one| attempt(one, counts, Some("x"))).collect();
            limit_reached(&run, 1000)
        };
        let five = ["a", "b", "c", "d", "e"];
        let regressions = LimitReached::Breaker(BrokenCircuit::Regressions(5));
        assert_eq!(broken(&five, 2), Some(regressions));
        assert_eq!(broken(&five, 3), None, "as many as without a patch");
        // The same candidate, tested again behind a failure of the rig.
        assert_eq!(broken(&["a", "b", "c", "d", "d"], 2), None);
    }

    #[test]
    fn two_failures_in_turns_end_a_run() {
        let (a, b, c) = (Some("a"), Some("b"), Some("c"));
        for (signatures, ends) in [
            (&[a, b, a, b][..], true),
            (&[c, a, b, a, b], true),
            (&[a, b, a], false),
            (&[a, a, a, a], false),
            (&[a, b, c, b], false),
            (&[a, None, a, None], false),
        ] {
            let mut run = run();
            let counts = TestCounts { passed: 1, total: 2 };
            run.attempts = signatures.iter().map(|one| attempt("", counts, *one)).collect();
            let expected = ends.then_some(LimitReached::Alternates);
            assert_eq!(limit_reached(&run, 1000), expected, "{signatures:?}");
            // What only shows a failure goes round in no circle.
            run.attempts.iter_mut().for_each(|one| one.diagnostic = true);
            assert_eq!(limit_reached(&run, 1000), None, "{signatures:?}");
        }
    }
}
