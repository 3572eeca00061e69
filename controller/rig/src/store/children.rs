//! The ledger of a run's child processes, so that the next start can end what a killed
//! jig left behind.
//!
//! An entry can only be written after the spawn, when the pid is known. The moment in
//! between is covered by the parent-death signal of whoever spawns, not by this file.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::jsonl::{Format, Line, LineLog, Lines};
use super::{StoreError, process};

const FORMAT: Format = Format { name: "jig-children", version: 1 };

/// One child process of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Its process id; also that of its group if it leads one.
    pub pid: u32,
    /// When it began, in clock ticks since the machine's boot, as in `/proc/<pid>/stat`.
    pub start_ticks: u64,
    /// The boot those ticks count from; pids and ticks come again after a restart.
    pub boot_id: Option<String>,
    /// What it is, for people.
    pub what: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Add(Child),
    Remove { pid: u32, start_ticks: u64 },
}

/// Records the processes a run starts and ends.
pub struct ChildLedger {
    log: Mutex<LineLog>,
    boot_id: Option<String>,
}

impl ChildLedger {
    /// Begins a ledger.
    ///
    /// # Errors
    /// Says why the file cannot be written.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let log = LineLog::create(path, FORMAT)?;
        Ok(Self { log: Mutex::new(log), boot_id: process::boot_id() })
    }

    /// Records a process that was just spawned; [`super::start_ticks`] tells its ticks.
    ///
    /// # Errors
    /// Says why it cannot be written; the caller should then end the process.
    pub fn add(&self, pid: u32, start_ticks: u64, what: &str) -> Result<(), StoreError> {
        let boot_id = self.boot_id.clone();
        self.append(&Entry::Add(Child { pid, start_ticks, boot_id, what: what.to_owned() }))
    }

    /// Records that a process was reaped.
    ///
    /// # Errors
    /// Says why it cannot be written; harmless, because its start time is checked later.
    pub fn remove(&self, pid: u32, start_ticks: u64) -> Result<(), StoreError> {
        self.append(&Entry::Remove { pid, start_ticks })
    }

    fn append(&self, entry: &Entry) -> Result<(), StoreError> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).append(entry)
    }

    pub(super) fn moved_to(&self, path: &Path) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).moved_to(path.to_owned());
    }
}

/// Returns the children that were added and not removed. Lines that cannot be read are
/// skipped: what they named cannot be known, and nothing is killed on a guess.
pub(super) fn recorded(path: &Path) -> Result<Vec<Child>, StoreError> {
    let mut children: Vec<Child> = Vec::new();
    if !path.exists() {
        return Ok(children);
    }
    let mut lines = Lines::open(path)?;
    let mut headed = false;
    while let Some((_, _, line)) = lines.next_line()? {
        let Line::Whole(line) = line else { continue };
        if !std::mem::replace(&mut headed, true) {
            match lines.check_header(&line, FORMAT) {
                Ok(()) => {}
                // Without its header this may be anybody's file.
                Err(StoreError::Damaged { .. }) => return Ok(children),
                Err(newer) => return Err(newer),
            }
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(Entry::Add(child)) => children.push(child),
            Ok(Entry::Remove { pid, start_ticks }) => {
                children.retain(|c| (c.pid, c.start_ticks) != (pid, start_ticks));
            }
            Err(_) => {}
        }
    }
    Ok(children)
}
