//! What a plateau means, by the execution mode of the loop.

jig_model::words! {
    /// Names the ways to get a decision while a run is under way.
    ExecutionMode, "execution mode" {
        /// A person at a terminal.
        Interactive = "interactive",
        /// No person; the pipeline must not be blocked.
        Ci = "ci",
        /// No person; other strategies may be tried.
        Auto = "auto",
    }
}

jig_model::words! {
    /// Names what follows a plateau.
    PlateauOutcome, "plateau outcome" {
        /// A person decides.
        HumanReview = "HUMAN_REVIEW",
        /// The best result so far is accepted, with a warning.
        SuccessWithWarning = "SUCCESS_WITH_WARNING",
        /// The next iteration uses another strategy.
        StrategySwitch = "STRATEGY_SWITCH",
        /// The run has failed.
        Failure = "FAILURE",
    }
}

/// How plateaus are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlateauStrategy {
    /// Whether a person can be asked.
    pub mode: ExecutionMode,
    /// In CI, a plateau is a warning and not a failure.
    pub ci_accepts: bool,
    /// Most changes of strategy in a run.
    pub max_strategy_switches: u32,
}

impl PlateauStrategy {
    /// Returns the default of a mode: CI accepts with a warning, two changes of strategy.
    pub fn of(mode: ExecutionMode) -> Self {
        Self { mode, ci_accepts: true, max_strategy_switches: 2 }
    }
}

/// Says what follows a plateau after a number of changes of strategy.
pub fn handle_plateau(strategy: PlateauStrategy, switches: u32) -> PlateauOutcome {
    match strategy.mode {
        ExecutionMode::Interactive => PlateauOutcome::HumanReview,
        ExecutionMode::Ci if strategy.ci_accepts => PlateauOutcome::SuccessWithWarning,
        ExecutionMode::Auto if switches < strategy.max_strategy_switches => {
            PlateauOutcome::StrategySwitch
        }
        ExecutionMode::Ci | ExecutionMode::Auto => PlateauOutcome::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_is_handled_by_mode() {
        use ExecutionMode::{Auto, Ci, Interactive};
        let strict = PlateauStrategy { ci_accepts: false, ..PlateauStrategy::of(Ci) };
        for (strategy, switches, outcome) in [
            (PlateauStrategy::of(Interactive), 9, PlateauOutcome::HumanReview),
            (PlateauStrategy::of(Ci), 0, PlateauOutcome::SuccessWithWarning),
            (strict, 0, PlateauOutcome::Failure),
            (PlateauStrategy::of(Auto), 0, PlateauOutcome::StrategySwitch),
            (PlateauStrategy::of(Auto), 1, PlateauOutcome::StrategySwitch),
            (PlateauStrategy::of(Auto), 2, PlateauOutcome::Failure),
        ] {
            assert_eq!(handle_plateau(strategy, switches), outcome, "{strategy:?} {switches}");
        }
    }
}
