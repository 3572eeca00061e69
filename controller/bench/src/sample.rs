//! Numbers, and what is asked of them.

use serde::Serialize;

/// What was measured, round by round.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Samples(pub(super) Vec<f64>);

impl Samples {
    /// Returns the middle one; the mean of two for an even count, and 0 for none.
    pub(super) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        match (sorted.get(half), sorted.len() % 2) {
            (None, _) => 0.0,
            (Some(middle), 1) => *middle,
            (Some(upper), _) => (sorted[half - 1] + upper) / 2.0,
        }
    }
}

/// What is asked of a median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(super) enum Goal {
    /// At most so many times the floor, plus a constant.
    Within { factor: f64, plus: f64 },
    /// At least this share of the floor.
    Share { least: f64 },
    /// Below an absolute limit.
    Below { limit: f64 },
    /// At least an absolute limit.
    AtLeast { limit: f64 },
    /// Nothing; shown for comparison.
    None,
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub(super) struct BenchRow {
    pub(super) what: String,
    pub(super) unit: &'static str,
    /// What the floor is, for people.
    pub(super) floor_is: String,
    pub(super) floor: Samples,
    pub(super) ours: Samples,
    pub(super) goal: Goal,
}

impl BenchRow {
    /// Builds a row without a floor.
    pub(super) fn alone(what: &str, unit: &'static str, ours: Vec<f64>, limit: f64) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            floor_is: String::new(),
            floor: Samples::default(),
            ours: Samples(ours),
            goal: Goal::Below { limit },
        }
    }

    /// Returns ours in floors; none without a floor.
    pub(super) fn ratio(&self) -> Option<f64> {
        let floor = self.floor.median();
        (floor > 0.0).then(|| self.ours.median() / floor)
    }

    /// Tells whether the goal is met; none where there is no goal.
    pub(super) fn met(&self) -> Option<bool> {
        let (floor, ours) = (self.floor.median(), self.ours.median());
        match self.goal {
            Goal::Within { factor, plus } => Some(ours <= factor * floor + plus),
            Goal::Share { least } => Some(ours >= least * floor),
            Goal::Below { limit } => Some(ours < limit),
            Goal::AtLeast { limit } => Some(ours >= limit),
            Goal::None => None,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Within { factor, plus: 0.0 } => write!(f, "<= {factor:.2}x"),
            Self::Within { factor, plus } => write!(f, "<= {factor:.2}x + {plus:.0}"),
            Self::Share { least } => write!(f, ">= {least:.2}x"),
            Self::Below { limit } => write!(f, "< {limit:.0}"),
            Self::AtLeast { limit } => write!(f, ">= {limit:.0}"),
            Self::None => write!(f, "-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(floor: &[f64], ours: &[f64], goal: Goal) -> BenchRow {
        let (floor, ours) = (Samples(floor.to_vec()), Samples(ours.to_vec()));
        BenchRow { floor, goal, ..BenchRow::alone("x", "ms", ours.0, 0.0) }
    }

    #[test]
    fn a_median_shrugs_off_the_one_slow_round() {
        assert_eq!(Samples(vec![3.0, 900.0, 1.0]).median(), 3.0);
        assert_eq!(Samples(vec![4.0, 1.0, 2.0, 900.0]).median(), 3.0);
        assert_eq!(Samples::default().median(), 0.0);
    }

    #[test]
    fn each_goal_is_missed_by_a_little() {
        let within = Goal::Within { factor: 1.1, plus: 30.0 };
        assert_eq!(row(&[100.0], &[140.0], within).met(), Some(true));
        assert_eq!(row(&[100.0], &[140.1], within).met(), Some(false));
        let share = Goal::Share { least: 0.8 };
        assert_eq!(row(&[100.0], &[80.0], share).met(), Some(true));
        assert_eq!(row(&[100.0], &[79.9], share).met(), Some(false));
        assert_eq!(row(&[], &[10.0], Goal::Below { limit: 10.0 }).met(), Some(false));
        assert_eq!(row(&[], &[10.0], Goal::None).met(), None);
    }

    #[test]
    fn a_ratio_needs_a_floor() {
        assert_eq!(row(&[2.0], &[3.0], Goal::None).ratio(), Some(1.5));
        assert_eq!(row(&[], &[3.0], Goal::None).ratio(), None);
    }
}
