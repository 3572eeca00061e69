//! Measures of a ranking, and how sure they are.

use serde::Serialize;

/// Samples of the bootstrap.
const SAMPLES: usize = 2000;

/// A mean and the interval in which it lies in 95 of 100 samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How good a system's rankings are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Share of the answers that come first.
    pub r1: Interval,
    /// Share of the answers among ten.
    pub r10: Interval,
    /// Normalised discounted cumulative gain of ten.
    pub ndcg10: Interval,
    /// Mean of one by the rank of the first answer among ten.
    pub mrr: Interval,
}

/// The measures of one ranking.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Measures {
    pub(super) r1: f64,
    pub(super) r10: f64,
    pub(super) ndcg10: f64,
    pub(super) mrr: f64,
}

impl Measures {
    /// Measures a ranking; `right` tells of each rank whether it answers, `answers` how many do.
    pub(super) fn of(right: &[bool], answers: usize) -> Self {
        let ten = &right[..right.len().min(10)];
        let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
        let found: f64 =
            ten.iter().enumerate().filter(|(_, right)| **right).map(|(at, _)| gain(at)).sum();
        let ideal: f64 = (0..answers.min(10)).map(gain).sum();
        let all = answers.max(1) as f64;
        Self {
            r1: f64::from(u8::from(ten.first() == Some(&true))) / all,
            r10: ten.iter().filter(|right| **right).count() as f64 / all,
            ndcg10: if ideal > 0.0 { found / ideal } else { 0.0 },
            mrr: ten.iter().position(|right| *right).map_or(0.0, |at| 1.0 / (at + 1) as f64),
        }
    }
}

impl Quality {
    pub(super) fn of(measures: &[Measures]) -> Self {
        let of =
            |value: fn(&Measures) -> f64| interval(&measures.iter().map(value).collect::<Vec<_>>());
        Self { r1: of(|m| m.r1), r10: of(|m| m.r10), ndcg10: of(|m| m.ndcg10), mrr: of(|m| m.mrr) }
    }
}

/// Returns the mean of values and the interval of a bootstrap, which draws the same in each run.
fn interval(values: &[f64]) -> Interval {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count.max(1) as f64;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % count.max(1) as u64) as usize
    };
    let mut means: Vec<f64> = (0..SAMPLES)
        .map(|_| (0..count).map(|_| values[draw()]).sum::<f64>() / count.max(1) as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    Interval { mean, low: means[SAMPLES * 25 / 1000], high: means[SAMPLES * 975 / 1000] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_those_of_their_definitions() {
        let second = Measures::of(&[false, true, false], 1);
        assert_eq!((second.r1, second.r10, second.mrr), (0.0, 1.0, 0.5));
        assert!((second.ndcg10 - 1.0 / 3f64.log2()).abs() < 1e-9);
        assert_eq!(Measures::of(&[true], 2).r10, 0.5);
        let far: Vec<bool> = (0..20).map(|at| at == 10).collect();
        assert_eq!(Measures::of(&far, 1), Measures::default());
        assert_eq!(Measures::of(&[], 1), Measures::default());
    }

    #[test]
    fn an_interval_holds_its_mean_and_narrows_with_more_values() {
        let half =
            |count: usize| (0..count).map(|n| f64::from(u8::from(n % 2 == 0))).collect::<Vec<_>>();
        let (few, many) = (interval(&half(20)), interval(&half(2000)));
        assert!(few.low < few.mean && few.mean < few.high, "{few:?}");
        // Of 2,000 coin throws the mean has a deviation of .0112.
        let width = many.high - many.low;
        assert!((0.040..0.048).contains(&width), "{many:?}");
        assert!(few.high - few.low > width);
    }
}
