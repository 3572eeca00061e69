//! How long searching, storing and opening take.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::corpus::{Corpus, CorpusQuestion};
use super::run::{BenchError, context_of};
use crate::error::KnowledgeError;
use crate::knowledge::{Knowledge, KnowledgeOptions};
use crate::retrieve::RetrievalContext;
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// Searches of each kind.
const SEARCHES: usize = 1000;

/// Units that are stored one by one.
const INSERTS: usize = 2000;

/// Openings of the store.
const OPENINGS: usize = 20;

/// Words of a short question, and terms of a log.
const SHORT: usize = 40;
const LONG: usize = 400;

/// Durations in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: usize,
    /// Half of them were shorter.
    pub p50_ms: f64,
    /// All but one of a hundred were shorter.
    pub p99_ms: f64,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timing {
    /// Units in the store.
    pub units: u64,
    /// Questions of up to 40 words with the embedding model, if there is one.
    pub with_model: Option<Percentiles>,
    /// Questions of up to 40 words, files known, nothing kept from earlier searches.
    pub short: Percentiles,
    /// Logs of 400 words.
    pub long: Percentiles,
    /// Units stored one by one, each durable.
    pub insert: Percentiles,
    /// The bare write to compare that with: 4 KiB appended to a file and flushed.
    pub bare_flush: Percentiles,
    /// Openings of store and index.
    pub open: Percentiles,
    /// Bytes of memory of the process behind the searches.
    pub resident_bytes: Option<u64>,
    /// Bytes of the index in memory.
    pub index_bytes: usize,
}

/// A question, and a log made of several.
pub(super) struct TimedQuestion {
    pub(super) short: RetrievalContext,
    pub(super) long: RetrievalContext,
}

/// Returns questions without end. Each has a word of its own, so no search finds its answer in the cache.
pub(super) fn questions(of: &[CorpusQuestion]) -> impl Iterator<Item = TimedQuestion> {
    let words =
        |text: &str, most: usize| text.split_whitespace().take(most).collect::<Vec<_>>().join(" ");
    of.iter().cycle().enumerate().map(move |(number, question)| {
        let context = context_of(question, true);
        let query = format!("{} q{number}", words(&question.text, SHORT - 1));
        let short = RetrievalContext { query, ..context.clone() };
        let mut log = String::new();
        for other in of.iter().cycle().skip(number) {
            log.push_str(&other.text);
            log.push('\n');
            if log.split_whitespace().count() >= LONG {
                break;
            }
        }
        let query = format!("{} q{number}", words(&log, LONG));
        TimedQuestion { short, long: RetrievalContext { query, ..context } }
    })
}

pub(super) fn percentiles(mut times: Vec<Duration>) -> Percentiles {
    times.sort();
    let at = |share: usize| {
        let place = (times.len() * share / 100).min(times.len().saturating_sub(1));
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    Percentiles { count: times.len(), p50_ms: at(50), p99_ms: at(99) }
}

pub(super) fn timed<T>(
    work: impl FnOnce() -> Result<T, BenchError>,
) -> Result<Duration, BenchError> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

/// Measures the knowledge of a corpus that [`super::run`] has stored in a folder.
///
/// # Errors
/// The store failed.
pub fn timing(corpus: &Corpus, knowledge: Knowledge, folder: &Path) -> Result<Timing, BenchError> {
    let newer = &corpus.questions[corpus.questions.len() / 2..];
    let place = knowledge.folder().to_owned();
    let mut with_model = None;
    let mut knowledge = knowledge;
    if knowledge.wait_for_model(Duration::from_secs(60)).is_ok()
        && knowledge.stats()?.meaning.is_some()
    {
        let mut times = Vec::with_capacity(SEARCHES / 4);
        for asked in questions(newer).take(SEARCHES / 4) {
            times.push(timed(|| Ok(knowledge.search(&asked.short)?))?);
        }
        with_model = Some(percentiles(times));
        knowledge = Knowledge::open(&place, KnowledgeOptions::default())?;
    }
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for asked in questions(newer).take(SEARCHES) {
        short.push(timed(|| Ok(knowledge.search(&asked.short)?))?);
        long.push(timed(|| Ok(knowledge.search(&asked.long)?))?);
    }
    let resident_bytes = resident();
    let index_bytes = knowledge.stats()?.index_bytes;
    let (insert, flush) = inserts(&knowledge, newer, folder)?;
    let units = knowledge.store().counts()?.units;
    drop(knowledge);
    let mut open = Vec::new();
    for _ in 0..OPENINGS {
        open.push(timed(|| Ok(Knowledge::open(&place, KnowledgeOptions::default())?))?);
    }
    Ok(Timing {
        units,
        with_model,
        short: percentiles(short),
        long: percentiles(long),
        insert,
        bare_flush: flush,
        open: percentiles(open),
        resident_bytes,
        index_bytes,
    })
}

/// Stores units one by one, each beside a bare write that is flushed.
pub(super) fn inserts(
    knowledge: &Knowledge,
    questions: &[CorpusQuestion],
    folder: &Path,
) -> Result<(Percentiles, Percentiles), BenchError> {
    let (mut insert, mut flush) = (Vec::new(), Vec::new());
    let mut file =
        fs::File::create(folder.join("flushed")).map_err(|e| KnowledgeError::file(folder, e))?;
    for question in questions.iter().cycle().take(INSERTS) {
        let id = UnitId::random();
        let (title, rest) = question.text.split_once('\n').unwrap_or((question.text.as_str(), ""));
        let draft = Draft {
            content: UnitContent {
                title: format!("{id} {title}"),
                symptom: format!("{id} {rest}"),
                resolution: format!("fix of {id}"),
                ..UnitContent::default()
            },
            metadata: UnitMetadata { files: question.files.clone(), ..UnitMetadata::default() },
            id,
            at: jiff::Timestamp::now(),
            by: "bench".to_owned(),
            trigger: CaptureTrigger::Marked,
        };
        insert.push(timed(|| Ok(knowledge.capture(draft)?))?);
        flush.push(timed(|| {
            use std::io::Write as _;
            let written = file.write_all(&[7; 4096]).and_then(|()| file.sync_data());
            Ok(written.map_err(|error| KnowledgeError::file(folder, error))?)
        })?);
    }
    Ok((percentiles(insert), percentiles(flush)))
}

/// Returns the resident memory of this process, where the system tells it.
pub(super) fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
