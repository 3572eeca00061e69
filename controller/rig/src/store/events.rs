//! The event log of a run.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jig_model::{RunEvent, StampedEvent};
use serde::Serialize;

use super::jsonl::{JsonLine, JsonlFormat, LineLog, LineReader};
use super::{Clock, StoreError};

const FORMAT: JsonlFormat = JsonlFormat { name: "jig-events", version: 1 };

/// Appends events, numbered and stamped. Shared by reference: the order of the lines is the order
/// of the numbers, also with several writers.
pub struct EventLog {
    clock: Arc<dyn Clock>,
    began: Duration,
    state: Mutex<EventWriter>,
}

struct EventWriter {
    log: LineLog,
    next: u64,
}

/// The written form of a [`StampedEvent`], without cloning the event.
#[derive(Serialize)]
struct EventLine<'a> {
    seq: u64,
    mono_ns: u64,
    wall: Timestamp,
    #[serde(flatten)]
    event: &'a RunEvent,
}

impl EventLog {
    /// Begins the log of a run that began at the monotonic time `began` of the clock.
    ///
    /// # Errors
    /// Says why the file cannot be written.
    pub fn create(path: &Path, clock: Arc<dyn Clock>, began: Duration) -> Result<Self, StoreError> {
        let log = LineLog::create(path, FORMAT)?;
        Ok(Self { clock, began, state: Mutex::new(EventWriter { log, next: 0 }) })
    }

    /// Appends an event and returns its number. It is in the kernel's hands when this
    /// returns, so it survives the death of this process.
    ///
    /// # Errors
    /// Says why it cannot be written; the number is then not used up.
    pub fn append(&self, event: &RunEvent) -> Result<u64, StoreError> {
        let mut writer = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = writer.next;
        let mono = self.clock.mono().saturating_sub(self.began).as_nanos();
        writer.log.append(&EventLine {
            seq,
            mono_ns: u64::try_from(mono).unwrap_or(u64::MAX),
            wall: self.clock.wall(),
            event,
        })?;
        writer.next += 1;
        Ok(seq)
    }

    pub(super) fn moved_to(&self, path: &Path) {
        let mut writer = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        writer.log.moved_to(path.to_owned());
    }
}

/// What stands in an event log.
#[derive(Debug, Clone, PartialEq)]
pub enum EventItem {
    /// An event.
    Event(Box<StampedEvent>),
    /// The last line, which was never finished.
    Torn {
        /// Its offset in the file.
        at: u64,
        /// How many bytes of it are there.
        bytes: u64,
    },
    /// A line that is no event of this format.
    Damaged {
        /// Its offset in the file.
        at: u64,
        /// What is wrong with it.
        reason: String,
    },
}

/// Reads an event log line by line, whatever state it is in.
///
/// Yields an error only where the disk does not answer, or for a newer format.
pub struct EventReader {
    lines: LineReader,
    headed: bool,
    failed: bool,
}

impl EventReader {
    /// Opens a log.
    ///
    /// # Errors
    /// Says why the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { lines: LineReader::open(path)?, headed: false, failed: false })
    }

    fn step(&mut self) -> Result<Option<EventItem>, StoreError> {
        while let Some((at, bytes, line)) = self.lines.next_line()? {
            let headed = std::mem::replace(&mut self.headed, true);
            return Ok(Some(match line {
                JsonLine::Torn => EventItem::Torn { at, bytes },
                JsonLine::TooLong => {
                    EventItem::Damaged { at, reason: format!("{bytes} bytes are too long a line") }
                }
                JsonLine::Whole(line) if !headed => match self.lines.check_header(&line, FORMAT) {
                    Ok(()) => continue,
                    Err(StoreError::Damaged { reason, .. }) => EventItem::Damaged { at, reason },
                    Err(newer) => return Err(newer),
                },
                JsonLine::Whole(line) => match serde_json::from_slice(&line) {
                    Ok(event) => EventItem::Event(Box::new(event)),
                    Err(e) => EventItem::Damaged { at, reason: e.to_string() },
                },
            }));
        }
        Ok(None)
    }
}

impl Iterator for EventReader {
    type Item = Result<EventItem, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.step();
        self.failed = item.is_err();
        item.transpose()
    }
}
