//! What a console has printed, whoever read it: the capture service's files and those of runs as
//! one.
//!
//! # Design
//! At any moment one process reads a transport, so the logs never speak of the same bytes, and the
//! times of their indexes put them in order. Within a log the order is the log's, whatever the
//! wall clock did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use jig_model::{ConsoleName, PlaceName, RunId};

use super::files::LogFolder;
use crate::console::{LogError, LogPaths, LogTail, TailItem};
use crate::store::{RunStore, StoreError};

/// How many runs in a row may have ended before the moment of interest until older ones are
/// not looked at: only a run that took longer than these together is missed.
const OLD_RUNS: usize = 50;

/// How much older a file may be than it looks: its time of change is that of its last byte.
const SLACK: Duration = Duration::from_secs(2);

/// Where something was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// In a file of the capture service's log, by its number.
    Captured(u64),
    /// In an attempt of a run.
    Run(RunId, u32),
}

/// A piece of what was printed, or of what happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrollItem {
    /// Where it stands.
    pub source: Source,
    /// What.
    pub item: TailItem,
}

/// Says why what was printed cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScrollError {
    /// A folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Reads what a console has printed since a moment, and what it goes on to print.
#[derive(Debug)]
pub struct Scroll {
    folder: LogFolder,
    runs: RunStore,
    place: PlaceName,
    console: ConsoleName,
    since_ns: i64,
    /// Logs that may still grow, or are not read to their end.
    open: BTreeMap<Source, Reading>,
    /// Logs that are of no interest, or no longer.
    done: BTreeSet<Source>,
    /// Runs of other places, and those that ended before.
    passed: BTreeSet<RunId>,
}

#[derive(Debug)]
struct Reading {
    tail: LogTail,
    next: Option<TailItem>,
    /// Nothing more is written to it.
    over: bool,
}

impl Scroll {
    /// Looks from a moment of the wall clock on, in nanoseconds since the Unix epoch.
    pub fn new(
        folder: LogFolder,
        runs: RunStore,
        (place, console): (PlaceName, ConsoleName),
        since_ns: i64,
    ) -> Self {
        let (open, done, passed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { folder, runs, place, console, since_ns, open, done, passed }
    }

    /// Looks which logs there are now. Costs a look at both folders, and at new runs.
    ///
    /// # Errors
    /// A folder or log cannot be read.
    pub fn look(&mut self) -> Result<(), ScrollError> {
        let files = self.folder.files()?;
        let newest = files.last().map(|file| file.number);
        for file in files {
            let source = Source::Captured(file.number);
            // The file before the newest may still get the last of what its transport carried.
            let over = newest.is_some_and(|newest| file.number + 1 < newest);
            self.open(source, &file.paths, over)?;
        }
        let mut old = 0;
        for entry in self.runs.newest_first()? {
            let id = entry.dir.id().clone();
            if self.passed.contains(&id) {
                old += 1;
            } else {
                // A record that cannot be read may belong anywhere: its run is nothing to us.
                let record = entry.record.as_ref().ok();
                let here = record.is_some_and(|record| record.place.as_ref() == Some(&self.place));
                let ended = record.and_then(|record| record.ended).map(|at| at.as_nanosecond());
                let before =
                    !entry.live && ended.is_none_or(|ended| ended < i128::from(self.since_ns));
                let known = self.open.keys().any(|source| source.is_of(&id));
                if !here || (before && !known) {
                    self.passed.insert(id);
                    old += usize::from(before);
                } else {
                    old = 0;
                    for attempt in entry.dir.attempts() {
                        let raw = entry.dir.console_path(attempt, &self.console);
                        let paths = LogPaths { index: raw.with_extension("idx"), raw };
                        self.open(Source::Run(id.clone(), attempt), &paths, !entry.live)?;
                    }
                }
            }
            if old >= OLD_RUNS {
                break;
            }
        }
        Ok(())
    }

    fn open(&mut self, source: Source, paths: &LogPaths, over: bool) -> Result<(), ScrollError> {
        if let Some(reading) = self.open.get_mut(&source) {
            reading.over |= over;
            return Ok(());
        }
        if self.done.contains(&source) {
            return Ok(());
        }
        let changed = std::fs::metadata(&paths.raw).and_then(|about| about.modified());
        let since = Duration::from_nanos(u64::try_from(self.since_ns).unwrap_or(0));
        let old = changed.is_ok_and(|at| at + SLACK < SystemTime::UNIX_EPOCH + since);
        if old && over {
            self.done.insert(source);
            return Ok(());
        }
        if let Some(mut tail) = LogTail::open(paths)? {
            tail.skip_before(self.since_ns)?;
            self.open.insert(source, Reading { tail, next: None, over });
        }
        Ok(())
    }

    /// Reads what has come, in the order in which it came, up to about so many bytes; less
    /// means that there is no more for now.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn read(&mut self, most: usize) -> Result<Vec<ScrollItem>, ScrollError> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < most {
            let mut ended = Vec::new();
            let mut first: Option<(i64, Source)> = None;
            for (source, reading) in &mut self.open {
                if reading.next.is_none() {
                    reading.next = reading.tail.read_on()?;
                }
                match &reading.next {
                    Some(item) => {
                        let at = item.stamp().wall_ns;
                        if first.as_ref().is_none_or(|(earliest, _)| at < *earliest) {
                            first = Some((at, source.clone()));
                        }
                    }
                    None if reading.over => ended.push(source.clone()),
                    None => {}
                }
            }
            for source in ended {
                self.open.remove(&source);
                self.done.insert(source);
            }
            let Some((_, source)) = first else { break };
            let Some(item) = self.open.get_mut(&source).and_then(|r| r.next.take()) else { break };
            bytes += match &item {
                TailItem::Bytes { bytes, .. } => bytes.len(),
                // What is only marks is bounded, too.
                TailItem::Mark(_) => 64,
            };
            items.push(ScrollItem { source, item });
        }
        Ok(items)
    }
}

impl Source {
    fn is_of(&self, run: &RunId) -> bool {
        matches!(self, Self::Run(id, _) if id == run)
    }
}
