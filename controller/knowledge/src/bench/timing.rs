//! How long searching, storing and opening take.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::corpus::Corpus;
use super::run::{BenchError, context_of};
use crate::error::KnowledgeError;
use crate::knowledge::{Knowledge, KnowledgeOptions};
use crate::retrieve::RetrievalContext;
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// Searches of each kind.
const SEARCHES: usize = 1000;

/// Units that are stored one by one.
const INSERTS: usize = 500;

/// Openings of the store.
const OPENINGS: usize = 20;

/// Words of a short question, and terms of a log.
const SHORT: usize = 40;
const LONG: usize = 400;

/// Durations in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

fn percentiles(mut times: Vec<Duration>) -> Percentiles {
    times.sort();
    let at = |share: usize| {
        let place = (times.len() * share / 100).min(times.len().saturating_sub(1));
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    Percentiles { count: times.len(), p50_ms: at(50), p99_ms: at(99) }
}

fn timed<T>(work: impl FnOnce() -> Result<T, BenchError>) -> Result<Duration, BenchError> {
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
    let words =
        |text: &str, most: usize| text.split_whitespace().take(most).collect::<Vec<_>>().join(" ");
    // Each has words of its own in front, so no search finds its answer in the cache.
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for (number, question) in newer.iter().cycle().take(SEARCHES).enumerate() {
        let of = context_of(question, true);
        let text = format!("{} q{number}", words(&question.text, SHORT - 1));
        let asked = RetrievalContext { query: text, ..of.clone() };
        short.push(timed(|| Ok(knowledge.search(&asked)?))?);
        let mut log = String::new();
        for other in newer.iter().cycle().skip(number) {
            log.push_str(&other.text);
            log.push('\n');
            if log.split_whitespace().count() >= LONG {
                break;
            }
        }
        let asked = RetrievalContext { query: format!("{} q{number}", words(&log, LONG)), ..of };
        long.push(timed(|| Ok(knowledge.search(&asked)?))?);
    }
    let resident_bytes = resident();
    let index_bytes = knowledge.stats()?.index_bytes;
    let (mut insert, mut flush) = (Vec::new(), Vec::new());
    let mut file =
        fs::File::create(folder.join("flushed")).map_err(|e| KnowledgeError::file(folder, e))?;
    for question in newer.iter().cycle().take(INSERTS) {
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
    let units = knowledge.store().counts()?.units;
    let place = knowledge.folder().to_owned();
    drop(knowledge);
    let mut open = Vec::new();
    for _ in 0..OPENINGS {
        open.push(timed(|| Ok(Knowledge::open(&place, KnowledgeOptions::default())?))?);
    }
    Ok(Timing {
        units,
        short: percentiles(short),
        long: percentiles(long),
        insert: percentiles(insert),
        bare_flush: percentiles(flush),
        open: percentiles(open),
        resident_bytes,
        index_bytes,
    })
}

/// Returns the resident memory of this process, where the system tells it.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
