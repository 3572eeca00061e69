//! Learning from answers that people accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Knowledge, locked};
use crate::error::KnowledgeError;
use crate::retrieve::{
    FEATURES, FitReport, FittedSample, KnowledgeCaller, MIN_QUESTIONS, RetrievalContext, fitted,
    mean_ndcg,
};
use crate::unit::UnitId;

impl Knowledge {
    /// Remembers whether a unit was what a question was about. Secrets are removed from the question.
    ///
    /// # Errors
    /// There is no such unit, or the store cannot be written.
    pub fn feedback(
        &self,
        question: &str,
        id: &UnitId,
        accepted: bool,
    ) -> Result<(), KnowledgeError> {
        self.store.unit(id)?;
        let question = self.options.redactor.text(question);
        let question = &question[..question.floor_char_boundary(16 << 10)];
        self.store.note_feedback(question, id, accepted, self.options.clock.now())
    }

    /// Learns the weights of the reranker from feedback, and keeps them only where they are better on
    /// the newer half of the questions. Returns nothing where there is too little to learn from.
    ///
    /// # Errors
    /// The store cannot be read, or the weights cannot be written.
    pub fn fit(&self) -> Result<Option<FitReport>, KnowledgeError> {
        let mut right: BTreeMap<String, BTreeSet<UnitId>> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        for row in self.store.feedback()? {
            if row.accepted {
                if !right.contains_key(&row.question) {
                    order.push(row.question.clone());
                }
                right.entry(row.question).or_default().insert(row.id);
            } else if let Some(ids) = right.get_mut(&row.question) {
                // The last answer counts.
                ids.remove(&row.id);
            }
        }
        let mut samples = Vec::new();
        for question in &order {
            let context = RetrievalContext {
                timeout: Duration::from_secs(30),
                caller: KnowledgeCaller::Analysis,
                ..RetrievalContext::new(question.clone())
            };
            let ids = right.get(question).cloned().unwrap_or_default();
            let sample = self.sample(&context, |id| ids.contains(id))?;
            if sample.candidates.iter().any(|(_, right)| *right) {
                samples.push(sample);
            }
        }
        if samples.len() < MIN_QUESTIONS {
            return Ok(None);
        }
        let (older, newer) = samples.split_at(samples.len() / 2);
        let in_use = *locked(&self.weights);
        let learnt = fitted(in_use, older);
        let (before, after) = (mean_ndcg(&in_use, newer), mean_ndcg(&learnt, newer));
        let kept = after > before;
        if kept {
            learnt.write(&self.folder.join("weights.json"))?;
            *locked(&self.weights) = learnt;
        }
        Ok(Some(FitReport {
            learnt_from: older.len(),
            compared_on: newer.len(),
            before,
            after,
            kept,
            weights: FEATURES.iter().map(|name| (*name).to_owned()).zip(learnt.0).collect(),
        }))
    }

    /// Returns the candidates of a question with their features.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn sample(
        &self,
        context: &RetrievalContext,
        is_right: impl Fn(&UnitId) -> bool,
    ) -> Result<FittedSample, KnowledgeError> {
        let found = self.candidates(context, self.options.clock.running())?;
        let candidates = found.all.into_iter();
        let candidates = candidates.map(|found| (found.features, is_right(&found.changed.unit.id)));
        Ok(FittedSample { candidates: candidates.collect() })
    }

    /// Uses other weights for this process.
    pub(crate) fn use_weights(&self, weights: crate::retrieve::RerankWeights) {
        *locked(&self.weights) = weights;
    }
}
