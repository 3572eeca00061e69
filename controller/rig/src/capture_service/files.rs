//! Files of a captured console's log: listing, next number, removal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jig_model::rig_file::CaptureLimits;
use jig_model::{ConsoleName, PlaceName};

use crate::console::LogPaths;
use crate::store::{Places, StoreError};

/// Maximum number of files per console. A service that is restarted again and again leaves one
/// nearly empty file each time.
const MOST_FILES: usize = 1000;

/// The folder of a captured console's log: `places/<place>.consoles/<console>/`, in it
/// `00000001.raw` and `.idx`, then `00000002` and so on. A number is never used again.
#[derive(Debug, Clone)]
pub struct LogFolder {
    path: PathBuf,
}

/// One file of a log, with its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Counts from 1.
    pub number: u64,
    /// Where it lies.
    pub paths: LogPaths,
}

impl LogFolder {
    /// Names the folder of a console; it is created with its first file.
    pub fn new(places: &Places, place: &PlaceName, console: &ConsoleName) -> Self {
        Self { path: places.consoles(place).join(console.as_str()) }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file with a number, which need not exist.
    pub fn file(&self, number: u64) -> LogFile {
        let path = |ending: &str| self.path.join(format!("{number:08}.{ending}"));
        LogFile { number, paths: LogPaths { raw: path("raw"), index: path("idx") } }
    }

    /// Lists the files, oldest first; empty if there is no folder. Files with other names are
    /// ignored.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn files(&self) -> Result<Vec<LogFile>, StoreError> {
        let failed = |error| StoreError::reading(&self.path, error);
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".raw")).and_then(number);
            numbers.extend(number);
        }
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| self.file(number)).collect())
    }

    /// Creates the folder if necessary, and returns its next file.
    pub(super) fn next(&self) -> Result<LogFile, StoreError> {
        fs::create_dir_all(&self.path).map_err(|error| StoreError::writing(&self.path, error))?;
        let last = self.files()?.last().map_or(0, |file| file.number);
        Ok(self.file(last.saturating_add(1)))
    }

    /// Removes files that exceed the limits, oldest first, never the newest; returns their numbers.
    /// A file that cannot be removed is tried again the next time.
    pub(super) fn prune(&self, limits: &CaptureLimits, now: SystemTime) -> Vec<u64> {
        let Ok(files) = self.files() else { return Vec::new() };
        let size_of = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
        let sizes: Vec<u64> = files
            .iter()
            .map(|file| size_of(&file.paths.raw) + size_of(&file.paths.index))
            .collect();
        let (mut bytes, mut count): (u64, usize) = (sizes.iter().sum(), files.len());
        let mut removed = Vec::new();
        for (file, size) in files.iter().zip(sizes) {
            let too_much = bytes > limits.keep_size || count > MOST_FILES;
            if count <= 1 || !(too_much || is_older(&file.paths.raw, limits, now)) {
                break;
            }
            // The bytes first: `files` ignores an index without them.
            let gone = fs::remove_file(&file.paths.raw);
            if let Err(error) = &gone {
                tracing::warn!(%error, path = %file.paths.raw.display(), "an old log stays");
                break;
            }
            let _ = fs::remove_file(&file.paths.index);
            bytes -= size;
            count -= 1;
            removed.push(file.number);
        }
        removed
    }
}

/// Parses the number of a file name, in its canonical form only.
fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok().filter(|number| *number > 0)?;
    (format!("{number:08}") == text).then_some(number)
}

fn is_older(path: &Path, limits: &CaptureLimits, now: SystemTime) -> bool {
    let written = fs::metadata(path).and_then(|meta| meta.modified());
    // If the clock was set back, no file is old.
    written.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > limits.keep))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn folder() -> (tempfile::TempDir, LogFolder) {
        let state = tempfile::tempdir().unwrap();
        let names = ("bench".parse().unwrap(), "uart0".parse().unwrap());
        let folder = LogFolder::new(&Places::new(state.path()), &names.0, &names.1);
        (state, folder)
    }

    fn write(file: &LogFile, len: usize) {
        fs::write(&file.paths.raw, vec![b'x'; len]).unwrap();
        fs::write(&file.paths.index, b"").unwrap();
    }

    fn numbers(folder: &LogFolder) -> Vec<u64> {
        folder.files().unwrap().iter().map(|file| file.number).collect()
    }

    #[test]
    fn files_are_numbered_on_and_what_is_not_ours_is_left_alone() {
        let (_state, folder) = folder();
        assert_eq!(numbers(&folder), [0_u64; 0]);
        assert_eq!(folder.next().unwrap().number, 1);
        for name in ["9.raw", "00000000.raw", "x.raw", "-0000001.raw", "00000005.idx"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(folder.next().unwrap().number, 1);
        write(&folder.file(9), 1);
        write(&folder.file(123_456_789), 1);
        assert_eq!(numbers(&folder), [9, 123_456_789]);
        assert_eq!(folder.next().unwrap().number, 123_456_790);
    }

    #[test]
    fn the_oldest_go_until_the_limits_hold_and_the_newest_never() {
        let (_state, folder) = folder();
        folder.next().unwrap();
        for number in 1..=4 {
            write(&folder.file(number), 100);
        }
        let now = SystemTime::now();
        let limits = |keep_size, keep| CaptureLimits { keep_size, keep, ..Default::default() };
        let day = Duration::from_secs(86_400);
        assert_eq!(folder.prune(&limits(400, day), now), [0_u64; 0]);
        assert_eq!(folder.prune(&limits(250, day), now), [1, 2]);
        assert_eq!(numbers(&folder), [3, 4]);
        assert!(!folder.file(1).paths.index.exists());
        // A clock that was set back.
        assert_eq!(folder.prune(&limits(400, day), now - 2 * day), [0_u64; 0]);
        assert_eq!(folder.prune(&limits(400, day), now + 2 * day), [3]);
        assert_eq!(folder.prune(&limits(1, day), now + 2 * day), [0_u64; 0]);
        assert_eq!(numbers(&folder), [4]);
    }
}
