//! Reads a console's log after the fact, whatever state a crash left it in.
//!
//! **Refused here:** repairing. A reader opens files for reading only.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::log::{HEADER, IndexRecord, LogError, LogPaths, RECORD, RecordKind, is_header};

/// Says how much of the index could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexHealth {
    /// All of it.
    Whole,
    /// Its end is torn or damaged; records before that are good.
    Torn,
    /// There is none: all raw bytes are readable, without times.
    Missing,
}

/// A log opened for reading.
///
/// Never shows bytes beyond the committed length, save where there is no index at all.
#[derive(Debug)]
pub struct LogReader {
    raw: File,
    index: Option<File>,
    raw_path: PathBuf,
    records: u64,
    committed: u64,
    health: IndexHealth,
}

/// How many records are read at once: 64 KiB.
const BATCH: u64 = 2048;

impl LogReader {
    /// Opens a log and checks its index once from start to end.
    ///
    /// # Errors
    /// Refuses a log without raw bytes, and an index of another version.
    pub fn open(paths: &LogPaths) -> Result<Self, LogError> {
        let read_error = |path: &PathBuf| {
            let path = path.clone();
            move |source| LogError::Read { path, source }
        };
        let raw = File::open(&paths.raw).map_err(read_error(&paths.raw))?;
        let index = match File::open(&paths.index) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(LogError::Read { path: paths.index.clone(), source }),
        };
        // The index's length first: of a log that grows, its bytes are there by now.
        let index_len = match &index {
            Some(index) => index.metadata().map_err(read_error(&paths.index))?.len(),
            None => 0,
        };
        let raw_len = raw.metadata().map_err(read_error(&paths.raw))?.len();
        let mut reader = Self {
            raw,
            index: None,
            raw_path: paths.raw.clone(),
            records: 0,
            committed: raw_len,
            health: IndexHealth::Missing,
        };
        let Some(index) = index else { return Ok(reader) };
        if index_len < HEADER as u64 {
            return Ok(reader);
        }
        let mut head = [0; HEADER];
        index.read_exact_at(&mut head, 0).map_err(read_error(&paths.index))?;
        if !is_header(&head) {
            return Err(LogError::Version { path: paths.index.clone() });
        }
        reader.index = Some(index);
        reader.records = (index_len - HEADER as u64) / RECORD as u64;
        reader.check(index_len, raw_len).map_err(read_error(&paths.index))?;
        Ok(reader)
    }

    /// Finds the last record that fits what came before it.
    fn check(&mut self, index_len: u64, raw_len: u64) -> io::Result<()> {
        let whole = (index_len - HEADER as u64).is_multiple_of(RECORD as u64);
        let (mut end, mut good) = (0u64, 0u64);
        let all = self.records;
        'batches: while good < all {
            let batch = self.load(good, all)?;
            if batch.is_empty() {
                break;
            }
            for record in batch {
                let Some(record) = record.filter(|r| r.offset == end) else { break 'batches };
                if let RecordKind::Bytes(len) = record.kind {
                    match end.checked_add(len).filter(|&next| next <= raw_len) {
                        Some(next) => end = next,
                        None => break 'batches,
                    }
                }
                good += 1;
            }
        }
        self.health = if whole && good == all { IndexHealth::Whole } else { IndexHealth::Torn };
        self.records = good;
        self.committed = end;
        Ok(())
    }

    fn load(&self, first: u64, end: u64) -> io::Result<Vec<Option<IndexRecord>>> {
        let Some(index) = &self.index else { return Ok(Vec::new()) };
        let count = end.saturating_sub(first).min(BATCH) as usize;
        let mut bytes = vec![0; count * RECORD];
        index.read_exact_at(&mut bytes, HEADER as u64 + first * RECORD as u64)?;
        let mut record = [0; RECORD];
        Ok(bytes
            .chunks_exact(RECORD)
            .map(|chunk| {
                record.copy_from_slice(chunk);
                IndexRecord::decode(&record)
            })
            .collect())
    }

    /// Returns how many bytes are committed.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Says how much of the index could be used.
    pub fn health(&self) -> IndexHealth {
        self.health
    }

    /// Iterates over the records, oldest first.
    ///
    /// Ends early where the index becomes unreadable under way.
    pub fn records(&self) -> impl Iterator<Item = IndexRecord> + '_ {
        let batches = (0..self.records).step_by(BATCH as usize);
        batches
            .map_while(|first| self.load(first, self.records).ok())
            .flatten()
            .map_while(|record| record)
    }

    /// Reads committed bytes from an offset on; returns how many, 0 at the end.
    ///
    /// # Errors
    /// Says what the system said.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, LogError> {
        let room = self.committed.saturating_sub(offset).min(buf.len() as u64) as usize;
        self.raw
            .read_at(&mut buf[..room], offset)
            .map_err(|source| LogError::Read { path: self.raw_path.clone(), source })
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
