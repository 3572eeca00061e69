//! Search for words in records and consoles of the newest runs: what is left where the knowledge that was
//! learnt from them does not answer.
//!
//! # Design
//! *No index.* The newest runs are read as they lie there, each log to a limit, so that the search needs nothing
//! that could be away or damaged, too. A run is told by the line that has most of the words.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use jig_lab::{RigQuery, RigView, RunPage};
use jig_model::signature::first_bad_line;
use jig_operator::tools::escaped;
use jig_rig::store::{RunEntry, RunStore};
use jig_service::client::RemoteRig;
use serde_json::{Value, json};

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::failure::Failure;

/// Most runs that are looked into.
const MAX_RUNS: usize = 200;

/// Bytes of the end of each console that are looked into.
const TAIL: u64 = 128 << 10;

/// Longest line that is told, in bytes.
const MAX_LINE: usize = 400;

/// How long it is looked; what was not reached by then is said.
const LIMIT: Duration = Duration::from_secs(5);

/// Words that are in every question.
const COMMON: [&str; 16] = [
    "and", "are", "did", "does", "for", "from", "how", "not", "that", "the", "this", "was", "what",
    "when", "why", "with",
];

/// The place of a line that has words of the question.
struct FoundLine {
    words: usize,
    file: String,
    range: Option<(u64, u64)>,
    line: String,
}

/// Finds runs by words, the best first, then the newest.
pub(super) async fn runs(
    common: &Common,
    rig: Option<&RemoteRig>,
    question: &str,
    limit: usize,
) -> Result<Value, Failure> {
    let wanted = words(question);
    let mut hits: Vec<(usize, Value)> = Vec::new();
    let (mut looked, mut more) = (0, false);
    match rig {
        None => {
            let store = RunStore::new(common.reader.read(&common.own_lab())?.runs_dir());
            let begun = Instant::now();
            for entry in store.newest_before(None)? {
                if looked == MAX_RUNS || begun.elapsed() > LIMIT {
                    more = true;
                    break;
                }
                looked += 1;
                hits.extend(found_in(&entry, &wanted));
            }
        }
        // Of a rig elsewhere, what its list tells is looked into.
        Some(rig) => {
            let RigView::Runs(RunPage { runs, .. }) =
                rig.view(RigQuery::Runs { before: None }).await?
            else {
                return Err(unexpected());
            };
            for run in runs.iter().take(MAX_RUNS) {
                looked += 1;
                let summary = run.summary.as_deref().unwrap_or_default();
                let count = matches(summary, &wanted);
                if count > 0 {
                    let hit = json!({ "run": run.id, "place": run.place, "verdict": run.verdict,
                        "cause": run.cause, "words": count, "file": "record.json",
                        "line": cut(summary) });
                    hits.push((count, hit));
                }
            }
            more = runs.len() > MAX_RUNS;
        }
    }
    // Stable: of equally good ones the newest stays first.
    hits.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let hits: Vec<Value> = hits.into_iter().take(limit).map(|(_, hit)| hit).collect();
    Ok(json!({ "hits": hits, "words": wanted, "runs_searched": looked, "more": more }))
}

/// Returns the words of a question by which lines are found.
fn words(question: &str) -> BTreeSet<String> {
    let words = question.split(|c: char| !c.is_alphanumeric() && c != '_');
    let words = words.map(str::to_lowercase);
    words.filter(|word| word.len() > 2 && !COMMON.contains(&word.as_str())).take(32).collect()
}

/// Counts the words that a text has.
fn matches(text: &str, wanted: &BTreeSet<String>) -> usize {
    let text = text.to_lowercase();
    wanted.iter().filter(|word| text.contains(word.as_str())).count()
}

fn cut(line: &str) -> &str {
    &line[..line.floor_char_boundary(MAX_LINE)]
}

/// Finds the best line of a run.
fn found_in(entry: &RunEntry, wanted: &BTreeSet<String>) -> Option<(usize, Value)> {
    let record = entry.record.as_ref().ok()?;
    let mut best: Option<FoundLine> = None;
    let mut take = |found: FoundLine| {
        if found.words > best.as_ref().map_or(0, |best| best.words) {
            best = Some(found);
        }
    };
    let verdict = record.verdict.as_ref();
    if let Some(verdict) = verdict {
        let texts = [Some(verdict.summary.as_str()), first_bad_line(verdict)];
        let names = record.plan.as_ref().map(|plan| plan.name.as_str());
        for text in texts.into_iter().chain([names]).flatten() {
            let line = escaped(cut(text).as_bytes());
            let file = "record.json".to_owned();
            take(FoundLine { words: matches(text, wanted), file, range: None, line });
        }
        for evidence in &verdict.evidence {
            let line = escaped(cut(&evidence.note).as_bytes());
            let range = Some((evidence.start, evidence.end));
            let file = evidence.file.clone();
            take(FoundLine { words: matches(&evidence.note, wanted), file, range, line });
        }
    }
    if let Some(attempt) = record.attempts.last() {
        for console in &attempt.consoles {
            let path = entry.dir.console_path(attempt.attempt, console);
            let file = format!("consoles/{}/{console}.raw", attempt.attempt);
            in_console(&path, &file, wanted).into_iter().for_each(&mut take);
        }
    }
    let FoundLine { words, file, range, line } = best?;
    let hit = json!({
        "run": record.id,
        "place": record.place,
        "verdict": verdict.map(|verdict| verdict.kind),
        "cause": verdict.map(|verdict| verdict.cause),
        "started": record.started,
        "words": words,
        "file": file,
        "from": range.map(|(from, _)| from),
        "to": range.map(|(_, to)| to),
        "line": line,
    });
    Some((words, hit))
}

/// Finds the best line at the end of a console's log. One that cannot be read has none.
fn in_console(path: &Path, file: &str, wanted: &BTreeSet<String>) -> Option<FoundLine> {
    let mut log = File::open(path).ok()?;
    let size = log.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let from = size.saturating_sub(TAIL);
    log.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    log.take(TAIL).read_to_end(&mut bytes).ok()?;
    let (mut best, mut at) = (None, from);
    let mut most = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let end = at + line.len() as u64;
        let text = String::from_utf8_lossy(line);
        let words = matches(&text, wanted);
        if words > most {
            most = words;
            let line = escaped(cut(text.trim_end()).as_bytes());
            let range = Some((at, end));
            best = Some(FoundLine { words, file: file.to_owned(), range, line });
        }
        at = end;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_words_and_told_by_their_bytes() {
        let wanted = words("why does the Ring-buffer wrap at 0x2000?");
        assert_eq!(
            wanted.iter().map(String::as_str).collect::<Vec<_>>(),
            ["0x2000", "buffer", "ring", "wrap"]
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("uart0.raw");
        std::fs::write(&path, b"boot\nring BUFFER \x1b[2J\xff\nring\n").unwrap();
        let found = in_console(&path, "consoles/1/uart0.raw", &wanted).unwrap();
        assert_eq!((found.words, found.range), (2, Some((5, 23))));
        assert_eq!(found.line, "ring BUFFER \\x1b[2J\u{fffd}");
        assert!(in_console(folder.path(), "x", &wanted).is_none());
    }
}
