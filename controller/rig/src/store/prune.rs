//! Retention: old runs make room for new ones.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use jig_model::RunId;
use nix::fcntl::FlockArg;

use super::runs::{Lock, try_lock};
use super::{RunDir, RunState, RunStore, StoreError, id};

/// Marks a run that is being removed; a sweep removes what a killed prune left of it.
pub(super) const OLD_PREFIX: &str = ".old-";

/// Says which runs may stay. Without either limit, all do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Runs that began more days ago than this go.
    pub keep_days: Option<u32>,
    /// The oldest runs go until the rest takes no more than this on disk.
    pub keep_bytes: Option<u64>,
}

/// A run that was removed, or should have been.
#[derive(Debug)]
pub struct Pruned {
    /// The run.
    pub id: RunId,
    /// What its files held.
    pub bytes: u64,
    /// Why it is still there, if it is.
    pub error: Option<StoreError>,
}

impl RunStore {
    /// Removes runs that retention does not keep. Only runs with a record this program
    /// can read and that have ended are counted and removed: never a live one, never one
    /// that waits for a sweep, never a newer format, never another program's folder.
    ///
    /// # Errors
    /// Says why the folder cannot be read; trouble with one run is told in its entry.
    pub fn prune(&self, keep: Retention, now: Timestamp) -> Result<Vec<Pruned>, StoreError> {
        if keep == Retention::default() {
            // Looking at every run there is would find nothing to do.
            return Ok(Vec::new());
        }
        let limit = keep.keep_days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
        let oldest = limit.map(|age| now.saturating_sub(age).unwrap_or(Timestamp::MIN));
        let mut pruned = Vec::new();
        let (mut held, mut full) = (0_u64, false);
        // Newest first: once the limit is reached, everything older goes. A small old run
        // that would still fit goes too, so that what is kept is one stretch of time.
        for dir in self.dirs()?.into_iter().filter(is_removable) {
            let bytes = size_of(dir.path());
            let aged = oldest.is_some() && oldest > id::started(dir.id());
            full |= keep.keep_bytes.is_some_and(|most| held.saturating_add(bytes) > most);
            if aged || full {
                let error = remove(self.root(), &dir).err();
                pruned.push(Pruned { id: dir.id().clone(), bytes, error });
            } else {
                held = held.saturating_add(bytes);
            }
        }
        Ok(pruned)
    }
}

fn is_removable(dir: &RunDir) -> bool {
    let ended = dir.record().is_ok_and(|record| record.state != RunState::Running);
    let lock = try_lock(&dir.lock_path(), FlockArg::LockSharedNonblock);
    ended && matches!(lock, Ok(Lock::Gone | Lock::Taken(_)))
}

/// Renames first, so that a listing sees the whole run or nothing of it.
fn remove(root: &Path, dir: &RunDir) -> Result<(), StoreError> {
    let aside = root.join(format!("{OLD_PREFIX}{}", dir.id()));
    fs::rename(dir.path(), &aside)
        .and_then(|()| fs::remove_dir_all(&aside))
        .map_err(|e| StoreError::writing(dir.path(), e))
}

/// Sums the sizes of the files below a folder, links not followed. What cannot be read
/// counts as nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_of(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .fold(0, u64::saturating_add)
}
