//! Line logs: a header that names the format, then one JSON value per line.
//!
//! One `write` per line, so a killed process leaves whole lines. A line that does not
//! fit on the disk is taken back, so the next one does not grow onto its remains.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::StoreError;

/// Longest line that is read back. The longest written one is a verdict with all its
/// test cases; 16 MiB hold far over 100 000 of them.
const MAX_LINE: u64 = 16 << 20;

/// Names a format and the newest version this program knows.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonlFormat {
    pub(super) name: &'static str,
    pub(super) version: u32,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
}

/// The writing end.
#[derive(Debug)]
pub(super) struct LineLog {
    file: File,
    path: PathBuf,
    length: u64,
}

impl LineLog {
    /// Begins a new log.
    pub(super) fn create(path: &Path, format: JsonlFormat) -> Result<Self, StoreError> {
        // Append mode, so that even a second writer could only add lines.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|e| StoreError::writing(path, e))?;
        let length = file.metadata().map_err(|e| StoreError::writing(path, e))?.len();
        if length > 0 {
            return Err(StoreError::damaged(path, "it exists before its run has begun"));
        }
        let mut log = Self { file, path: path.to_owned(), length };
        log.append(&Header { format: format.name.to_owned(), version: format.version })?;
        Ok(log)
    }

    /// Adds a line.
    pub(super) fn append<T: Serialize>(&mut self, value: &T) -> Result<(), StoreError> {
        let mut line =
            serde_json::to_vec(value).map_err(|e| StoreError::encoding(&self.path, e))?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // Cutting needs no space, so this works on a full disk; if it does not, the
            // reader reports the damaged line.
            let _ = self.file.set_len(self.length);
            return Err(StoreError::writing(&self.path, error));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Follows the folder the log lies in, after that was renamed.
    pub(super) fn moved_to(&mut self, path: PathBuf) {
        self.path = path;
    }
}

/// One line as it was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JsonLine {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// The last line, which has no end.
    Torn,
    /// A line over the limit; skipped.
    TooLong,
}

/// The reading end: lines with their offsets, in bounded memory.
pub(super) struct LineReader {
    reader: BufReader<File>,
    path: PathBuf,
    at: u64,
}

impl LineReader {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(|e| StoreError::reading(path, e))?;
        Ok(Self { reader: BufReader::new(file), path: path.to_owned(), at: 0 })
    }

    /// Returns the next line's offset, its length with its end, and what it is.
    pub(super) fn next_line(&mut self) -> Result<Option<(u64, u64, JsonLine)>, StoreError> {
        use std::io::Read as _;
        let fail = |path: &Path, e: io::Error| StoreError::reading(path, e);
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(|e| fail(&self.path, e))? as u64;
        if read == 0 {
            return Ok(None);
        }
        let at = self.at;
        if line.last() == Some(&b'\n') {
            line.pop();
            self.at += read;
            return Ok(Some((at, read, JsonLine::Whole(line))));
        }
        let (mut length, mut kind) = (read, JsonLine::Torn);
        if read == MAX_LINE {
            drop(line);
            let (rest, ended) = self.skip_line().map_err(|e| fail(&self.path, e))?;
            length += rest;
            if ended {
                kind = JsonLine::TooLong;
            }
        }
        self.at += length;
        Ok(Some((at, length, kind)))
    }

    fn skip_line(&mut self) -> io::Result<(u64, bool)> {
        let mut skipped = 0;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok((skipped, false));
            }
            let end = buffer.iter().position(|&b| b == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.reader.consume(used);
            skipped += used as u64;
            if end.is_some() {
                return Ok((skipped, true));
            }
        }
    }

    /// Checks a line that should be the header.
    pub(super) fn check_header(&self, line: &[u8], format: JsonlFormat) -> Result<(), StoreError> {
        let header: Header = serde_json::from_slice(line)
            .map_err(|e| StoreError::damaged(&self.path, format!("bad first line: {e}")))?;
        if header.format != format.name {
            let reason = format!("its first line does not say that it is {}", format.name);
            return Err(StoreError::damaged(&self.path, reason));
        }
        if header.version > format.version {
            return Err(StoreError::Newer {
                path: self.path.clone(),
                found: header.version,
                known: format.version,
            });
        }
        Ok(())
    }
}

/// Cuts a torn last line off; returns how many bytes that were. A missing file has none.
pub(super) fn cut_torn_line(path: &Path) -> Result<u64, StoreError> {
    if !path.exists() {
        return Ok(0);
    }
    let mut lines = LineReader::open(path)?;
    while let Some((at, length, line)) = lines.next_line()? {
        if line == JsonLine::Torn {
            OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|file| file.set_len(at))
                .map_err(|e| StoreError::writing(path, e))?;
            return Ok(length);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: JsonlFormat = JsonlFormat { name: "jig-test", version: 1 };

    #[test]
    fn endless_lines_are_skipped_in_bounded_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = LineLog::create(&path, FORMAT).unwrap();
        let head = log.length;
        let long = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 5];
        log.file.write_all(&long).unwrap();
        log.file.write_all(b"\n").unwrap();
        log.append(&"after").unwrap();
        let mut lines = LineReader::open(&path).unwrap();
        assert!(matches!(lines.next_line().unwrap(), Some((0, _, JsonLine::Whole(_)))));
        let skipped = lines.next_line().unwrap().unwrap();
        assert_eq!(skipped, (head, MAX_LINE + 6, JsonLine::TooLong));
        let (at, _, line) = lines.next_line().unwrap().unwrap();
        assert_eq!((at, line), (head + MAX_LINE + 6, JsonLine::Whole(b"\"after\"".to_vec())));
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn other_and_newer_logs_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(LineLog::create(&path, FORMAT).unwrap());
        let lines = LineReader::open(&path).unwrap();
        let header = |text: &str| lines.check_header(text.as_bytes(), FORMAT);
        assert!(header(r#"{"format":"jig-test","version":1}"#).is_ok());
        let newer = header(r#"{"format":"jig-test","version":2}"#);
        assert!(matches!(newer, Err(StoreError::Newer { found: 2, known: 1, .. })));
        let other = header(r#"{"format":"jig-events","version":1}"#);
        assert!(matches!(other, Err(StoreError::Damaged { .. })));
        assert!(LineLog::create(&path, FORMAT).is_err(), "a log is begun once");
    }
}
