//! A store of many units: how large it is in memory, and how fast it is opened, searched and rebuilt.
//!
//! The documents of a corpus are repeated, each time with another number in their names, until there are
//! enough. Their vectors are drawn from their words: they take the same time and memory as those of a model,
//! and say nothing about quality.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, CorpusQuestion};
use super::run::{BenchError, draft_of};
use super::timing::{Percentiles, inserts, percentiles, questions, resident, timed};
use crate::embedding::{EmbedError, Embedder, EmbedderName, LoadEmbedder};
use crate::knowledge::{Knowledge, KnowledgeOptions};
use crate::text::each_token;

/// Numbers of a vector: as many as small models make.
const DIMENSION: usize = 384;

const OPENINGS: usize = 20;
const SEARCHES: usize = 500;

/// How long the store took to be made.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaleBuild {
    /// Units.
    pub units: usize,
    /// Storing them, a thousand in a transaction.
    pub store_s: f64,
    /// Making the index from the store, and checking the store.
    pub reindex_s: f64,
    /// Writing vectors for all units, without the time of a model.
    pub vectors_s: f64,
}

/// What a process that opens such a store measures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScaleTiming {
    /// Openings of store and index, without vectors.
    pub open: Percentiles,
    /// From opening to the end of reading the vectors.
    pub open_with_vectors_ms: f64,
    /// Questions of up to 40 words, with vectors.
    pub short: Percentiles,
    /// Logs of 400 words, with vectors.
    pub long: Percentiles,
    /// Bytes of memory of the process behind these searches.
    pub resident_bytes: Option<u64>,
    /// Units stored one by one, each durable.
    pub insert: Percentiles,
    /// The bare write to compare that with.
    pub bare_flush: Percentiles,
}

/// A model whose vectors are drawn from the words of a text.
struct DrawnEmbedder;

impl Embedder for DrawnEmbedder {
    fn name(&self) -> EmbedderName {
        EmbedderName { name: "drawn from words".to_owned(), dimension: DIMENSION }
    }

    fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError> {
        let mut vector = vec![0f32; DIMENSION];
        each_token(text, |token| {
            let mut state = token.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            for _ in 0..8 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let sign = if state >> 63 == 0 { 1.0 } else { -1.0 };
                vector[(state >> 33) as usize % DIMENSION] += sign;
            }
        });
        // A text without words has a direction, too.
        vector[0] += 0.5;
        Ok(vector)
    }
}

fn options() -> KnowledgeOptions {
    let embedder: LoadEmbedder = Arc::new(|| Ok(Box::new(DrawnEmbedder)));
    KnowledgeOptions { embedder: Some(embedder), ..KnowledgeOptions::default() }
}

/// Makes a store of many units in an empty folder.
///
/// # Errors
/// The store failed.
pub fn fill(corpus: &Corpus, folder: &Path, units: usize) -> Result<ScaleBuild, BenchError> {
    let seconds = |began: Instant| began.elapsed().as_secs_f64();
    let knowledge = Knowledge::open(folder, KnowledgeOptions::default())?;
    let began = Instant::now();
    let (mut stored, mut drafts) = (0, Vec::new());
    'all: for copy in 0.. {
        for document in &corpus.documents {
            if stored == units {
                break 'all;
            }
            let mut document = document.clone();
            document.id = format!("{} {copy}", document.id);
            if copy > 0 {
                document.title = format!("{} rev{copy}", document.title);
                document.text = format!("{} variant{copy}x{stored}", document.text);
                // Other files of other folders, so that a file has as many units as in the corpus.
                document.files.iter_mut().for_each(|file| *file = format!("v{copy}/{file}"));
            }
            drafts.push(draft_of(&document)?);
            stored += 1;
            if drafts.len() == 1000 {
                knowledge.store_distinct(std::mem::take(&mut drafts))?;
            }
        }
    }
    knowledge.store_distinct(drafts)?;
    let store_s = seconds(began);
    let began = Instant::now();
    knowledge.store().check()?;
    let indexed = u64::from(knowledge.rebuild()?);
    let (kept, stored) = (knowledge.store().counts()?.units, units as u64);
    if (kept, indexed) != (stored, stored) {
        return Err(BenchError::Lost { stored, kept, indexed });
    }
    let reindex_s = seconds(began);
    drop(knowledge);
    let knowledge = Knowledge::open(folder, options())?;
    let began = Instant::now();
    let report = knowledge.embed_missing(&mut |_, _| {})?.unwrap_or_default();
    if let Some(problem) = report.problem {
        return Err(BenchError::Model(problem));
    }
    Ok(ScaleBuild { units, store_s, reindex_s, vectors_s: seconds(began) })
}

/// Measures such a store. Call it in a process of its own: it tells the memory of the process.
///
/// # Errors
/// The store failed.
pub fn measure(of: &[CorpusQuestion], folder: &Path) -> Result<ScaleTiming, BenchError> {
    let mut open = Vec::new();
    for _ in 0..OPENINGS {
        open.push(timed(|| Ok(Knowledge::open(folder, KnowledgeOptions::default())?))?);
    }
    let began = Instant::now();
    let knowledge = Knowledge::open(folder, options())?;
    let loaded = knowledge.wait_for_model(Duration::from_secs(60));
    loaded.map_err(|error| BenchError::Model(error.to_string()))?;
    let open_with_vectors_ms = began.elapsed().as_secs_f64() * 1e3;
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for asked in questions(of).take(SEARCHES) {
        short.push(timed(|| Ok(knowledge.search(&asked.short)?))?);
        long.push(timed(|| Ok(knowledge.search(&asked.long)?))?);
    }
    let resident_bytes = resident();
    let (insert, bare_flush) = inserts(&knowledge, of, folder)?;
    Ok(ScaleTiming {
        open: percentiles(open),
        open_with_vectors_ms,
        short: percentiles(short),
        long: percentiles(long),
        resident_bytes,
        insert,
        bare_flush,
    })
}
