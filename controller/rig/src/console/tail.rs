//! Follows a log by its files alone, in whatever process it grows.
//!
//! A [`Follower`](super::Follower) is told how long its log is; a tail has only the index to
//! go by, which is written after the bytes. It is asked, and never waits.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::clock::Stamp;
use super::log::{HEADER, IndexRecord, LogError, LogPaths, RECORD, RecordKind, is_header};

/// How many records are read at once: 16 KiB.
const BATCH: usize = 512;

/// Most bytes of one item: an index may claim anything.
const PIECE: u64 = 64 << 10;

/// What comes next in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailItem {
    /// Bytes arrived.
    Bytes {
        /// When.
        stamp: Stamp,
        /// Offset of the first.
        offset: u64,
        /// They; never none, 64 KiB at most.
        bytes: Vec<u8>,
    },
    /// Something else happened.
    Mark(IndexRecord),
}

impl TailItem {
    /// Returns when it happened.
    pub fn stamp(&self) -> Stamp {
        match self {
            Self::Bytes { stamp, .. } => *stamp,
            Self::Mark(record) => record.stamp,
        }
    }
}

/// Follows a log, however much of it there is by now.
#[derive(Debug)]
pub struct LogTail {
    paths: LogPaths,
    raw: File,
    index: File,
    /// How many records were read of the index.
    read: u64,
    ahead: VecDeque<IndexRecord>,
    /// Offset of the next byte.
    at: u64,
    /// Where the record ends whose bytes are being read, and its time.
    record_end: Option<(u64, Stamp)>,
    /// What follows fits nothing before it.
    torn: bool,
}

impl LogTail {
    /// Opens a log; nothing where there is none yet.
    ///
    /// # Errors
    /// Refuses an index of another version, and files that cannot be read.
    pub fn open(paths: &LogPaths) -> Result<Option<Self>, LogError> {
        let open = |path: &std::path::PathBuf| match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LogError::Read { path: path.clone(), source }),
        };
        let (Some(raw), Some(index)) = (open(&paths.raw)?, open(&paths.index)?) else {
            return Ok(None);
        };
        let mut head = [0; HEADER];
        match index.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(source) => return Err(LogError::Read { path: paths.index.clone(), source }),
            Ok(()) if !is_header(&head) => {
                return Err(LogError::Version { path: paths.index.clone() });
            }
            Ok(()) => {}
        }
        let (ahead, paths) = (VecDeque::new(), paths.clone());
        Ok(Some(Self { paths, raw, index, read: 0, ahead, at: 0, record_end: None, torn: false }))
    }

    /// Passes over what happened before a moment on the wall clock, in nanoseconds.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn skip_before(&mut self, wall_ns: i64) -> Result<(), LogError> {
        while let Some(record) = self.peek()? {
            if record.stamp.wall_ns >= wall_ns {
                return Ok(());
            }
            self.ahead.pop_front();
            if let RecordKind::Bytes(len) = record.kind {
                self.at = record.offset.saturating_add(len);
            }
        }
        Ok(())
    }

    /// Returns what comes next; nothing where that is not there yet.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read_on(&mut self) -> Result<Option<TailItem>, LogError> {
        if let Some((end, stamp)) = self.record_end {
            return self.piece(end, stamp);
        }
        let Some(record) = self.peek()? else { return Ok(None) };
        self.ahead.pop_front();
        match record.kind {
            RecordKind::Bytes(len) if len > 0 => {
                self.piece(record.offset.saturating_add(len), record.stamp)
            }
            _ => Ok(Some(TailItem::Mark(record))),
        }
    }

    /// Returns the next record without taking it.
    fn peek(&mut self) -> Result<Option<IndexRecord>, LogError> {
        if self.ahead.is_empty() && !self.torn {
            self.load()
                .map_err(|source| LogError::Read { path: self.paths.index.clone(), source })?;
        }
        let next = self.ahead.front().copied();
        if next.is_some_and(|record| record.offset != self.at) {
            self.torn = true;
            self.ahead.clear();
            return Ok(None);
        }
        Ok(next)
    }

    fn load(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; BATCH * RECORD];
        let from = HEADER as u64 + self.read * RECORD as u64;
        let mut filled = 0;
        while filled < bytes.len() {
            match self.index.read_at(&mut bytes[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut record = [0; RECORD];
        // A record that is being written is read the next time.
        for chunk in bytes[..filled].chunks_exact(RECORD) {
            record.copy_from_slice(chunk);
            let Some(record) = IndexRecord::decode(&record) else {
                self.torn = true;
                return Ok(());
            };
            self.ahead.push_back(record);
            self.read += 1;
        }
        Ok(())
    }

    /// Reads a piece of a record's bytes.
    fn piece(&mut self, end: u64, stamp: Stamp) -> Result<Option<TailItem>, LogError> {
        self.record_end = Some((end, stamp));
        let room = (end - self.at).min(PIECE);
        let mut bytes = vec![0; usize::try_from(room).unwrap_or(0)];
        let count = match self.raw.read_at(&mut bytes, self.at) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(source) => return Err(LogError::Read { path: self.paths.raw.clone(), source }),
        };
        if count == 0 {
            // A crash of the machine has taken the bytes and left the index.
            return Ok(None);
        }
        bytes.truncate(count);
        let offset = self.at;
        self.at += count as u64;
        if self.at == end {
            self.record_end = None;
        }
        Ok(Some(TailItem::Bytes { stamp, offset, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::log::{GapReason, LogWriter};
    use super::*;

    fn stamp(second: i64) -> Stamp {
        Stamp { mono_ns: 0, wall_ns: second * 1_000_000_000 }
    }

    fn all(tail: &mut LogTail) -> Vec<(i64, Vec<u8>)> {
        let mut items = Vec::new();
        while let Some(item) = tail.read_on().unwrap() {
            let second = item.stamp().wall_ns / 1_000_000_000;
            items.push(match item {
                TailItem::Bytes { bytes, .. } => (second, bytes),
                TailItem::Mark(record) => (second, format!("{:?}", record.kind).into_bytes()),
            });
        }
        items
    }

    #[test]
    fn what_is_appended_is_met_once_and_in_order_however_it_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let paths = LogPaths::new(folder.path(), &"uart0".parse().unwrap());
        assert!(LogTail::open(&paths).unwrap().is_none());
        let mut log = LogWriter::create(&paths).unwrap();
        let mut tail = LogTail::open(&paths).unwrap().unwrap();
        assert!(tail.read_on().unwrap().is_none());
        log.append(stamp(1), b"one").unwrap();
        assert_eq!(all(&mut tail), [(1, b"one".to_vec())]);
        let gap = RecordKind::Gap { lost: None, reason: GapReason::Transport };
        log.record(stamp(2), gap).unwrap();
        let big = vec![7; 100_000];
        log.append(stamp(3), &big).unwrap();
        let seen = all(&mut tail);
        assert_eq!((seen[0].0, seen.len()), (2, 3));
        assert_eq!([&seen[1].1[..], &seen[2].1].concat(), big);
        // A reader that starts later and wants only the end.
        let mut late = LogTail::open(&paths).unwrap().unwrap();
        late.skip_before(stamp(3).wall_ns).unwrap();
        log.append(stamp(4), b"four").unwrap();
        assert_eq!(all(&mut late).last(), Some(&(4, b"four".to_vec())));
        let mut nothing = LogTail::open(&paths).unwrap().unwrap();
        nothing.skip_before(stamp(9).wall_ns).unwrap();
        assert_eq!(all(&mut nothing), []);
        // Half a record is none, until it is whole.
        let record =
            IndexRecord { offset: 100_007, stamp: stamp(5), kind: RecordKind::Boot }.encode();
        let mut index = File::options().append(true).open(&paths.index).unwrap();
        index.write_all(&record[..10]).unwrap();
        assert_eq!(all(&mut nothing), []);
        index.write_all(&record[10..]).unwrap();
        assert_eq!(all(&mut nothing), [(5, b"Boot".to_vec())]);
        // What fits nothing before it ends the log, and so do bytes that are not there.
        let far = IndexRecord { offset: 7, stamp: stamp(6), kind: RecordKind::Boot };
        let lie =
            IndexRecord { offset: 100_007, stamp: stamp(6), kind: RecordKind::Bytes(1 << 47) };
        index.write_all(&[lie.encode(), far.encode()].concat()).unwrap();
        assert_eq!(all(&mut nothing), []);
        assert_eq!(all(&mut tail).len(), 2);
    }
}
