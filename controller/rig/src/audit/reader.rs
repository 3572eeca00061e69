//! Reading the log, and checking its chain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::line::{MOST_LINE, NONE_BEFORE, hash};
use super::log::failed;
use super::{AuditError, AuditLine, AuditLog};

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AuditFinding {
    /// It is no line of this format.
    #[error("it is no line of the audit log")]
    NoLine,
    /// It is not finished. A later command takes it off.
    #[error("it is not finished: its writer was killed, or is writing")]
    Unfinished,
    /// The line before is not the one that it follows.
    #[error("the line before it was changed, taken out or put in")]
    Chain,
    /// Its number does not follow that of the line before.
    #[error("its number does not follow that of the line before")]
    Number,
}

/// A line as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditItem {
    /// Its file.
    pub file: PathBuf,
    /// Its line in that file, from 1.
    pub line: usize,
    /// What it says; nothing if it is no line of the log.
    pub content: Option<AuditLine>,
    /// What is wrong with it.
    pub finding: Option<AuditFinding>,
    /// Its hash.
    pub hash: String,
}

/// What a check of the chain has shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditChain {
    /// How many lines there are.
    pub lines: u64,
    /// Number of the first line; higher than 1 where sealed files were removed.
    pub first: Option<u64>,
    /// Number and hash of the last line.
    pub last: Option<(u64, String)>,
    /// The first bad line: file, line in it, and what is wrong.
    pub bad: Option<(PathBuf, usize, AuditFinding)>,
    /// Whether the line of the hash that was looked for is there.
    pub contains: bool,
}

/// Reads the lines of a log in their order, over all its files.
pub struct AuditReader {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<(PathBuf, BufReader<File>, usize)>,
    last: Option<(u64, String)>,
}

impl AuditLog {
    /// Reads the log from its beginning. Takes no lock: a line that is being written is unfinished.
    ///
    /// # Errors
    /// Its folder cannot be read.
    pub fn read(&self) -> Result<AuditReader, AuditError> {
        // The current file may be sealed between the two looks: then it is missed rather than met twice.
        let current = self.current();
        let mut files: Vec<PathBuf> = self.sealed()?.into_iter().map(|(_, path)| path).collect();
        files.push(current);
        Ok(AuditReader { files: files.into_iter(), open: None, last: None })
    }

    /// Checks the chain; `contains` is the hash of a line that was noted elsewhere.
    ///
    /// # Errors
    /// A file cannot be read. A bad line is no error.
    pub fn verify(&self, contains: Option<&str>) -> Result<AuditChain, AuditError> {
        let mut chain =
            AuditChain { lines: 0, first: None, last: None, bad: None, contains: false };
        for item in self.read()? {
            let AuditItem { file, line, content, finding, hash } = item?;
            if let (Some(finding), None) = (finding, &chain.bad) {
                chain.bad = Some((file, line, finding));
            }
            chain.lines += 1;
            chain.contains |= contains.is_some_and(|wanted| wanted.eq_ignore_ascii_case(&hash));
            if let Some(content) = content {
                chain.first = chain.first.or(Some(content.number));
                chain.last = Some((content.number, hash));
            }
        }
        Ok(chain)
    }
}

impl AuditReader {
    /// Reads the next line of a file, with its end; nothing at the end of the file. Of a longer one than
    /// there can be, the beginning.
    fn next_bytes(&mut self) -> Result<Option<(PathBuf, usize, Vec<u8>)>, AuditError> {
        loop {
            if let Some((path, reader, number)) = &mut self.open {
                let mut bytes = Vec::new();
                let most = u64::try_from(MOST_LINE + 1).unwrap_or(u64::MAX);
                let read = reader.by_ref().take(most).read_until(b'\n', &mut bytes);
                let read = read.and_then(|read| skip_rest(reader, &bytes).map(|()| read));
                if read.map_err(|source| failed("read", path, source))? > 0 {
                    *number += 1;
                    return Ok(Some((path.clone(), *number, bytes)));
                }
            }
            let Some(path) = self.files.next() else { return Ok(None) };
            self.open = match File::open(&path) {
                Ok(file) => Some((path, BufReader::new(file), 0)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(source) => return Err(failed("read", &path, source)),
            };
        }
    }

    fn item(&mut self, file: PathBuf, line: usize, bytes: &[u8]) -> AuditItem {
        let (text, ended) = match bytes.strip_suffix(b"\n") {
            Some(text) => (text, true),
            None => (bytes, false),
        };
        let content = AuditLine::read(text).filter(|_| ended);
        let hash = hash(text);
        let finding = match (&content, &self.last) {
            (None, _) if ended || text.len() > MOST_LINE => Some(AuditFinding::NoLine),
            (None, _) => Some(AuditFinding::Unfinished),
            (Some(content), None) => {
                // Older files may have been removed; the very first line follows none.
                let is_first = content.number == 1;
                (is_first && content.before != NONE_BEFORE).then_some(AuditFinding::Chain)
            }
            (Some(content), Some((_, before))) if content.before != *before => {
                Some(AuditFinding::Chain)
            }
            (Some(content), Some((number, _))) => {
                (content.number != number.saturating_add(1)).then_some(AuditFinding::Number)
            }
        };
        let number = content.as_ref().map(|content| content.number);
        let number = number.or(self.last.as_ref().map(|(number, _)| number.saturating_add(1)));
        self.last = Some((number.unwrap_or(0), hash.clone()));
        AuditItem { file, line, content, finding, hash }
    }
}

/// Skips what is left of a line that is longer than one can be.
fn skip_rest(reader: &mut impl BufRead, read: &[u8]) -> io::Result<()> {
    if read.len() <= MOST_LINE || read.ends_with(b"\n") {
        return Ok(());
    }
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let skipped = end.map_or(buffer.len(), |end| end + 1);
        let done = end.is_some() || skipped == 0;
        reader.consume(skipped);
        if done {
            return Ok(());
        }
    }
}

impl Iterator for AuditReader {
    type Item = Result<AuditItem, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_bytes() {
            Ok(None) => None,
            Ok(Some((file, line, bytes))) => Some(Ok(self.item(file, line, &bytes))),
            Err(error) => {
                // One error ends the reading, or it would be met for ever.
                (self.open, self.files) = (None, Vec::new().into_iter());
                Some(Err(error))
            }
        }
    }
}
