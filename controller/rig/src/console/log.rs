//! A console's log on disk: `NAME.raw`, the bytes and nothing else, and `NAME.idx`, what
//! is known about them.
//!
//! # Format
//! The index is a 16-byte header (`JIGINDEX`, version u32, record size u32) and then records of 32
//! bytes: offset u64, monotonic ns u64, wall ns i64, kind u8, reason u8, value u48; all
//! little-endian. Version 2 knows two more things to say, garbled characters and a shared port, and
//! is else version 1, which is read as well. A record is written after the bytes it speaks of, so
//! what the index does not mention was not committed. A torn last record is no record.
//!
//! Nothing is synced per chunk: the page cache outlives a killed process, and a power
//! failure of the host ends the run anyway. [`LogWriter::sync`] makes the end durable.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jig_model::ConsoleName;

use super::clock::Stamp;

/// First bytes of every index.
const MAGIC: &[u8; 8] = b"JIGINDEX";
/// Version of the index format that is written; readers refuse newer ones.
const VERSION: u32 = 2;
/// Bytes before the first record.
pub(super) const HEADER: usize = 16;
/// Bytes of a record.
pub(super) const RECORD: usize = 32;
/// Largest value of a record: 48 bits, 256 TiB. As a count of lost bytes it means unknown.
const VALUE_MAX: u64 = (1 << 48) - 1;

/// Where a console's log lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPaths {
    /// The bytes.
    pub raw: PathBuf,
    /// The index.
    pub index: PathBuf,
}

impl LogPaths {
    /// Returns the paths of a console's log in a folder.
    pub fn new(folder: &Path, console: &ConsoleName) -> Self {
        Self {
            raw: folder.join(format!("{console}.raw")),
            index: folder.join(format!("{console}.idx")),
        }
    }
}

/// Says why bytes are missing from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// They could not be written to disk.
    Storage,
    /// The device or its driver dropped them.
    Overrun,
    /// The transport's other end went away while the target may have been printing: from this
    /// record's time to that of the next [`RecordKind::Attached`].
    Transport,
    /// Another program has opened the same port, and may have read some.
    Shared,
}

impl GapReason {
    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Overrun => "overrun",
            Self::Transport => "transport",
            Self::Shared => "shared",
        }
    }

    fn code(self) -> u8 {
        match self {
            Self::Storage => 1,
            Self::Overrun => 2,
            Self::Transport => 3,
            Self::Shared => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        let all = [Self::Storage, Self::Overrun, Self::Transport, Self::Shared];
        all.into_iter().find(|reason| reason.code() == code)
    }
}

/// What an index record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// This many bytes arrived.
    Bytes(u64),
    /// Bytes are missing here.
    Gap {
        /// How many, if known.
        lost: Option<u64>,
        /// Why.
        reason: GapReason,
    },
    /// What follows belongs to a new boot.
    Boot,
    /// A transport was attached, or its other end came back.
    Attached,
    /// The transport ended.
    Detached,
    /// This many bytes were sent to the target.
    Sent(u64),
    /// This many of the characters before came with a wrong stop or parity bit.
    Garbled(u64),
}

/// One record of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexRecord {
    /// Offset in the raw bytes.
    pub offset: u64,
    /// When.
    pub stamp: Stamp,
    /// What.
    pub kind: RecordKind,
}

impl IndexRecord {
    pub(super) fn encode(&self) -> [u8; RECORD] {
        let (kind, reason, value) = match self.kind {
            RecordKind::Bytes(len) => (1, 0, len),
            RecordKind::Gap { lost, reason } => (2, reason.code(), lost.unwrap_or(VALUE_MAX)),
            RecordKind::Boot => (3, 0, 0),
            RecordKind::Attached => (4, 0, 0),
            RecordKind::Detached => (5, 0, 0),
            RecordKind::Sent(len) => (6, 0, len),
            RecordKind::Garbled(count) => (7, 0, count),
        };
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.stamp.mono_ns.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stamp.wall_ns.to_le_bytes());
        bytes[24] = kind;
        bytes[25] = reason;
        bytes[26..].copy_from_slice(&value.min(VALUE_MAX).to_le_bytes()[..6]);
        bytes
    }

    /// Reads a record back; `None` for bytes that are none (zeros after a crash, say).
    pub(super) fn decode(bytes: &[u8; RECORD]) -> Option<Self> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            word
        };
        let value = u64::from_le_bytes(word(24)) >> 16;
        let kind = match bytes[24] {
            1 => RecordKind::Bytes(value),
            2 => RecordKind::Gap {
                lost: (value != VALUE_MAX).then_some(value),
                reason: GapReason::from_code(bytes[25])?,
            },
            3 => RecordKind::Boot,
            4 => RecordKind::Attached,
            5 => RecordKind::Detached,
            6 => RecordKind::Sent(value),
            7 => RecordKind::Garbled(value),
            _ => return None,
        };
        let stamp =
            Stamp { mono_ns: u64::from_le_bytes(word(8)), wall_ns: i64::from_le_bytes(word(16)) };
        Some(Self { offset: u64::from_le_bytes(word(0)), stamp, kind })
    }
}

/// Tells whether an index begins so that its records can be read.
pub(super) fn is_header(bytes: &[u8; HEADER]) -> bool {
    (1..=VERSION).any(|version| *bytes == header(version))
}

fn header(version: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..].copy_from_slice(&(RECORD as u32).to_le_bytes());
    bytes
}

/// Says why a log cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file of the log cannot be created.
    #[error("create console log {}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of the log cannot be read.
    #[error("read console log {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The index was written by another version.
    #[error("read console index {}: it is no index of version 1 to {VERSION}; use the jig that wrote it", path.display())]
    Version {
        /// The file.
        path: PathBuf,
    },
}

/// Where a log writer puts its bytes: a file, or a test's trap.
pub(super) trait LogSink: Write + Send {
    fn sync(&mut self) -> io::Result<()>;
}

impl LogSink for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Appends to a log. After an error it stays broken, because how much of the failed write
/// reached the file is unknown and later offsets would lie.
pub(super) struct LogWriter {
    raw: Box<dyn LogSink>,
    index: Box<dyn LogSink>,
    len: u64,
    broken: bool,
}

impl LogWriter {
    /// Creates both files; an existing log is never touched.
    pub(super) fn create(paths: &LogPaths) -> Result<Self, LogError> {
        let open = |path: &Path| {
            OpenOptions::new()
                .append(true)
                .create_new(true)
                .open(path)
                .map_err(|source| LogError::Create { path: path.to_owned(), source })
        };
        let (raw, index) = (open(&paths.raw)?, open(&paths.index)?);
        Self::over(Box::new(raw), Box::new(index))
            .map_err(|source| LogError::Create { path: paths.index.clone(), source })
    }

    /// Writes to any pair of sinks.
    pub(super) fn over(raw: Box<dyn LogSink>, mut index: Box<dyn LogSink>) -> io::Result<Self> {
        index.write_all(&header(VERSION))?;
        Ok(Self { raw, index, len: 0, broken: false })
    }

    /// Returns the committed length.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Appends bytes that arrived at a moment.
    pub(super) fn append(&mut self, stamp: Stamp, bytes: &[u8]) -> io::Result<()> {
        self.guard()?;
        let len = bytes.len() as u64;
        let raw = self.raw.write_all(bytes);
        self.note(raw)?;
        self.record(stamp, RecordKind::Bytes(len))?;
        self.len += len;
        Ok(())
    }

    /// Appends a record at the current end.
    pub(super) fn record(&mut self, stamp: Stamp, kind: RecordKind) -> io::Result<()> {
        self.guard()?;
        let record = IndexRecord { offset: self.len, stamp, kind };
        let written = self.index.write_all(&record.encode());
        self.note(written)
    }

    /// Makes everything durable. Many a console never has any bytes.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.guard()?;
        let raw = if self.len > 0 { self.raw.sync() } else { Ok(()) };
        let synced = raw.and_then(|()| self.index.sync());
        self.note(synced)
    }

    /// Tries to record, after a failure, what is missing.
    pub(super) fn last_words(&mut self, stamp: Stamp, kind: RecordKind) -> io::Result<()> {
        let record = IndexRecord { offset: self.len, stamp, kind };
        self.index.write_all(&record.encode()).and_then(|()| self.index.sync())
    }

    fn guard(&self) -> io::Result<()> {
        if self.broken { Err(io::Error::other("an earlier write failed")) } else { Ok(()) }
    }

    fn note(&mut self, result: io::Result<()>) -> io::Result<()> {
        self.broken |= result.is_err();
        result
    }
}
