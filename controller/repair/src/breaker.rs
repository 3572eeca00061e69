//! The circuit breaker: ends a run that does damage, or wastes its iterations. Pure.
//!
//! # Design
//! The specification wants it for repeated rollbacks and for accumulated risk, and names five as its
//! threshold of regressions. A rig that fails again and again has its own end, in [`crate::recovery`].

use crate::journal::Fact;

/// Patches in a row that are taken back, and patches that break what passed.
const THRESHOLD: u32 = 5;

/// Risk of all patches that no person approved, in percent: that of three patches, each of which is
/// just allowed where the policy says nothing.
const MOST_RISK: u64 = 3 * 70;

/// What the circuit breaker counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CircuitBreaker {
    /// How many patches in a row were taken back before they were tested.
    pub rollbacks: u32,
    /// Risk in percent of all patches that were applied and that no person approved, added up.
    pub risk: u64,
}

/// Says why the circuit breaker ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenCircuit {
    /// Patches were taken back, one after the other.
    #[error("{0} patches in a row were taken back before they could be tested")]
    Rollbacks(u32),
    /// Patches broke what passed without them.
    #[error("with {0} patches fewer tests passed than without any")]
    Regressions(u32),
    /// The patches are risky all together.
    #[error(
        "the patches have a risk of {0} percent together, and {MOST_RISK} is allowed unapproved"
    )]
    Risk(u64),
}

impl CircuitBreaker {
    /// Takes in what a step has found out.
    pub fn learn(&mut self, fact: &Fact) {
        match fact {
            Fact::Applied { risk, .. } => self.risk = self.risk.saturating_add(*risk),
            Fact::RolledBack => self.rollbacks += 1,
            Fact::Tested { .. } => self.rollbacks = 0,
            _ => {}
        }
    }

    /// Says whether it ends a run with so many candidates that broke what passed.
    pub fn broken(&self, regressions: u32) -> Option<BrokenCircuit> {
        if self.rollbacks >= THRESHOLD {
            Some(BrokenCircuit::Rollbacks(self.rollbacks))
        } else if regressions >= THRESHOLD {
            Some(BrokenCircuit::Regressions(regressions))
        } else {
            (self.risk > MOST_RISK).then_some(BrokenCircuit::Risk(self.risk))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convergence::TestCounts;

    fn applied(risk: u64) -> Fact {
        Fact::Applied { commit: String::new(), risk }
    }

    fn learnt(facts: impl IntoIterator<Item = Fact>) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        facts.into_iter().for_each(|fact| breaker.learn(&fact));
        breaker
    }

    #[test]
    fn patches_that_are_taken_back_in_a_row_end_a_run() {
        let back = |times| std::iter::repeat_n(Fact::RolledBack, times);
        assert_eq!(learnt(back(4)).broken(0), None);
        assert_eq!(learnt(back(5)).broken(0), Some(BrokenCircuit::Rollbacks(5)));
        let counts = TestCounts { passed: 1, total: 2 };
        let tested = Fact::Tested { run: String::new(), counts, signature: None };
        let with_a_test = back(4).chain([tested]).chain(back(4));
        assert_eq!(learnt(with_a_test).broken(0), None);
    }

    #[test]
    fn risk_adds_up() {
        assert_eq!(learnt([applied(70), applied(70), applied(70)]).broken(0), None);
        let risky = learnt([applied(70), applied(70), applied(71)]).broken(0).unwrap();
        assert_eq!(risky, BrokenCircuit::Risk(211));
        assert!(risky.to_string().contains("211 percent together, and 210"), "{risky}");
    }

    #[test]
    fn patches_that_break_what_passed_end_a_run() {
        let breaker = CircuitBreaker::default();
        assert_eq!(breaker.broken(4), None);
        assert_eq!(breaker.broken(5), Some(BrokenCircuit::Regressions(5)));
    }
}
