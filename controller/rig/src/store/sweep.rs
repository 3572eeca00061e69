//! What a start does about runs whose jig was killed.
//!
//! A run's directory has a lock file until the run has ended, so the sweep looks at
//! nothing else of the thousands that have. Holding the lock is the right to sweep: two
//! jigs that sweep at once share the work. A new lock file is never created here.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jig_model::{Cause, RunId, Verdict};
use nix::fcntl::FlockArg;

use super::disk::{self, Durability};
use super::runs::{Lock, try_lock};
use super::{
    Child, EventItem, EventReader, RunDir, RunRecord, RunState, RunStore, StoreError, SweepRecord,
    children, jsonl, live, process, prune,
};

/// How long a killed process may take to be gone. A process that the kernel cannot end
/// (waiting for a dead disk) must not keep the next start waiting.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How many damaged lines a sweep describes before it only counts them.
const SHOWN: usize = 3;

/// What became of one run in a sweep.
#[derive(Debug)]
pub struct Swept {
    /// The run.
    pub id: RunId,
    /// What was found and done.
    pub outcome: SweptOutcome,
}

/// Names what a sweep did about a run.
#[derive(Debug)]
pub enum SweptOutcome {
    /// Its jig had been killed; it is marked abandoned now.
    Abandoned(SweepRecord),
    /// It could not be swept; the next sweep tries again.
    Left(StoreError),
}

impl RunStore {
    /// Ends what killed jigs left behind: kills their processes, marks their runs
    /// abandoned and cuts off torn lines. Runs that are alive are not touched.
    ///
    /// # Errors
    /// Says why the folder cannot be read; trouble with one run is told in its entry.
    pub fn sweep(&self, now: Timestamp) -> Result<Vec<Swept>, StoreError> {
        let mut swept = Vec::new();
        for (name, path) in self.folders()? {
            if name.starts_with(live::NEW_PREFIX) || name.starts_with(prune::OLD_PREFIX) {
                remove_remains(&path);
            }
        }
        for dir in self.dirs()?.into_iter().rev() {
            let outcome = match sweep_run(&dir, now) {
                Ok(None) => continue,
                Ok(Some(record)) => SweptOutcome::Abandoned(record),
                Err(error) => SweptOutcome::Left(error),
            };
            swept.push(Swept { id: dir.id().clone(), outcome });
        }
        Ok(swept)
    }
}

/// Removes a directory that never became a run, or that a killed prune had put aside.
fn remove_remains(path: &Path) {
    // What is about to become a run is empty until it has its lock. An empty directory can
    // be removed under its builder's hands: it starts over with another id.
    if fs::remove_dir(path).is_ok() {
        return;
    }
    match try_lock(&path.join("lock"), FlockArg::LockExclusiveNonblock) {
        Ok(Lock::Held) | Err(_) => {}
        Ok(Lock::Taken(_) | Lock::Gone) => {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn sweep_run(dir: &RunDir, now: Timestamp) -> Result<Option<SweepRecord>, StoreError> {
    let lock_path = dir.lock_path();
    let _lock = match try_lock(&lock_path, FlockArg::LockExclusiveNonblock)? {
        Lock::Gone | Lock::Held => return Ok(None),
        Lock::Taken(lock) => lock,
    };
    let mut remarks = Vec::new();
    // Read under the lock: another sweep may have been here since.
    let mut record = match dir.record() {
        Ok(record) => record,
        Err(newer @ StoreError::Newer { .. }) => return Err(newer),
        // Gone between the look and the lock: pruned.
        Err(_) if !dir.path().exists() => return Ok(None),
        Err(error) => {
            remarks.push(format!("its record was unreadable: {}", told(&error)));
            keep_aside(&dir.record_path());
            RunRecord::unknown(dir.id().clone())
        }
    };
    if record.state != RunState::Running {
        let _ = fs::remove_file(&lock_path);
        return Ok(None);
    }
    let killed = kill_children(&dir.children_path(), &mut remarks)?;
    for path in [dir.events_path(), dir.children_path()] {
        let bytes = jsonl::cut_torn_line(&path)?;
        if bytes > 0 {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            remarks.push(format!("cut {bytes} bytes of an unfinished line off {name}"));
        }
    }
    note_damage(dir, &mut remarks);
    let _ = fs::remove_file(disk::temporary(&dir.record_path()));
    let swept = SweepRecord { at: now, killed, remarks };
    record.state = RunState::Abandoned;
    record.conclude(Verdict::of(
        Cause::Abandoned,
        "jig was killed while the run was under way; found by a later start",
    ));
    record.swept = Some(swept.clone());
    record.write(&dir.record_path(), Durability::PowerCut)?;
    let _ = fs::remove_file(&lock_path);
    Ok(Some(swept))
}

/// Keeps an unreadable record for people; it is the only trace of what the run was.
fn keep_aside(path: &Path) {
    let _ = fs::rename(path, path.with_extension("json.damaged"));
}

/// Tells an error with its causes.
fn told(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub(super) fn kill_children(
    path: &Path,
    remarks: &mut Vec<String>,
) -> Result<Vec<Child>, StoreError> {
    let boot = process::boot_id();
    let mut killed = Vec::new();
    for child in children::recorded(path)? {
        // Ticks count from the boot. A child of another boot is gone, and where the boot
        // is unknown on either side its ticks prove nothing.
        if child.boot_id.is_none() || child.boot_id != boot {
            continue;
        }
        match process::kill_exactly(child.pid, child.start_ticks) {
            Ok(true) => killed.push(child),
            Ok(false) => {}
            Err(errno) => {
                let what = format!("could not kill process {}: {errno}", child.pid);
                remarks.push(what);
            }
        }
    }
    let deadline = Instant::now() + GONE_WITHIN;
    while let Some(child) = killed.iter().find(|c| process::lives_on(c.pid, c.start_ticks)) {
        if Instant::now() >= deadline {
            remarks.push(format!("process {} was killed but is not gone yet", child.pid));
            break;
        }
        // An orphan belongs to init, so there is nothing to wait on but its absence.
        thread::sleep(Duration::from_millis(1));
    }
    Ok(killed)
}

fn note_damage(dir: &RunDir, remarks: &mut Vec<String>) {
    let Ok(events) = EventReader::open(&dir.events_path()) else {
        remarks.push("its event log is missing".to_owned());
        return;
    };
    let mut damaged = 0_usize;
    for item in events {
        match item {
            Ok(EventItem::Damaged { at, reason }) => {
                damaged += 1;
                if damaged <= SHOWN {
                    remarks.push(format!("events.jsonl is damaged at byte {at}: {reason}"));
                }
            }
            Ok(EventItem::Event(_) | EventItem::Torn { .. }) => {}
            Err(error) => remarks.push(told(&error)),
        }
    }
    if damaged > SHOWN {
        remarks.push(format!("events.jsonl has {damaged} damaged lines"));
    }
}
