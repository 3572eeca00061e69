//! Learning the weights of the reranker from what people accepted.
//!
//! # Design
//! The loss is that of a softmax over the candidates of each question; its gradient is a dozen sums, so
//! no library is needed. Learnt on the older half of the questions and compared with the weights in use
//! on the newer half: worse weights are never kept.

use serde::{Deserialize, Serialize};

use super::features::{FEATURES, Features};
use super::weights::RerankWeights;

/// Fewer questions than this teach nothing.
pub(crate) const MIN_QUESTIONS: usize = 20;

const STEPS: usize = 60;
const RATE: f32 = 0.3;

/// Pulls weights towards those of the start: a feature that never occurs keeps its weight.
const PULL: f32 = 1e-3;

/// Largest weight.
const BOUND: f32 = 50.0;

/// The candidates of one question, and which of them are right.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedSample {
    /// Features of each candidate, and whether it is right.
    pub candidates: Vec<(Features, bool)>,
}

/// What came of learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitReport {
    /// Questions that were learnt from.
    pub learnt_from: usize,
    /// Questions that the weights were compared on.
    pub compared_on: usize,
    /// nDCG@10 of the weights in use, on the latter.
    pub before: f64,
    /// nDCG@10 of the learnt weights, on the latter.
    pub after: f64,
    /// Whether the learnt weights are kept: only if they are better.
    pub kept: bool,
    /// Names and learnt weights.
    pub weights: Vec<(String, f32)>,
}

/// Learns weights, beginning with others.
pub(crate) fn fitted(start: RerankWeights, samples: &[FittedSample]) -> RerankWeights {
    let right = |sample: &&FittedSample| sample.candidates.iter().any(|(_, right)| *right);
    let samples: Vec<&FittedSample> = samples.iter().filter(right).collect();
    let mut weights = start.0;
    // Adagrad: features that are rare still move.
    let mut squares = [1e-3f32; FEATURES.len()];
    for _ in 0..STEPS {
        let mut gradient = [0f32; FEATURES.len()];
        for sample in &samples {
            add_gradient(&RerankWeights(weights), sample, &mut gradient);
        }
        for (at, weight) in weights.iter_mut().enumerate() {
            let slope = gradient[at] / samples.len().max(1) as f32 - PULL * (*weight - start.0[at]);
            squares[at] += slope * slope;
            *weight = (*weight + RATE * slope / squares[at].sqrt()).clamp(-BOUND, BOUND);
        }
    }
    RerankWeights(weights)
}

fn add_gradient(weights: &RerankWeights, sample: &FittedSample, gradient: &mut Features) {
    let scores: Vec<f32> =
        sample.candidates.iter().map(|(features, _)| weights.score(features)).collect();
    let most = scores.iter().copied().fold(f32::MIN, f32::max);
    let shares: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
    let all: f32 = shares.iter().sum();
    let right: f32 =
        sample.candidates.iter().zip(&shares).filter(|((_, r), _)| *r).map(|(_, s)| s).sum();
    for ((features, is_right), share) in sample.candidates.iter().zip(&shares) {
        let wanted = if *is_right && right > 0.0 { share / right } else { 0.0 };
        let push = wanted - share / all;
        for (sum, value) in gradient.iter_mut().zip(features) {
            *sum += push * value;
        }
    }
}

/// Returns the mean nDCG@10 of weights.
pub(crate) fn mean_ndcg(weights: &RerankWeights, samples: &[FittedSample]) -> f64 {
    let of = |sample: &FittedSample| {
        let mut ranked: Vec<(f32, bool)> =
            sample.candidates.iter().map(|(f, right)| (weights.score(f), *right)).collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
        let found: f64 = ranked
            .iter()
            .take(10)
            .enumerate()
            .filter(|(_, (_, right))| *right)
            .map(|(at, _)| gain(at))
            .sum();
        let right = ranked.iter().filter(|(_, right)| *right).count().min(10);
        let ideal: f64 = (0..right).map(gain).sum();
        if ideal > 0.0 { found / ideal } else { 0.0 }
    };
    samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Questions whose right unit has the highest value of one feature, and noise in the others.
    fn samples(decisive: usize) -> Vec<FittedSample> {
        let mut state = 1u32;
        let mut noise = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1u32 << 24) as f32
        };
        let mut one = || {
            let mut candidates: Vec<(Features, bool)> =
                (0..20).map(|_| (std::array::from_fn(|_| noise()), false)).collect();
            candidates[7].0[decisive] = 1.0;
            candidates[7].1 = true;
            FittedSample { candidates }
        };
        (0..80).map(|_| one()).collect()
    }

    #[test]
    fn the_feature_that_decides_is_learnt_and_others_are_not() {
        let samples = samples(5);
        let start = RerankWeights([0.5; FEATURES.len()]);
        let learnt = fitted(start, &samples[..40]);
        let (before, after) =
            (mean_ndcg(&start, &samples[40..]), mean_ndcg(&learnt, &samples[40..]));
        assert!(after > before + 0.2, "{before} {after}");
        let most = learnt.0.iter().copied().fold(f32::MIN, f32::max);
        assert_eq!(learnt.0[5], most, "{learnt:?}");
    }

    #[test]
    fn nothing_to_learn_from_changes_nothing() {
        let start = RerankWeights::default();
        assert_eq!(fitted(start, &[]), start);
        let none_right = FittedSample { candidates: vec![([0.5; FEATURES.len()], false)] };
        assert_eq!(fitted(start, std::slice::from_ref(&none_right)), start);
        assert_eq!(mean_ndcg(&start, &[none_right]), 0.0);
    }
}
