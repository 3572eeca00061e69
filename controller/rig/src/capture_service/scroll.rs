//! Scroll-back of a console: the logs of the capture service and of runs, merged.
//!
//! # Design
//! At any moment one process reads a transport, so no two logs hold the same bytes, and the times
//! in their indexes order them. Within one log the order of its bytes holds, whatever the wall
//! clock did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use jig_model::{ConsoleName, PlaceName, RunId};

use super::files::LogFolder;
use crate::console::{LogError, LogPaths, LogTail, TailItem};
use crate::store::{RunStore, StoreError};

/// Number of consecutive runs that ended before the wanted time after which older runs are not
/// read. A run is missed only if it took longer than all of these together.
const OLD_RUNS: usize = 50;

/// Margin for the time of a file's last change, which is the time of its last byte.
const SLACK: Duration = Duration::from_secs(2);

/// Log that an item was read from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScrollSource {
    /// File of the capture service, by its number.
    Captured(u64),
    /// Attempt of a run.
    Run(RunId, u32),
}

/// A piece of output, or an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScrollItem {
    /// Log that holds it.
    pub source: ScrollSource,
    /// Output or event.
    pub item: TailItem,
}

/// Reason why scroll-back cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScrollError {
    /// A folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Reads what a console has printed since a given time, and follows new output.
#[derive(Debug)]
pub struct Scroll {
    folder: LogFolder,
    runs: RunStore,
    place: PlaceName,
    console: ConsoleName,
    since_ns: i64,
    /// Logs that may still grow, or have unread bytes.
    open: BTreeMap<ScrollSource, OpenLog>,
    /// Logs that are read to their end or outside the wanted time.
    done: BTreeSet<ScrollSource>,
    /// Runs of other places, and runs that ended before the wanted time.
    passed: BTreeSet<RunId>,
}

#[derive(Debug)]
struct OpenLog {
    tail: LogTail,
    next: Option<TailItem>,
    /// The log is complete.
    over: bool,
}

impl Scroll {
    /// Starts at a wall-clock time in nanoseconds since the Unix epoch.
    pub fn new(
        folder: LogFolder,
        runs: RunStore,
        (place, console): (PlaceName, ConsoleName),
        since_ns: i64,
    ) -> Self {
        let (open, done, passed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { folder, runs, place, console, since_ns, open, done, passed }
    }

    /// Finds the logs that exist now. Lists both folders, and opens new runs.
    ///
    /// # Errors
    /// A folder or log cannot be read.
    pub fn look(&mut self) -> Result<(), ScrollError> {
        let files = self.folder.files()?;
        let newest = files.last().map(|file| file.number);
        for file in files {
            let source = ScrollSource::Captured(file.number);
            // The last bytes of a transport may still be written to the file before the newest.
            let over = newest.is_some_and(|newest| file.number + 1 < newest);
            self.open(source, &file.paths, over)?;
        }
        let mut old = 0;
        for entry in self.runs.newest_first()? {
            let id = entry.dir.id().clone();
            if self.passed.contains(&id) {
                old += 1;
            } else {
                // A record that cannot be read names no place; its run is skipped.
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
                        self.open(ScrollSource::Run(id.clone(), attempt), &paths, !entry.live)?;
                    }
                }
            }
            if old >= OLD_RUNS {
                break;
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        source: ScrollSource,
        paths: &LogPaths,
        over: bool,
    ) -> Result<(), ScrollError> {
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
            self.open.insert(source, OpenLog { tail, next: None, over });
        }
        Ok(())
    }

    /// Reads new items in order, up to about `most` bytes. Fewer bytes mean that there are no more
    /// for now.
    ///
    /// # Errors
    /// A log cannot be read.
    pub fn read(&mut self, most: usize) -> Result<Vec<ScrollItem>, ScrollError> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while bytes < most {
            let mut ended = Vec::new();
            let mut first: Option<(i64, ScrollSource)> = None;
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
                // Events without bytes count against the bound, too.
                TailItem::Mark(_) => 64,
            };
            items.push(ScrollItem { source, item });
        }
        Ok(items)
    }
}

impl ScrollSource {
    fn is_of(&self, run: &RunId) -> bool {
        matches!(self, Self::Run(id, _) if id == run)
    }
}
