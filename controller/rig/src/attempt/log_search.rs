//! Searches the complete logs of an attempt, on a thread for blocking work.
//!
//! Owns which bytes of which console are looked at. Decides nothing.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use jig_model::Cause;
use jig_model::pattern::Pattern;
use tokio::task::spawn_blocking;

use super::after_end::{captured_at, captured_behind, suspicious_line};
use super::error::AttemptError;
use super::failed_results::{KnownLines, failed_result, quoted};
use super::rejected_text::rejected_text;
use super::result_like::result_like;
use crate::console::{PatternSet, PatternSetError};
use crate::judge::{ByteRange, Incident, IncidentKind, Observation};
use crate::results::ReadLines;

/// One console of an attempt.
pub(super) struct SearchedConsole {
    /// The log's path relative to the run.
    pub(super) file: String,
    /// What of its output counts, and the lines of reports in it.
    pub(super) judged: Range<u64>,
    pub(super) read: ReadLines,
}

/// What to search, and where.
pub(super) struct LogSearch {
    /// The folder of the run.
    pub(super) run: PathBuf,
    /// The consoles whose output counts, that with the results first.
    pub(super) consoles: Vec<SearchedConsole>,
    /// Output that the plan rejects.
    pub(super) rejected: Vec<Pattern>,
    /// Lines that are harmless.
    pub(super) allowed: Vec<Pattern>,
    /// Texts that the plan expected.
    pub(super) expected: Vec<ByteRange>,
    /// Crashes that the firmware expected.
    pub(super) excused: Vec<ByteRange>,
    /// Where what the plan waits for ends: the log, and the offset.
    pub(super) end: Option<(String, u64)>,
}

/// What was found in the logs.
struct LogFindings {
    /// A failed result that no report has.
    failed_result: Option<ByteRange>,
    /// What looks like a crash behind the end.
    suspicious: Option<ByteRange>,
    /// Rejected output behind control sequences.
    rejected: Option<ByteRange>,
}

impl LogSearch {
    /// Searches for what contradicts a pass.
    pub(super) async fn contradictions(
        self,
        seen: Observation,
    ) -> Result<Observation, AttemptError> {
        let found = spawn_blocking(move || self.search());
        let found = found.await.map_err(AttemptError::Broken)?.map_err(AttemptError::Patterns)?;
        let LogFindings { failed_result, suspicious, rejected } = found;
        let kind = IncidentKind::Recognised(Cause::AssertFailed);
        let rejected = rejected.map(|range| Incident { kind, range });
        let incidents = seen.incidents.iter().cloned().chain(rejected).collect();
        Ok(Observation { suspicious, failed_result, incidents, ..seen })
    }

    fn search(self) -> Result<LogFindings, PatternSetError> {
        let allowed = PatternSet::new(&self.allowed)?;
        let failed_result = self.consoles.iter().find_map(|one| self.failed_in(one, &allowed));
        let behind = self.end.as_ref().map(|(file, end)| {
            let time = captured_at(&self.run, file, *end);
            self.consoles.iter().find_map(|console| {
                let start = match console.file == *file {
                    true => Some(*end),
                    false => captured_behind(&self.run, &console.file, time?),
                };
                let excused = spans(&self.excused, console);
                suspicious_line(&self.run, &console.file, start?, (&allowed, &excused))
            })
        });
        let rejected = self.rejected_line()?;
        Ok(LogFindings { failed_result, suspicious: behind.flatten(), rejected })
    }

    fn rejected_line(&self) -> Result<Option<ByteRange>, PatternSetError> {
        if self.rejected.is_empty() {
            return Ok(None);
        }
        let rejected = PatternSet::new(&self.rejected)?;
        Ok(self.consoles.iter().find_map(|console| {
            let log = File::open(self.run.join(&console.file)).ok()?;
            let found = rejected_text(&log, console.judged.clone(), &rejected)?;
            Some(quoted(&console.file, found))
        }))
    }

    fn failed_in(&self, console: &SearchedConsole, allowed: &PatternSet) -> Option<ByteRange> {
        // A log that cannot be read has failed the attempt already.
        let log = File::open(self.run.join(&console.file)).ok()?;
        let expected = [spans(&self.expected, console), spans(&self.excused, console)].concat();
        let known = KnownLines { read: &console.read, expected: &expected, allowed };
        let (span, text) = failed_result(&log, console.judged.clone(), &known)?;
        Some(quoted(&console.file, (span, text)))
    }
}

/// Lists where texts stand in a console's log.
fn spans(texts: &[ByteRange], console: &SearchedConsole) -> Vec<Range<u64>> {
    let here = texts.iter().filter(|text| text.file == console.file);
    here.map(|text| text.start..text.end).collect()
}

/// Finds the line within a console's output that looks most like a result.
pub(super) async fn most_like_a_result(
    run: PathBuf,
    seen: Observation,
) -> Result<Observation, AttemptError> {
    let output = seen.output.clone();
    let like = spawn_blocking(move || result_like(&run, &output));
    let result_like = like.await.map_err(AttemptError::Broken)?;
    Ok(Observation { result_like, ..seen })
}
