//! Answers that are kept for a while.
//!
//! The key is the content of the question, its limits and the weights. An answer counts only while
//! the store has made no change since, by any process.

use std::collections::HashMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::KnowledgeAnswer;
use super::question::RetrievalContext;
use super::weights::RerankWeights;

/// How long an answer counts.
const LIFE: Duration = Duration::from_secs(300);

/// Most answers: each holds ten units.
const MOST: usize = 256;

/// Content of a question.
pub(crate) type CacheKey = [u8; 32];

struct Kept {
    change: u64,
    at: Duration,
    answer: KnowledgeAnswer,
}

/// Kept answers.
#[derive(Default)]
pub(crate) struct AnswerCache(HashMap<CacheKey, Kept>);

impl std::fmt::Debug for AnswerCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AnswerCache({})", self.0.len())
    }
}

impl AnswerCache {
    /// Returns the key of a question; nothing for one that cannot be written as JSON.
    pub(crate) fn key(context: &RetrievalContext, weights: &RerankWeights) -> Option<CacheKey> {
        let text = serde_json::to_vec(&(context, weights.0)).ok()?;
        Some(Sha256::digest(text).into())
    }

    /// Returns the kept answer of a question.
    pub(crate) fn get(
        &mut self,
        key: &CacheKey,
        change: u64,
        now: Duration,
    ) -> Option<KnowledgeAnswer> {
        let kept = self.0.get(key)?;
        if kept.change != change || now.saturating_sub(kept.at) >= LIFE {
            self.0.remove(key);
            return None;
        }
        Some(KnowledgeAnswer { cached: true, ..kept.answer.clone() })
    }

    /// Keeps an answer. One with a warning is not kept: the next search may be better.
    pub(crate) fn put(
        &mut self,
        key: CacheKey,
        change: u64,
        now: Duration,
        answer: &KnowledgeAnswer,
    ) {
        if !answer.warnings.is_empty() {
            return;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, kept| kept.change == change && now.saturating_sub(kept.at) < LIFE);
            let oldest = self.0.iter().min_by_key(|(_, kept)| kept.at).map(|(key, _)| *key);
            if self.0.len() >= MOST
                && let Some(oldest) = oldest
            {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(key, Kept { change, at: now, answer: answer.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::RetrievalWarning;

    fn answer(warnings: Vec<RetrievalWarning>) -> KnowledgeAnswer {
        KnowledgeAnswer {
            hits: Vec::new(),
            total_count: 7,
            retrieval_time_ms: 1.0,
            cached: false,
            warnings,
        }
    }

    #[test]
    fn an_answer_counts_for_300_seconds_and_until_the_next_change() {
        let mut cache = AnswerCache::default();
        let at = Duration::from_secs;
        let weights = RerankWeights::default();
        let key = AnswerCache::key(&RetrievalContext::new("x"), &weights).unwrap();
        assert_ne!(AnswerCache::key(&RetrievalContext::new("y"), &weights), Some(key));
        cache.put(key, 5, at(10), &answer(vec![]));
        assert!(cache.get(&key, 5, at(309)).is_some_and(|answer| answer.cached));
        assert!(cache.get(&key, 5, at(310)).is_none());
        cache.put(key, 5, at(10), &answer(vec![]));
        assert!(cache.get(&key, 6, at(11)).is_none());
        cache.put(key, 6, at(10), &answer(vec![RetrievalWarning::Behind { missing: 1 }]));
        assert!(cache.get(&key, 6, at(11)).is_none());
    }

    #[test]
    fn the_oldest_answer_makes_room() {
        let mut cache = AnswerCache::default();
        let key = |n: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&n.to_le_bytes());
            key
        };
        for n in 0..=MOST {
            cache.put(key(n), 1, Duration::from_millis(n as u64), &answer(vec![]));
        }
        assert_eq!(cache.0.len(), MOST);
        assert!(cache.get(&key(0), 1, Duration::from_secs(1)).is_none());
        assert!(cache.get(&key(MOST), 1, Duration::from_secs(1)).is_some());
    }
}
