//! The systems that are compared, and their table.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::corpus::{Corpus, CorpusDocument, CorpusQuestion};
use super::fts::{FtsIndex, FtsText};
use super::measures::{Measures, Quality};
use crate::embedding::LoadEmbedder;
use crate::error::KnowledgeError;
use crate::knowledge::{Knowledge, KnowledgeOptions};
use crate::retrieve::{FEATURES, KnowledgeCaller, RerankWeights, RetrievalContext, fitted};
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitIdError, UnitMetadata};

/// Documents that are stored at once.
const BATCH: usize = 5000;

/// One system and how good it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SystemRow {
    /// What it is.
    pub system: &'static str,
    /// How good it is.
    pub quality: Quality,
}

/// The systems side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchTable {
    /// Documents.
    pub documents: usize,
    /// Questions of the newer half, on which all figures are measured.
    pub questions: usize,
    /// Questions of the older half, on which weights were learnt.
    pub learnt_from: usize,
    /// Questions that no older document answers.
    pub unanswerable: usize,
    /// The systems.
    pub systems: Vec<SystemRow>,
    /// The embedding model, if there is one.
    pub model: Option<String>,
    /// Names and values of the weights that were learnt here.
    pub learnt: Vec<(&'static str, f32)>,
}

/// Says why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KnowledgeError),
    /// The full-text search that is compared with failed.
    #[error("the full-text search of SQLite failed")]
    Fts(#[from] rusqlite::Error),
    /// The embedding model failed.
    #[error("the embedding model failed: {0}")]
    Model(String),
    /// A document has a time that no calendar has.
    #[error("document {0:?} has no time between the years -9999 and 9999")]
    Time(String),
    /// Units that were stored are not there.
    #[error("{stored} units were stored: the store has {kept}, the index {indexed}")]
    Lost {
        /// How many were stored.
        stored: u64,
        /// How many the store has.
        kept: u64,
        /// How many the index has.
        indexed: u64,
    },
    /// A name cannot be made.
    #[error("document {0:?} cannot be named")]
    Name(String, #[source] UnitIdError),
}

/// Returns the name of the unit of a document.
fn id_of(document: &str) -> Result<UnitId, BenchError> {
    let digest = Sha256::digest(document.as_bytes());
    let digits: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let id = format!("k-{digits}").parse();
    id.map_err(|error| BenchError::Name(document.to_owned(), error))
}

pub(super) fn draft_of(document: &CorpusDocument) -> Result<Draft, BenchError> {
    let at =
        Timestamp::from_second(document.time).map_err(|_| BenchError::Time(document.id.clone()))?;
    let CorpusDocument { title, text, files, .. } = document.clone();
    let short = |text: &str, most: usize| text[..text.floor_char_boundary(most)].to_owned();
    let title = if title.trim().is_empty() { "-".to_owned() } else { title };
    let files = files.iter().filter(|file| file.len() <= 1024).take(256).cloned().collect();
    Ok(Draft {
        id: id_of(&document.id)?,
        content: UnitContent { title, symptom: short(&text, 256 << 10), ..UnitContent::default() },
        metadata: UnitMetadata { files, ..UnitMetadata::default() },
        at,
        by: "bench".to_owned(),
        trigger: CaptureTrigger::Marked,
    })
}

/// Stores the documents of a corpus in an empty folder.
pub(super) fn stored(corpus: &Corpus, folder: &Path) -> Result<Knowledge, BenchError> {
    let knowledge = Knowledge::open(folder, KnowledgeOptions::default())?;
    for part in corpus.documents.chunks(BATCH) {
        let drafts = part.iter().map(draft_of).collect::<Result<Vec<_>, _>>()?;
        knowledge.store_distinct(drafts)?;
    }
    knowledge.maintain()?;
    Ok(knowledge)
}

/// Returns the search of a question, without its files on demand.
pub(super) fn context_of(question: &CorpusQuestion, files: bool) -> RetrievalContext {
    RetrievalContext {
        files: if files { question.files.clone() } else { Vec::new() },
        until: Timestamp::from_second(question.time).ok(),
        // Quality is measured here, not speed.
        timeout: Duration::from_secs(60),
        caller: KnowledgeCaller::Analysis,
        ..RetrievalContext::new(question.text.clone())
    }
}

/// Measures all systems on a corpus, those with vectors where there is a model. The folder must be empty;
/// what is left in it may be removed. Tells how many of how many documents have vectors.
///
/// # Errors
/// The store, the full-text search or the model failed.
pub fn run(
    corpus: &Corpus,
    folder: &Path,
    embedder: Option<LoadEmbedder>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(BenchTable, Knowledge), BenchError> {
    let (older, newer) = corpus.questions.split_at(corpus.questions.len() / 2);
    let mut systems = Vec::new();
    for (system, text) in
        [("FTS5, default tokenizer", FtsText::Default), ("FTS5, prepared text", FtsText::Prepared)]
    {
        systems.push(SystemRow { system, quality: of_fts(corpus, newer, text)? });
    }
    let knowledge = stored(corpus, folder)?;
    let default = RerankWeights::default();
    for (system, weights, files) in [
        ("Jig, words only", only(&["words"], default), false),
        ("Jig, reranked by words and titles", default, false),
        ("Jig, reranked, files of the question known", default, true),
        ("Jig, weights learnt, files known", learnt(&knowledge, older, true, &FEATURES)?, true),
    ] {
        knowledge.use_weights(weights);
        systems.push(SystemRow { system, quality: of_jig(&knowledge, newer, files)? });
    }
    let mut learnt_weights = learnt(&knowledge, older, true, &FEATURES)?;
    let (mut knowledge, mut model) = (knowledge, None);
    if let Some(embedder) = embedder {
        drop(knowledge);
        let options = KnowledgeOptions { embedder: Some(embedder), ..KnowledgeOptions::default() };
        knowledge = Knowledge::open(folder, options)?;
        let report = knowledge.embed_missing(progress)?.unwrap_or_default();
        if let Some(problem) = report.problem {
            return Err(BenchError::Model(problem));
        }
        model = knowledge.stats()?.meaning.and_then(|meaning| meaning.model);
        let both = ["words", "meaning"];
        for (system, weights, files) in [
            (
                "Jig, words + vectors, weights learnt",
                learnt(&knowledge, older, false, &both)?,
                false,
            ),
            ("Jig, + vectors, reranked", default, false),
            ("Jig, + vectors, reranked, files known", default, true),
            (
                "Jig, + vectors, weights learnt, files known",
                learnt(&knowledge, older, true, &FEATURES)?,
                true,
            ),
        ] {
            knowledge.use_weights(weights);
            systems.push(SystemRow { system, quality: of_jig(&knowledge, newer, files)? });
        }
        learnt_weights = learnt(&knowledge, older, true, &FEATURES)?;
    }
    knowledge.use_weights(default);
    let table = BenchTable {
        documents: corpus.documents.len(),
        questions: newer.len(),
        learnt_from: older.len(),
        unanswerable: corpus.unanswerable,
        systems,
        learnt: FEATURES.iter().copied().zip(learnt_weights.0).collect(),
        model,
    };
    Ok((table, knowledge))
}

/// Returns weights of some features; the others count nothing.
fn only(features: &[&str], weights: RerankWeights) -> RerankWeights {
    let mut weights = weights;
    for (name, weight) in FEATURES.iter().zip(&mut weights.0) {
        if !features.contains(name) {
            *weight = 0.0;
        }
    }
    weights
}

/// Learns the weights of some features on questions.
fn learnt(
    knowledge: &Knowledge,
    questions: &[CorpusQuestion],
    files: bool,
    features: &[&str],
) -> Result<RerankWeights, BenchError> {
    let mut samples = Vec::with_capacity(questions.len());
    for question in questions {
        let right = ids_of(question)?;
        let mut sample = knowledge.sample(&context_of(question, files), |id| right.contains(id))?;
        for (values, _) in &mut sample.candidates {
            *values = only(features, RerankWeights(*values)).0;
        }
        samples.push(sample);
    }
    Ok(fitted(only(features, RerankWeights::default()), &samples))
}

fn ids_of(question: &CorpusQuestion) -> Result<HashSet<UnitId>, BenchError> {
    question.relevant.iter().map(|id| id_of(id)).collect()
}

fn of_fts(
    corpus: &Corpus,
    questions: &[CorpusQuestion],
    text: FtsText,
) -> Result<Quality, BenchError> {
    let index = FtsIndex::build(&corpus.documents, text)?;
    let places: HashMap<&str, usize> = corpus
        .documents
        .iter()
        .enumerate()
        .map(|(at, document)| (document.id.as_str(), at))
        .collect();
    let mut measures = Vec::with_capacity(questions.len());
    for question in questions {
        let before = corpus.documents.partition_point(|document| document.time < question.time);
        let right: HashSet<usize> =
            question.relevant.iter().filter_map(|id| places.get(id.as_str()).copied()).collect();
        let found = index.best(&question.text, before, 10)?;
        let found: Vec<bool> = found.iter().map(|place| right.contains(place)).collect();
        measures.push(Measures::of(&found, question.relevant.len()));
    }
    Ok(Quality::of(&measures))
}

fn of_jig(
    knowledge: &Knowledge,
    questions: &[CorpusQuestion],
    files: bool,
) -> Result<Quality, BenchError> {
    let mut measures = Vec::with_capacity(questions.len());
    for question in questions {
        let right = ids_of(question)?;
        let answer = knowledge.search(&context_of(question, files))?;
        let found: Vec<bool> = answer.hits.iter().map(|hit| right.contains(&hit.unit.id)).collect();
        measures.push(Measures::of(&found, question.relevant.len()));
    }
    Ok(Quality::of(&measures))
}
