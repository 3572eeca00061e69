//! How long a command waits for other processes that have the database.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// How long other processes may have a database without a change to it. One note takes some
/// milliseconds and a disk's flush. A process that keeps the database for longer has locked it, and
/// health is unknown to a run then.
const WITHOUT_CHANGE: Duration = Duration::from_secs(2);

/// How long is waited at most. SQLite gives the database to any of those who wait, so one of many that
/// write at once, on a disk that is slow to flush, may be passed over for seconds.
const AT_MOST: Duration = Duration::from_secs(20);

/// Sizes and times of the database and its journal: they differ behind each change.
type FileStamps = [Option<(u64, SystemTime)>; 2];

/// The wait of one command.
pub(super) struct BusyTimeout {
    files: [PathBuf; 2],
    began: Instant,
    changed: Instant,
    stamps: Option<FileStamps>,
}

impl BusyTimeout {
    /// Begins to wait for the database at `path`.
    pub(super) fn new(path: &Path) -> Self {
        let mut journal = path.as_os_str().to_owned();
        journal.push("-wal");
        let now = Instant::now();
        let files = [path.to_owned(), journal.into()];
        Self { files, began: now, changed: now, stamps: None }
    }

    /// Tells whether the time to wait is over.
    pub(super) fn is_over(&mut self) -> bool {
        let stamp = |file: &PathBuf| {
            let about = fs::metadata(file).ok()?;
            Some((about.len(), about.modified().ok()?))
        };
        let [database, journal] = &self.files;
        let stamps = [stamp(database), stamp(journal)];
        self.is_over_at(Instant::now(), stamps)
    }

    fn is_over_at(&mut self, now: Instant, stamps: FileStamps) -> bool {
        if self.stamps.replace(stamps).is_some_and(|before| before != stamps) {
            self.changed = now;
        }
        now - self.changed >= WITHOUT_CHANGE || now - self.began >= AT_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_each(half_seconds: u32, stamps: impl Fn(u32) -> FileStamps) -> Option<u32> {
        let mut timeout = BusyTimeout::new(Path::new("x.db"));
        let began = timeout.began;
        let over =
            |n: &u32| timeout.is_over_at(began + Duration::from_millis(500) * *n, stamps(*n));
        (0..half_seconds).find(over)
    }

    fn stamp(size: u64) -> Option<(u64, SystemTime)> {
        Some((size, SystemTime::UNIX_EPOCH))
    }

    #[test]
    fn a_locked_database_is_waited_for_two_seconds() {
        assert_eq!(at_each(100, |_| [stamp(1), stamp(2)]), Some(4));
        assert_eq!(at_each(100, |_| [None, None]), Some(4));
    }

    #[test]
    fn a_database_that_others_change_is_waited_for_longer() {
        assert_eq!(at_each(100, |n| [stamp(1), stamp(u64::from(n.min(9)))]), Some(9 + 4));
        assert_eq!(at_each(100, |n| [stamp(u64::from(n)), None]), Some(40));
    }
}
