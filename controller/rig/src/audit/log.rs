//! Writing the log.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::line::{MOST_LINE, NONE_BEFORE, VERSION, hash};
use super::{AuditEntry, AuditError, AuditLine};

/// Name of the file that is written.
const CURRENT: &str = "audit.jsonl";

/// A file is sealed at this size, in bytes: some thirty thousand lines, which are read in a second.
const FULL: u64 = 16 << 20;

/// How long the writer before is waited for. It holds the lock for the time of one flush.
const WAIT: Duration = Duration::from_secs(10);

/// Pause between two looks at the lock.
const PAUSE: Duration = Duration::from_millis(2);

/// The audit log of a rig.
#[derive(Debug, Clone)]
pub struct AuditLog {
    folder: PathBuf,
    full: u64,
}

/// The line that a new one follows.
struct LastLine {
    number: u64,
    hash: String,
}

impl AuditLog {
    /// Names the log in the folder of what outlives a command; it is made with its first line.
    pub fn in_state(state: &Path) -> Self {
        Self { folder: state.join("audit"), full: FULL }
    }

    /// Sets the size at which a file is sealed.
    #[cfg(test)]
    pub(super) fn sealed_at(self, full: u64) -> Self {
        Self { full, ..self }
    }

    /// Returns the file that is written.
    pub fn current(&self) -> PathBuf {
        self.folder.join(CURRENT)
    }

    /// Appends a line; returns its number. It is on the disk when this returns. Waits for other writers.
    ///
    /// # Errors
    /// The line is not in the log.
    pub fn append(&self, entry: AuditEntry) -> Result<u64, AuditError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|source| self.failed("make", source))?;
        let _lock = self.lock()?;
        let path = self.current();
        let mut file = open(&path).map_err(|source| failed("open", &path, source))?;
        let (mut last, taken_off) = self.last_line(&mut file)?;
        let size = file.metadata().map_err(|source| failed("read", &path, source))?.len();
        if size >= self.full
            && let Some(last) = &last
        {
            self.seal(last.number)?;
            file = open(&path).map_err(|source| failed("open", &path, source))?;
        } else if size == 0 {
            last = self.last_of_sealed()?;
        }
        let number = last.as_ref().map_or(0, |last| last.number).saturating_add(1);
        let before = last.map_or_else(|| NONE_BEFORE.to_owned(), |last| last.hash);
        let line = AuditLine { version: VERSION, number, before, taken_off, entry }.write()?;
        let size = file.metadata().map_err(|source| failed("read", &path, source))?.len();
        let written = file.write_all(&line).and_then(|()| file.sync_data());
        if let Err(source) = written {
            // Left in place, the beginning of the line is taken off by the next writer.
            let _ = file.set_len(size);
            return Err(failed("write", &path, source));
        }
        if size == 0 {
            sync(&self.folder).map_err(|source| self.failed("write", source))?;
        }
        Ok(number)
    }

    /// Lists the sealed files in their order, each with the number of its last line.
    pub(super) fn sealed(&self) -> Result<Vec<(u64, PathBuf)>, AuditError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(self.failed("read", source)),
        };
        let mut sealed = Vec::new();
        for entry in entries {
            let name = entry.map_err(|source| self.failed("read", source))?.file_name();
            let number = name.to_str().and_then(|name| {
                name.strip_prefix("audit-")?.strip_suffix(".jsonl")?.parse::<u64>().ok()
            });
            sealed.extend(number.map(|number| (number, self.folder.join(name))));
        }
        sealed.sort();
        Ok(sealed)
    }

    fn lock(&self) -> Result<File, AuditError> {
        let path = self.folder.join("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(|source| failed("lock", &path, source))?;
        let end = Instant::now() + WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(AuditError::Busy(self.folder.clone())),
                Err(TryLockError::Error(source)) => return Err(failed("lock", &path, source)),
            }
        }
    }

    /// Finds the last line of a file, and takes off what a killed writer has left behind it; returns
    /// how many bytes that were.
    fn last_line(&self, file: &mut File) -> Result<(Option<LastLine>, Option<u64>), AuditError> {
        let path = self.current();
        let mut read = || -> io::Result<(u64, Vec<u8>)> {
            let size = file.seek(SeekFrom::End(0))?;
            // What is left of a line is no longer than a line, so the last whole one is in there.
            let most = u64::try_from(2 * MOST_LINE + 2).unwrap_or(u64::MAX);
            file.seek(SeekFrom::Start(size.saturating_sub(most)))?;
            let mut tail = Vec::new();
            file.take(most).read_to_end(&mut tail)?;
            Ok((size, tail))
        };
        let (size, tail) = read().map_err(|source| failed("read", &path, source))?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole == 0 && size > tail.len() as u64 {
            return Err(AuditError::Damaged(path));
        }
        let rest = (tail.len() - whole) as u64;
        if rest > 0 {
            let cut = file.set_len(size.saturating_sub(rest)).and_then(|()| file.sync_data());
            cut.map_err(|source| failed("write", &path, source))?;
        }
        Ok((last_of(&tail[..whole], &path)?, (rest > 0).then_some(rest)))
    }

    /// Finds the last line of the sealed files.
    fn last_of_sealed(&self) -> Result<Option<LastLine>, AuditError> {
        let Some((_, path)) = self.sealed()?.pop() else { return Ok(None) };
        let mut file = File::open(&path).map_err(|source| failed("read", &path, source))?;
        let most = u64::try_from(MOST_LINE + 2).unwrap_or(u64::MAX);
        let mut tail = Vec::new();
        let read = file.metadata().and_then(|about| {
            file.seek(SeekFrom::Start(about.len().saturating_sub(most)))?;
            file.take(most).read_to_end(&mut tail)
        });
        read.map_err(|source| failed("read", &path, source))?;
        match last_of(&tail, &path)? {
            Some(last) => Ok(Some(last)),
            None => Err(AuditError::Damaged(path)),
        }
    }

    fn seal(&self, last: u64) -> Result<(), AuditError> {
        let (path, sealed) = (self.current(), self.folder.join(format!("audit-{last:012}.jsonl")));
        let renamed = fs::set_permissions(&path, fs::Permissions::from_mode(0o400))
            .and_then(|()| fs::rename(&path, &sealed))
            .and_then(|()| sync(&self.folder));
        renamed.map_err(|source| failed("seal", &path, source))
    }

    fn failed(&self, what: &'static str, source: io::Error) -> AuditError {
        failed(what, &self.folder, source)
    }
}

/// Reads the last of some whole lines.
fn last_of(lines: &[u8], path: &Path) -> Result<Option<LastLine>, AuditError> {
    let Some(lines) = lines.strip_suffix(b"\n") else { return Ok(None) };
    let start = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let last = &lines[start..];
    let line = AuditLine::read(last).ok_or_else(|| AuditError::Damaged(path.to_owned()))?;
    Ok(Some(LastLine { number: line.number, hash: hash(last) }))
}

fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}

/// Flushes the names of a folder.
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

pub(super) fn failed(what: &'static str, path: &Path, source: io::Error) -> AuditError {
    AuditError::File { what, path: path.to_owned(), source }
}
