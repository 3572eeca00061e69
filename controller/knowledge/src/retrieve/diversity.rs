//! Diversity: near-duplicates must not crowd an answer.

use crate::text::likeness;

/// How much the score counts against newness.
const LAMBDA: f32 = 0.7;

/// Chooses as many of the texts as are asked for, by maximal marginal relevance: what repeats a text
/// that was chosen loses up to .3 of the span of the scores. Scores fall.
pub(crate) fn diversified(texts: &[(f32, String)], most: usize) -> Vec<usize> {
    let (Some(best), Some(worst)) = (texts.first(), texts.last()) else { return Vec::new() };
    let (best, span) = (best.0, best.0 - worst.0);
    let relevance = |score: f32| if span > 0.0 { 1.0 - (best - score) / span } else { 1.0 };
    let mut open: Vec<(usize, f32)> = (0..texts.len()).map(|at| (at, 0.0)).collect();
    let mut chosen = Vec::new();
    while chosen.len() < most && !open.is_empty() {
        let worth =
            |(at, like): &(usize, f32)| LAMBDA * relevance(texts[*at].0) - (1.0 - LAMBDA) * like;
        let next = (0..open.len()).max_by(|one, other| {
            // Where two are worth the same, the first one stays first.
            worth(&open[*one]).total_cmp(&worth(&open[*other])).then(other.cmp(one))
        });
        let Some(next) = next else { break };
        let (at, _) = open.remove(next);
        for (other, like) in &mut open {
            *like = like.max(likeness(&texts[at].1, &texts[*other].1) as f32);
        }
        chosen.push(at);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_text_comes_behind_another_one() {
        let text = |score, words: &str| (score, words.to_owned());
        let texts = [
            text(9.0, "uart driver loses the last byte at high speed"),
            text(8.8, "uart driver loses the last byte at high speed"),
            text(8.0, "dma transfer ends before the fifo is empty"),
            text(1.0, "spelling"),
        ];
        assert_eq!(diversified(&texts, 2), [0, 2]);
        assert_eq!(diversified(&texts, 9), [0, 2, 1, 3]);
        assert_eq!(diversified(&[], 3), [] as [usize; 0]);
    }
}
