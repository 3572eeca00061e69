//! Search: the steps in order, each within what is left of the time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::{FollowedIndex, Knowledge, locked};
use crate::embedding::{ByteVector, EmbedError, text_hash};
use crate::error::KnowledgeError;
use crate::index::{DocFacts, Scored};
use crate::retrieve::{
    AnswerCache, FeatureSource, Features, HitReason, KnowledgeAnswer, KnowledgeHit, Question,
    RerankWeights, RetrievalContext, RetrievalWarning, diversified, facts_of,
};
use crate::store::ChangedUnit;
use crate::text::instruction_in;

/// Candidates by words, and as many by meaning. Of 697 fixes, .82 have theirs among a hundred.
const BY_WORDS: usize = 100;

/// Candidates of one file of the question, the youngest: with them, .94 have theirs.
const BY_FILE: usize = 60;

/// Candidates of all files of the question.
const BY_FILES: usize = 120;

/// Most units of an answer.
const RESULTS: usize = 1000;

/// Texts of this many candidates for each unit of the answer are compared with each other.
const COMPARED: usize = 2;

/// A unit that may be in the answer.
pub(super) struct Candidate {
    pub(super) changed: ChangedUnit,
    pub(super) features: Features,
    reasons: Vec<HitReason>,
}

/// Candidates of a question, before they are ranked.
pub(super) struct CandidateList {
    pub(super) all: Vec<Candidate>,
    considered: usize,
    warnings: Vec<RetrievalWarning>,
}

impl Knowledge {
    /// Finds the units that fit a question best.
    ///
    /// # Errors
    /// The store cannot be read. Where time or a model fails, there is an answer with a warning.
    pub fn search(&self, context: &RetrievalContext) -> Result<KnowledgeAnswer, KnowledgeError> {
        let began = self.options.clock.running();
        let weights = *locked(&self.weights);
        let change = self.store.last_change()?;
        let key = AnswerCache::key(context, &weights);
        if let Some(key) = &key
            && let Some(mut answer) = locked(&self.cache).get(key, change, began)
        {
            answer.retrieval_time_ms = self.since(began).as_secs_f64() * 1e3;
            return Ok(answer);
        }
        let found = self.candidates(context, began)?;
        let mut answer = rank(context, &weights, found);
        answer.retrieval_time_ms = self.since(began).as_secs_f64() * 1e3;
        if let Some(key) = key {
            locked(&self.cache).put(key, change, began, &answer);
        }
        Ok(answer)
    }

    /// Remembers that the units of an answer were read. Call it when the answer was shown.
    pub fn note_shown(&self, answer: &KnowledgeAnswer) {
        self.note_reads_of(answer.hits.iter().map(|hit| &hit.unit.id));
    }

    fn since(&self, began: Duration) -> Duration {
        self.options.clock.running().saturating_sub(began)
    }

    pub(super) fn candidates(
        &self,
        context: &RetrievalContext,
        began: Duration,
    ) -> Result<CandidateList, KnowledgeError> {
        let limit = context.limit();
        let over = || self.since(began) >= limit;
        let mut warnings = Vec::new();
        let partial = RetrievalWarning::Partial { timeout_ms: limit.as_millis() as u64 };
        // The model works while words are looked up.
        let asked = self.meaning.as_ref().map(|meaning| meaning.worker.begin(&context.query));
        let mut index = locked(&self.index);
        let missing = self.follow(&mut index, over)?;
        if missing > 0 {
            warnings.push(RetrievalWarning::Behind { missing });
        }
        let question = Question::of(context, &self.synonyms);
        let required = required(&index, context);
        let keep = |facts: &DocFacts| {
            context.admits(facts) && required.as_ref().is_none_or(|docs| docs.contains(&facts.doc))
        };
        let mut reasons: BTreeMap<u32, BTreeSet<HitReason>> = BTreeMap::new();
        if let Some(signature) = &context.signature {
            for doc in self.store.of_signature(signature)? {
                reasons.entry(doc).or_default().insert(HitReason::Signature);
            }
        }
        let (by_words, complete) = index.lexical.best(&question.terms, BY_WORDS, keep, over);
        if !complete {
            warnings.push(partial.clone());
        }
        let scores: HashMap<u32, f32> =
            by_words.iter().map(|Scored { facts, score }| (facts.doc, *score)).collect();
        for scored in &by_words {
            reasons.entry(scored.facts.doc).or_default().insert(HitReason::Words);
        }
        for doc in by_files(&index, &question, keep) {
            reasons.entry(doc).or_default().insert(HitReason::Files);
        }
        let mut cosines = HashMap::new();
        if let Some(asked) = asked {
            // Others may search while this waits for the model. It waits half of its time at most, so
            // that what words have found can still be looked at.
            drop(index);
            let left = (limit / 2).saturating_sub(self.since(began));
            let vector = asked.and_then(|asked| asked.within(left));
            index = locked(&self.index);
            let near = vector.and_then(|vector| {
                let facts = |doc| index.lexical.facts(doc);
                self.near(&vector, |doc| facts(doc).is_some_and(|facts| keep(&facts)), &mut reasons)
            });
            match near {
                Ok(near) => cosines = near,
                Err(error) => {
                    warnings.push(RetrievalWarning::WordsOnly { why: error.to_string() });
                }
            }
        }
        // The best first: where the time is over, what is left out matters least.
        let mut docs: Vec<u32> = reasons.keys().copied().collect();
        let rank = |doc: &u32| {
            let first = reasons.get(doc).and_then(|reasons| reasons.first().copied());
            (first != Some(HitReason::Signature), -scores.get(doc).copied().unwrap_or_default())
        };
        docs.sort_by(|one, other| {
            let (one, other) = (rank(one), rank(other));
            one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
        });
        let best = by_words.first().map_or(0.0, |scored| scored.score);
        let source =
            FeatureSource::new(context, &question, &index.lexical, best, self.options.clock.now());
        let (mut all, mut damaged) = (Vec::with_capacity(docs.len()), 0);
        let considered = docs.len();
        for part in docs.chunks(32) {
            if over() && !all.is_empty() {
                if !warnings.contains(&partial) {
                    warnings.push(partial.clone());
                }
                break;
            }
            let units = self.store.units(part)?;
            damaged += part.len() - units.len();
            for changed in units {
                let facts_now = facts_of(&changed);
                // The unit may have changed since it was indexed, and the signature's were not filtered.
                if !keep(&facts_now) || !about_the_board(context, &changed) {
                    continue;
                }
                let score = scores.get(&changed.doc).copied().unwrap_or_default();
                let reasons = reasons.get(&changed.doc).into_iter().flatten().copied();
                let mut reasons: Vec<HitReason> = reasons.collect();
                // A vector of what the unit said before an edit does not count.
                let cosine = cosines
                    .get(&changed.doc)
                    .filter(|(_, text)| *text == text_hash(&changed.unit.content.prose()));
                if cosine.is_none() {
                    reasons.retain(|reason| *reason != HitReason::Meaning);
                    if reasons.is_empty() {
                        continue;
                    }
                }
                let cosine = cosine.map_or(0.0, |(cosine, _)| *cosine);
                let features = source.of(&changed.unit, score, cosine);
                all.push(Candidate { changed, features, reasons });
            }
        }
        if damaged > 0 {
            warnings.push(RetrievalWarning::Damaged { count: damaged });
        }
        Ok(CandidateList { all, considered, warnings })
    }

    /// Adds the units that are nearest in meaning, and returns the cosine of each candidate with the
    /// hash of the text that it is about.
    fn near(
        &self,
        vector: &[f32],
        keep: impl Fn(u32) -> bool,
        reasons: &mut BTreeMap<u32, BTreeSet<HitReason>>,
    ) -> Result<HashMap<u32, (f32, u64)>, EmbedError> {
        let Some(meaning) = &self.meaning else { return Ok(HashMap::new()) };
        let asked = ByteVector::of(vector);
        let mut vectors = locked(&meaning.vectors);
        vectors.follow()?;
        for doc in vectors.rows.nearest(&asked, BY_WORDS, keep) {
            reasons.entry(doc).or_default().insert(HitReason::Meaning);
        }
        let cosine = |doc: &u32| Some((*doc, vectors.rows.cosine(&asked, *doc)?));
        Ok(reasons.keys().filter_map(cosine).collect())
    }
}

/// Returns the units that hold all terms of metadata that are required; nothing if none is.
fn required(index: &FollowedIndex, context: &RetrievalContext) -> Option<BTreeSet<u32>> {
    let mut terms = context.required().into_iter().map(|term| {
        index.lexical.holding(&term).into_iter().map(|facts| facts.doc).collect::<BTreeSet<u32>>()
    });
    let first = terms.next()?;
    Some(terms.fold(first, |both, docs| both.intersection(&docs).copied().collect()))
}

/// A unit that is about no kind of board is about every kind.
fn about_the_board(context: &RetrievalContext, changed: &ChangedUnit) -> bool {
    let (asked, of) = (&context.board, &changed.unit.metadata.board);
    asked.as_ref().zip(of.as_ref()).is_none_or(|(asked, of)| asked == of)
}

/// Returns the youngest units about the files of a question.
fn by_files(
    index: &FollowedIndex,
    question: &Question,
    keep: impl Fn(&DocFacts) -> bool,
) -> Vec<u32> {
    let mut found: BTreeMap<u32, i64> = BTreeMap::new();
    for file in &question.files {
        let mut of_file = index.lexical.holding(&format!("=file:{file}"));
        of_file.retain(|facts| keep(facts));
        of_file.sort_by_key(|facts| std::cmp::Reverse((facts.created, facts.doc)));
        found.extend(of_file.iter().take(BY_FILE).map(|facts| (facts.doc, facts.created)));
    }
    let mut docs: Vec<_> = found.into_iter().collect();
    docs.sort_by_key(|(doc, created)| std::cmp::Reverse((*created, *doc)));
    docs.into_iter().take(BY_FILES).map(|(doc, _)| doc).collect()
}

/// Ranks candidates, and leaves out what would crowd the answer.
fn rank(
    context: &RetrievalContext,
    weights: &RerankWeights,
    found: CandidateList,
) -> KnowledgeAnswer {
    let CandidateList { all, considered, warnings } = found;
    let most = context.max_results.min(RESULTS);
    let mut ranked: Vec<(f32, Candidate)> =
        all.into_iter().map(|candidate| (weights.score(&candidate.features), candidate)).collect();
    ranked.sort_by(|one, other| {
        other.0.total_cmp(&one.0).then(other.1.changed.doc.cmp(&one.1.changed.doc))
    });
    ranked.truncate(most.saturating_mul(COMPARED));
    let texts: Vec<(f32, String)> =
        ranked.iter().map(|(score, found)| (*score, found.changed.unit.content.prose())).collect();
    let mut chosen = diversified(&texts, most);
    // Diversity decides what is in the answer; the score decides the order.
    chosen.sort_unstable();
    let mut ranked: Vec<Option<(f32, Candidate)>> = ranked.into_iter().map(Some).collect();
    let hits = chosen
        .into_iter()
        .filter_map(|at| ranked.get_mut(at)?.take())
        .map(|(score, Candidate { changed, reasons, .. })| KnowledgeHit {
            instruction: instruction_in(&changed.unit.content.prose()).map(str::to_owned),
            unit: changed.unit,
            score,
            reasons,
        })
        .collect();
    KnowledgeAnswer {
        hits,
        total_count: considered,
        retrieval_time_ms: 0.0,
        cached: false,
        warnings,
    }
}
