//! Searches the complete logs of an attempt, on a thread for blocking work.
//!
//! Owns which bytes of which console are looked at. Decides nothing. A log that cannot be read fails
//! the attempt.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::Strictness;
use jig_model::pattern::Pattern;
use tokio::task::spawn_blocking;

use super::after_end::{captured_at, captured_behind, cut_headline, is_doubtful, suspicious_line};
use super::awaited_line::{AwaitedLine, distinct_pattern};
use super::begins_again::{BootOutput, EndOf};
use super::begun_runs::{self, begun_run};
use super::drain::{complete_line, shows_line};
use super::error::AttemptError;
use super::failed_results::{
    ALARMS, CRASHES_OF_START, FoundLine, KnownLines, REFUSALS, failed_result, find_in_blocks,
    quoted, unspelled_line,
};
use super::result_like::result_like;
use super::unaccounted::UnaccountedSearch;
use crate::console::{
    AwaitedDoubt, DUMP_REACH, FaultReasons, LogError, PatternSet, is_suspicious, prepare_search,
    registers_in_front,
};
use crate::judge::{BootSign, ByteRange, DoubtfulText, Observation, OutputBehind};
use crate::results::ReadLines;
use crate::store::{UNACCOUNTED_FILE, UnaccountedKind, UnaccountedOutput};

/// How far apart lines of two consoles have to be captured for their order to be that in which the target
/// printed them, in nanoseconds: a busy host reads one console before another.
const UNORDERED_NS: u64 = 100_000_000;

/// Most lines with the awaited text, in a block of the log, of which each is read whether it takes the
/// text back: firmware that prints it for ever must not keep a run.
const MOST_REPEATED: usize = 1000;

/// Compiles ahead of it what a search takes where it finds nothing.
pub(super) fn prepare() {
    prepare_search();
    begun_runs::prepare();
}

/// One console of an attempt.
pub(super) struct SearchedConsole {
    /// The log's path relative to the run.
    pub(super) file: String,
    /// What of its output counts, and the lines of reports in it.
    pub(super) judged: Range<u64>,
    pub(super) read: ReadLines,
    /// It has the output of commands, which boots print nothing to.
    pub(super) of_commands: bool,
}

/// What to search, and where.
pub(super) struct LogSearch {
    /// The folder of the run.
    pub(super) run: PathBuf,
    /// The consoles whose output counts, that with the results first.
    pub(super) consoles: Vec<SearchedConsole>,
    /// Lines that are harmless.
    pub(super) allowed: Vec<Pattern>,
    /// Which lines have to be known for a pass.
    pub(super) strict: Strictness,
    /// Texts that the plan expected.
    pub(super) expected: Vec<ByteRange>,
    /// The parts of them that its patterns spell out.
    pub(super) spelled: Vec<ByteRange>,
    /// What the pattern of the last of them matched.
    pub(super) matched: Option<ByteRange>,
    /// Where in each log the plan began to send.
    pub(super) sent: BTreeMap<String, u64>,
    /// Crashes that the firmware expected.
    pub(super) excused: Vec<ByteRange>,
    /// Where what the plan waits for ends: the log, and the offset.
    pub(super) end: Option<(String, u64)>,
    /// The same for each earlier boot that the plan has ended.
    pub(super) earlier_ends: Vec<EarlierEnd>,
    /// Where the last boot begins in that log.
    pub(super) booted: u64,
    /// How much all consoles printed behind the last fault that output followed.
    pub(super) since_fault: Option<u64>,
    /// The end is that of a report, and not a text that the plan waits for.
    pub(super) reported: bool,
    /// The board tells of each of its resets.
    pub(super) resets_told: bool,
}

/// Where what the plan waits for ends in a boot that the plan itself has ended.
pub(super) struct EarlierEnd {
    pub(super) file: String,
    pub(super) at: u64,
    /// Where the next boot begins, by log; nowhere if there is none.
    pub(super) until: BTreeMap<String, u64>,
}

/// What was found in the logs.
struct LogFindings {
    /// A failed result that no report has.
    failed_result: Option<ByteRange>,
    /// What nothing accounts for.
    unaccounted: Option<ByteRange>,
    /// The same behind the end of a report, where nothing has to be known.
    output_behind: Option<OutputBehind>,
    /// The text that ends the plan, if it proves nothing.
    doubtful_text: Option<DoubtfulText>,
    /// What looks like a crash behind the end.
    suspicious: Option<ByteRange>,
    /// What looks like a crash among the results of a report.
    alarm: Option<ByteRange>,
    /// What was printed behind a fault behind the end.
    fault_behind: Option<ByteRange>,
    /// What shows a boot behind the end.
    begun_again: Option<BootSign>,
}

/// The text that ends a plan.
struct LastText<'a> {
    /// The log that it stands in.
    file: &'a str,
    line: AwaitedLine,
    /// The parts of texts in this log that patterns spell out.
    spelled: Vec<Range<u64>>,
}

impl LogSearch {
    /// Searches for what contradicts a pass.
    pub(super) async fn contradictions(
        self,
        seen: Observation,
    ) -> Result<Observation, AttemptError> {
        let search = move || self.with_registers()?.search();
        let found = spawn_blocking(search).await.map_err(AttemptError::Broken)??;
        let LogFindings {
            failed_result,
            unaccounted,
            output_behind,
            doubtful_text,
            suspicious,
            alarm,
            fault_behind,
            begun_again,
        } = found;
        let found =
            Observation { suspicious, alarm, fault_behind, begun_again, failed_result, ..seen };
        Ok(Observation { doubtful_text, unaccounted, output_behind, ..found })
    }

    /// Searches what was judged for a failure in readable text: a failed result that no report has,
    /// or what looks like a crash.
    pub(super) async fn failure(self) -> Result<Option<ByteRange>, AttemptError> {
        let found = spawn_blocking(move || {
            let this = self.with_registers()?;
            let allowed = PatternSet::new(&this.allowed).map_err(AttemptError::Patterns)?;
            let failed = this.first(|console| this.failed_in(console, &allowed))?;
            match failed {
                Some(_) => Ok(failed),
                None => this.first(|console| this.crashed_in(console, &allowed)),
            }
        });
        found.await.map_err(AttemptError::Broken)?
    }

    /// Adds to the crashes that the firmware expected the registers in front of their headlines.
    fn with_registers(mut self) -> Result<Self, AttemptError> {
        for crash in &mut self.excused {
            let from = crash.start.saturating_sub(DUMP_REACH);
            let registers = read(&self.run, &crash.file, |log| {
                let mut text = vec![0; (crash.start - from) as usize];
                log.read_exact_at(&mut text, from)?;
                Ok(registers_in_front(&text))
            })?;
            crash.start -= registers as u64;
        }
        Ok(self)
    }

    fn crashed_in(
        &self,
        console: &SearchedConsole,
        allowed: &PatternSet,
    ) -> Result<Option<ByteRange>, AttemptError> {
        let SearchedConsole { file, judged, .. } = console;
        let known = self.known_in(console);
        let find =
            |log: &File| suspicious_line(log, judged.clone(), is_suspicious, (allowed, &known));
        Ok(read(&self.run, file, find)?.map(|found| quoted(file, found)))
    }

    /// Lists what the plan and the firmware expected on a console.
    fn known_in(&self, console: &SearchedConsole) -> Vec<Range<u64>> {
        [spans(&self.expected, console), spans(&self.excused, console)].concat()
    }

    fn search(self) -> Result<LogFindings, AttemptError> {
        let allowed = PatternSet::new(&self.allowed).map_err(AttemptError::Patterns)?;
        let doubtful_text = self.doubtful_text(&allowed)?;
        let failed_result = match self.first(|console| self.failed_in(console, &allowed))? {
            None if doubtful_text.is_none() => self.error_in_awaited_line(&allowed)?,
            found => found,
        };
        let output = self.unaccounted(&allowed)?;
        if let Some(output) = &output {
            self.keep(output);
        }
        let (unaccounted, output_behind) = match output {
            Some(output) if !self.strict.is_off() => (first_line(&output), None),
            output => (None, output),
        };
        let output_behind = output_behind.and_then(|output| {
            Some(OutputBehind { lines: output.lines, first: first_line(&output)? })
        });
        let mut earlier = self.earlier_ends.iter();
        let earlier = earlier.find_map(|EarlierEnd { file, at, until }| {
            self.suspicious_behind((file, *at), until, &allowed).transpose()
        });
        let earlier = earlier.transpose()?;
        let Some((file, end)) = &self.end else {
            let (suspicious, fault_behind, begun_again) = (earlier, None, None);
            return Ok(LogFindings {
                failed_result,
                unaccounted,
                output_behind,
                doubtful_text,
                suspicious,
                alarm: None,
                fault_behind,
                begun_again,
            });
        };
        let suspicious = match earlier {
            None => self.suspicious_behind((file, *end), &BTreeMap::new(), &allowed)?,
            found => found,
        };
        Ok(LogFindings {
            failed_result,
            unaccounted,
            output_behind,
            doubtful_text,
            suspicious,
            alarm: self.first(|console| self.alarm_in(console, &allowed))?,
            fault_behind: self.fault_behind(file, *end)?,
            begun_again: self.begun_again(file, *end, &allowed)?,
        })
    }

    /// Returns the first finding in the consoles, in their order.
    fn first(
        &self,
        find: impl Fn(&SearchedConsole) -> Result<Option<ByteRange>, AttemptError>,
    ) -> Result<Option<ByteRange>, AttemptError> {
        self.consoles.iter().find_map(|console| find(console).transpose()).transpose()
    }

    /// Looks at the line of the text that ends the plan.
    fn error_in_awaited_line(
        &self,
        allowed: &PatternSet,
    ) -> Result<Option<ByteRange>, AttemptError> {
        let Some(LastText { file, line, spelled }) = self.last_text()? else { return Ok(None) };
        Ok(line.error_beside(&spelled, allowed).map(|found| quoted(file, found)))
    }

    /// Looks whether the text that ends the plan proves something where it stands.
    fn doubtful_text(&self, allowed: &PatternSet) -> Result<Option<DoubtfulText>, AttemptError> {
        let Some(LastText { file, line, spelled }) = self.last_text()? else { return Ok(None) };
        let end = self.end.as_ref().map(|(_, end)| *end);
        let matched = self.matched.as_ref();
        let matched = matched.filter(|text| text.file == *file && Some(text.end) == end);
        let Some(matched) = matched.map(|text| text.start..text.end) else { return Ok(None) };
        let words = line.spelled_text(&spelled, &matched);
        let found = line.doubtful_text(&spelled, &matched, allowed);
        let found = match (found, words) {
            (None, Some(words)) => self.taken_back(file, &words, matched.end, allowed)?,
            (found, _) => found,
        };
        Ok(found.map(|(line, text, doubt)| DoubtfulText {
            line: quoted(file, line),
            pattern: distinct_pattern(&text, doubt),
            text,
            doubt,
        }))
    }

    /// Finds a later line that denies the words of the text that ends the plan: `READY`, then `NOT READY`.
    fn taken_back(
        &self,
        file: &str,
        words: &[u8],
        from: u64,
        allowed: &PatternSet,
    ) -> Result<Option<(FoundLine, String, AwaitedDoubt)>, AttemptError> {
        let Some(console) = self.consoles.iter().find(|console| console.file == file) else {
            return Ok(None);
        };
        let range = from..console.judged.end;
        read(&self.run, file, |log| {
            find_in_blocks(log, range, |block, at| {
                let hits = memchr::memmem::find_iter(block, words).take(MOST_REPEATED);
                hits.into_iter().find_map(|hit| {
                    let part = at + hit as u64..at + (hit + words.len()) as u64;
                    let line = AwaitedLine::within((block, at), hit);
                    let found = line.doubtful_text(std::slice::from_ref(&part), &part, allowed);
                    let (line, text, _) =
                        found.filter(|(.., doubt)| *doubt != AwaitedDoubt::PartOfWord)?;
                    Some((line, text, AwaitedDoubt::TakenBack))
                })
            })
        })
    }

    /// Tells whether the text that ends the plan is the verdict of tests.
    fn ends_tests(&self) -> Result<bool, AttemptError> {
        let Some(LastText { file, line, spelled }) = self.last_text()? else { return Ok(false) };
        let matched = self.matched.as_ref().filter(|text| text.file == *file);
        Ok(matched.is_some_and(|text| line.spells_tests(&spelled, &(text.start..text.end))))
    }

    /// Reads the line of the text that ends the plan.
    fn last_text(&self) -> Result<Option<LastText<'_>>, AttemptError> {
        let Some((file, end)) = self.end.as_ref().filter(|_| !self.reported) else {
            return Ok(None);
        };
        let console = self.consoles.iter().find(|console| console.file == *file);
        let spelled = console.map(|console| spans(&self.spelled, console)).unwrap_or_default();
        let line = read(&self.run, file, |log| AwaitedLine::read(log, *end))?;
        Ok(Some(LastText { file, line, spelled }))
    }

    fn suspicious_behind(
        &self,
        (file, end): (&str, u64),
        until: &BTreeMap<String, u64>,
        allowed: &PatternSet,
    ) -> Result<Option<ByteRange>, AttemptError> {
        let time = captured_at(&self.run, file, end).map_err(AttemptError::Search)?;
        let looks = if self.reported { is_doubtful } else { is_suspicious };
        self.first(|console| {
            let start = self.start_behind(console, (file, end), time)?;
            let until_end = until.get(&console.file).copied().unwrap_or(u64::MAX);
            let excused = spans(&self.excused, console);
            // A line of another console that was never ended was cut at the end of the run, whenever
            // it began.
            let elsewhere = console.file != file && until.is_empty();
            let cut_from = if elsewhere { Some(console.judged.start) } else { start };
            let find = |log: &File| {
                let behind = start.map(|start| start..until_end);
                let found =
                    behind.map(|range| suspicious_line(log, range, looks, (allowed, &excused)));
                match (found.transpose()?.flatten(), cut_from) {
                    (None, Some(from)) => cut_headline(log, from..until_end, (allowed, &excused)),
                    (found, _) => Ok(found),
                }
            };
            let found = read(&self.run, &console.file, find)?;
            Ok(found.map(|found| quoted(&console.file, found)))
        })
    }

    /// Returns where the output of a console behind the end begins, which was captured at this time.
    fn start_behind(
        &self,
        console: &SearchedConsole,
        (file, end): (&str, u64),
        time: Option<u64>,
    ) -> Result<Option<u64>, AttemptError> {
        match time {
            _ if console.file == file => Ok(Some(end)),
            None => Ok(None),
            Some(time) => {
                captured_behind(&self.run, &console.file, time).map_err(AttemptError::Search)
            }
        }
    }

    /// Returns what the console with the end printed behind the last fault that output followed, if
    /// that lies behind the end: then no more was printed behind it than behind the end.
    fn fault_behind(&self, file: &str, end: u64) -> Result<Option<ByteRange>, AttemptError> {
        let Some(since) = self.since_fault else { return Ok(None) };
        let time = captured_at(&self.run, file, end).map_err(AttemptError::Search)?;
        let (mut behind, mut len) = (0_u64, end);
        for console in &self.consoles {
            let Some(start) = self.start_behind(console, (file, end), time)? else { continue };
            let stands = read(&self.run, &console.file, |log| Ok(log.metadata()?.len()))?;
            behind = behind.saturating_add(stands.saturating_sub(start));
            if console.file == file {
                len = stands;
            }
        }
        let start = end.max(len.saturating_sub(since));
        let text = "output behind the fault".to_owned();
        Ok((since <= behind).then(|| ByteRange { file: file.to_owned(), start, end: len, text }))
    }

    /// Searches for a boot behind the end, on the console of the end first.
    fn begun_again(
        &self,
        file: &str,
        end: u64,
        allowed: &PatternSet,
    ) -> Result<Option<BootSign>, AttemptError> {
        let end_of = if self.reported { EndOf::Report } else { EndOf::AwaitedText };
        let time = captured_at(&self.run, file, end).map_err(AttemptError::Search)?;
        let (here, others): (Vec<_>, Vec<_>) =
            self.consoles.iter().partition(|console| console.file == file);
        for console in here.into_iter().chain(others) {
            if console.of_commands {
                continue;
            }
            let Some(start) = self.start_behind(console, (file, end), time)? else { continue };
            let (from, end_of) = match console.file == file {
                true => (self.booted, end_of),
                false => (console.judged.start, EndOf::Elsewhere),
            };
            let known = self.known_in(console);
            let found = read(&self.run, &console.file, |log| {
                let resets_told = self.resets_told;
                let known = &known;
                let output =
                    BootOutput { log, from, end: start, end_of, resets_told, allowed, known };
                if let Some(banner) = output.banner_behind()? {
                    return Ok(Some(BootSign::Banner(quoted(&console.file, banner))));
                }
                let first = output.first_line_again()?;
                Ok(first.map(|first| BootSign::FirstLine(quoted(&console.file, first))))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn alarm_in(
        &self,
        console: &SearchedConsole,
        allowed: &PatternSet,
    ) -> Result<Option<ByteRange>, AttemptError> {
        self.find_unknown(console, allowed, |log, judged, known| match known.crash_from {
            Some(from) => unspelled_line(log, from.max(judged.start)..judged.end, known, ALARMS),
            None if self.reported => Ok(None),
            None => unspelled_line(log, judged.clone(), known, CRASHES_OF_START),
        })
    }

    fn failed_in(
        &self,
        console: &SearchedConsole,
        allowed: &PatternSet,
    ) -> Result<Option<ByteRange>, AttemptError> {
        self.find_unknown(console, allowed, |log, judged, known| {
            let sent = self.sent.get(&console.file).map(|&at| at.max(judged.start)..judged.end);
            let failed = match failed_result(log, judged.clone(), known)? {
                None => begun_run(log, judged, known)?,
                failed => failed,
            };
            match sent.filter(|_| failed.is_none()) {
                Some(answers) => unspelled_line(log, answers, known, REFUSALS),
                None => Ok(failed),
            }
        })
    }

    /// Lists what nothing accounts for: in all output where all has to be known, else behind the end of a
    /// report.
    fn unaccounted(&self, allowed: &PatternSet) -> Result<Option<UnaccountedOutput>, AttemptError> {
        let all = self.strict == Strictness::All;
        let end = match &self.end {
            _ if all => None,
            Some((file, end)) if self.reported => Some((file.as_str(), *end)),
            _ => return Ok(None),
        };
        let time = end.map(|(file, end)| captured_at(&self.run, file, end)).transpose();
        let time = time.map_err(AttemptError::Search)?.flatten();
        let mut unaccounted = UnaccountedSearch::default();
        for console in &self.consoles {
            let from = match end {
                None => Some(console.judged.start),
                Some(end) => self.start_behind(console, end, time)?,
            };
            let Some(from) = from else { continue };
            let range = from.max(console.judged.start)..console.judged.end;
            self.beside_known(console, allowed, |log, _, known| {
                unaccounted.search((log, &console.file), range.clone(), known, all)
            })?;
        }
        Ok(unaccounted.found())
    }

    /// Writes what nothing accounts for beside the logs. It decides nothing, so a run goes on without.
    fn keep(&self, output: &UnaccountedOutput) {
        let Some(console) = self.consoles.first() else { return };
        let path = self.run.join(Path::new(&console.file).with_file_name(UNACCOUNTED_FILE));
        let json = serde_json::to_vec(output).map_err(io::Error::from);
        if let Err(error) = json.and_then(|json| std::fs::write(&path, json)) {
            tracing::warn!(path = %path.display(), %error, "the list of unknown lines is not written");
        }
    }

    /// Finds a line of a console beside those that are known.
    fn find_unknown(
        &self,
        console: &SearchedConsole,
        allowed: &PatternSet,
        find: impl Fn(&File, Range<u64>, &KnownLines<'_>) -> io::Result<Option<FoundLine>>,
    ) -> Result<Option<ByteRange>, AttemptError> {
        let found = self.beside_known(console, allowed, find)?;
        Ok(found.map(|found| quoted(&console.file, found)))
    }

    /// Searches what of a console's output counts, with the lines that are known.
    fn beside_known<T>(
        &self,
        console: &SearchedConsole,
        allowed: &PatternSet,
        find: impl FnOnce(&File, Range<u64>, &KnownLines<'_>) -> io::Result<T>,
    ) -> Result<T, AttemptError> {
        let SearchedConsole { file, judged, read: lines, .. } = console;
        let (spelled, excused) = (spans(&self.spelled, console), spans(&self.excused, console));
        let crash_from = self.crashes_count_from(console)?;
        let known =
            KnownLines { read: lines, spelled: &spelled, excused: &excused, allowed, crash_from };
        read(&self.run, file, |log| find(log, judged.clone(), &known))
    }

    /// Returns from where on evidence of a crash counts: from the first line of a report on, and on a
    /// console without one from what was captured behind the first line of the report that ends the
    /// plan, or so shortly in front of it that the host cannot tell which came first. Where a text ends the
    /// plan that is the verdict of tests, all that was printed counts.
    fn crashes_count_from(&self, console: &SearchedConsole) -> Result<Option<u64>, AttemptError> {
        if let Some(begin) = console.read.begin() {
            return Ok(Some(begin + 1));
        }
        if self.ends_tests()? {
            return Ok(Some(console.judged.start));
        }
        let Some((file, _)) = self.end.as_ref().filter(|_| self.reported) else { return Ok(None) };
        let ended = self.consoles.iter().find(|console| console.file == *file);
        let Some(begin) = ended.and_then(|console| console.read.begin()) else { return Ok(None) };
        let time = captured_at(&self.run, file, begin + 1).map_err(AttemptError::Search)?;
        let Some(time) = time else { return Ok(None) };
        let from = time.saturating_sub(UNORDERED_NS);
        captured_behind(&self.run, &console.file, from).map_err(AttemptError::Search)
    }
}

/// Returns the first line that nothing accounts for.
fn first_line(output: &UnaccountedOutput) -> Option<ByteRange> {
    let UnaccountedKind { file, start, end, text, .. } = output.kinds.first()?.clone();
    Some(ByteRange { file, start, end, text })
}

/// Lists where texts stand in a console's log.
fn spans(texts: &[ByteRange], console: &SearchedConsole) -> Vec<Range<u64>> {
    let here = texts.iter().filter(|text| text.file == console.file);
    here.map(|text| text.start..text.end).collect()
}

/// Opens a log of a run and reads it.
fn read<T>(
    run: &Path,
    file: &str,
    search: impl FnOnce(&File) -> io::Result<T>,
) -> Result<T, AttemptError> {
    let path = run.join(file);
    let found = File::open(&path).and_then(|log| search(&log));
    found.map_err(|source| AttemptError::Search(LogError::Read { path, source }))
}

/// Extends what was recognised to its whole line, of which only the beginning may have arrived, and
/// to the line behind it that says why. Hence a verdict depends on the bytes and not on how they
/// arrived.
pub(super) async fn complete_lines(
    run: PathBuf,
    mut seen: Observation,
    reasons: Arc<FaultReasons>,
) -> Result<Observation, AttemptError> {
    if !seen.incidents.iter().any(shows_line) {
        return Ok(seen);
    }
    let completed = spawn_blocking(move || {
        for incident in seen.incidents.iter_mut().filter(|incident| shows_line(incident)) {
            let range = &mut incident.range;
            let file = range.file.clone();
            read(&run, &file, |log| complete_line(log, range, &reasons))?;
        }
        Ok(seen)
    });
    completed.await.map_err(AttemptError::Broken)?
}

/// Finds the line within a console's output that looks most like a result.
pub(super) async fn most_like_a_result(
    run: PathBuf,
    seen: Observation,
) -> Result<Observation, AttemptError> {
    let output = seen.output.clone();
    let like = spawn_blocking(move || read(&run, &output.file, |log| result_like(log, &output)));
    let result_like = like.await.map_err(AttemptError::Broken)??;
    Ok(Observation { result_like, ..seen })
}
