//! A copy of a run of another host.
//!
//! While it grows, its lock is held, as that of a run of this host. Left unfinished, it is swept like
//! one: it is marked abandoned. A file says that it is incomplete until everything has been copied, so
//! that [`RunStore::resume_copy`] completes copies and never touches a run of this host. It has no ledger
//! of children, because those are processes of another host.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use jig_model::RunId;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::live::{FOLDERS, NEW_PREFIX};
use super::{RunDir, RunStore, StoreError};

/// The file that an incomplete copy has.
const INCOMPLETE: &str = "incomplete-copy";

/// A copy that grows.
#[derive(Debug)]
pub struct CopiedRun {
    dir: RunDir,
    _lock: Flock<File>,
}

impl RunStore {
    /// Begins a copy of a run, whose record is `record` at this moment.
    ///
    /// # Errors
    /// There is a run of this name, or the folder cannot be written.
    pub fn begin_copy(&self, id: &RunId, record: &[u8]) -> Result<CopiedRun, StoreError> {
        let root = self.root();
        let writing = |error: io::Error| StoreError::writing(root, error);
        DirBuilder::new().recursive(true).mode(0o750).create(root).map_err(writing)?;
        let dir = RunDir::new(root, id.clone());
        let hidden = RunDir::at(root.join(format!("{NEW_PREFIX}{id}")), id.clone());
        DirBuilder::new().mode(0o750).create(hidden.path()).map_err(writing)?;
        let made = || {
            let file = File::create_new(hidden.lock_path()).map_err(writing)?;
            let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock)
                .map_err(|(_, errno): (File, Errno)| writing(errno.into()))?;
            fs::write(hidden.record_path(), record).map_err(writing)?;
            fs::write(hidden.path().join(INCOMPLETE), b"").map_err(writing)?;
            for folder in FOLDERS {
                fs::create_dir(hidden.path().join(folder)).map_err(writing)?;
            }
            // A directory replaces an empty one only, and a run is never empty.
            fs::rename(hidden.path(), dir.path()).map_err(writing)?;
            Ok(lock)
        };
        match made() {
            Ok(lock) => Ok(CopiedRun { dir, _lock: lock }),
            Err(error) => {
                let _ = fs::remove_dir_all(hidden.path());
                Err(error)
            }
        }
    }

    /// Goes on with a copy that was left incomplete, swept or not. None where there is no such copy, or
    /// where another process copies at this moment.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn resume_copy(&self, id: &RunId) -> Result<Option<CopiedRun>, StoreError> {
        let dir = RunDir::new(self.root(), id.clone());
        let incomplete = dir.path().join(INCOMPLETE);
        if !incomplete.exists() {
            return Ok(None);
        }
        let path = dir.lock_path();
        let writing = |error: io::Error| StoreError::writing(&path, error);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lock = match Flock::lock(opened.map_err(writing)?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(writing(errno.into())),
        };
        // Finished, or swept, between the look and the lock.
        let same = lock.metadata().and_then(|held| Ok(held.ino() == fs::metadata(&path)?.ino()));
        match same.unwrap_or(false) && incomplete.exists() {
            true => Ok(Some(CopiedRun { dir, _lock: lock })),
            false => Ok(None),
        }
    }
}

impl CopiedRun {
    /// Returns its paths.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the path of a file of the run, by its path within it; none where that leads elsewhere,
    /// or where a copy keeps no such file. Makes its folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn file(&self, inner: &str) -> Result<Option<PathBuf>, StoreError> {
        let plain = |part| matches!(part, Component::Normal(_));
        let path = self.dir.path().join(inner);
        let incomplete = self.dir.path().join(INCOMPLETE);
        let own = [self.dir.lock_path(), self.dir.children_path(), incomplete];
        if inner.is_empty() || !Path::new(inner).components().all(plain) || own.contains(&path) {
            return Ok(None);
        }
        let folder = path.parent().unwrap_or(self.dir.path());
        let made = DirBuilder::new().recursive(true).mode(0o750).create(folder);
        made.map_err(|error| StoreError::writing(folder, error))?;
        Ok(Some(path))
    }

    /// Says that everything has been copied.
    ///
    /// # Errors
    /// Its marks cannot be removed.
    pub fn finish(self) -> Result<RunDir, StoreError> {
        for path in [self.dir.path().join(INCOMPLETE), self.dir.lock_path()] {
            fs::remove_file(&path).map_err(|error| StoreError::writing(&path, error))?;
        }
        Ok(self.dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_live_until_it_is_finished_and_stays_within_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id): (_, RunId) =
            (RunStore::new(folder.path()), "20261121-221530-7f3a".parse().unwrap());
        let copy = store.begin_copy(&id, b"{}").unwrap();
        assert!(store.begin_copy(&id, b"{}").is_err());
        assert!(store.open(id.as_str()).unwrap().live);
        for bad in
            ["", "/etc/passwd", "../x", "a/../../x", "lock", "children.jsonl", "incomplete-copy"]
        {
            assert_eq!(copy.file(bad).unwrap(), None, "{bad}");
        }
        let log = copy.file("consoles/1/uart0.raw").unwrap().unwrap();
        fs::write(log, "text").unwrap();
        copy.finish().unwrap();
        assert!(!store.open(id.as_str()).unwrap().live);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn only_a_copy_that_was_left_incomplete_is_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id): (_, RunId) =
            (RunStore::new(folder.path()), "20261121-221530-7f3a".parse().unwrap());
        assert!(store.resume_copy(&id).unwrap().is_none());
        let copy = store.begin_copy(&id, b"{}").unwrap();
        // Another process copies.
        assert!(store.resume_copy(&id).unwrap().is_none());
        drop(copy);
        let resumed = store.resume_copy(&id).unwrap().unwrap();
        assert!(store.open(id.as_str()).unwrap().live);
        drop(resumed);
        // A sweep leaves it abandoned, and its lock is gone.
        store.sweep(jiff::Timestamp::now()).unwrap();
        let swept = store.open(id.as_str()).unwrap();
        assert_eq!(swept.record.unwrap().state, crate::store::RunState::Abandoned);
        let resumed = store.resume_copy(&id).unwrap().unwrap();
        let dir = resumed.finish().unwrap();
        assert!(!dir.lock_path().exists());
        // It is complete, or a run of this host: never touched.
        assert!(store.resume_copy(&id).unwrap().is_none());
        assert!(!store.open(id.as_str()).unwrap().live);
    }
}
