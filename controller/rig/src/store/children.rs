//! The ledger of a run's child processes, so that the next start can end what a killed
//! jig left behind.
//!
//! An entry can only be written after the spawn, when the pid is known. The moment in
//! between is covered by the parent-death signal that the child gets at its spawn, not by this
//! file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jig_model::protocol::ProcessLedger;
use serde::{Deserialize, Serialize};

use super::jsonl::{JsonLine, JsonlFormat, LineLog, LineReader};
use super::{StoreError, process};

const FORMAT: JsonlFormat = JsonlFormat { name: "jig-children", version: 1 };

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
enum ChildEntry {
    Add(Child),
    Remove { pid: u32, start_ticks: u64 },
}

/// Records the processes a run starts and ends.
pub struct ChildLedger {
    children: Mutex<Children>,
    boot_id: Option<String>,
}

struct Children {
    log: LineLog,
    /// Start times by pid. A process that has ended no longer tells its own.
    ticks: BTreeMap<u32, u64>,
}

impl ChildLedger {
    /// Begins a ledger.
    ///
    /// # Errors
    /// Says why the file cannot be written.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let log = LineLog::create(path, FORMAT)?;
        let children = Mutex::new(Children { log, ticks: BTreeMap::new() });
        Ok(Self { children, boot_id: process::boot_id() })
    }

    /// Records a process that was just spawned, with its start time.
    pub(super) fn add(&self, pid: u32, start_ticks: u64, what: &str) -> Result<(), StoreError> {
        let (boot_id, what) = (self.boot_id.clone(), what.to_owned());
        let mut children = self.children();
        children.ticks.insert(pid, start_ticks);
        children.log.append(&ChildEntry::Add(Child { pid, start_ticks, boot_id, what }))
    }

    /// Records that a process was reaped, if it was recorded before.
    pub(super) fn remove(&self, pid: u32) -> Result<(), StoreError> {
        let mut children = self.children();
        let Some(start_ticks) = children.ticks.remove(&pid) else { return Ok(()) };
        children.log.append(&ChildEntry::Remove { pid, start_ticks })
    }

    pub(super) fn moved_to(&self, path: &Path) {
        self.children().log.moved_to(path.to_owned());
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessLedger for ChildLedger {
    fn started(&self, pid: i32, what: &str) {
        let Ok(pid) = u32::try_from(pid) else { return };
        let Some(ticks) = process::start_ticks(pid) else { return };
        // The parent-death signal still covers a child that could not be recorded.
        if let Err(error) = self.add(pid, ticks, what) {
            tracing::warn!(%error, pid, "child process not recorded");
        }
    }

    fn ended(&self, pid: i32) {
        let Ok(pid) = u32::try_from(pid) else { return };
        // Without the entry, a later sweep finds that the start time no longer fits.
        let _ = self.remove(pid);
    }
}

/// Returns the children that were added and not removed. Lines that cannot be read are
/// skipped: what they named cannot be known, and nothing is killed on a guess.
pub(super) fn recorded(path: &Path) -> Result<Vec<Child>, StoreError> {
    let mut children: Vec<Child> = Vec::new();
    if !path.exists() {
        return Ok(children);
    }
    let mut lines = LineReader::open(path)?;
    let mut headed = false;
    while let Some((_, _, line)) = lines.next_line()? {
        let JsonLine::Whole(line) = line else { continue };
        if !std::mem::replace(&mut headed, true) {
            match lines.check_header(&line, FORMAT) {
                Ok(()) => {}
                // Without its header this may be another program's file.
                Err(StoreError::Damaged { .. }) => return Ok(children),
                Err(newer) => return Err(newer),
            }
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(ChildEntry::Add(child)) => children.push(child),
            Ok(ChildEntry::Remove { pid, start_ticks }) => {
                children.retain(|c| (c.pid, c.start_ticks) != (pid, start_ticks));
            }
            Err(_) => {}
        }
    }
    Ok(children)
}
