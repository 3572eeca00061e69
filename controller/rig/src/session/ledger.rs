//! What a run's parts need of its directory, in the shape they ask for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jig_model::RunEvent;
use jig_model::protocol::ProcessLedger;

use super::run::Observer;
use crate::attempt::EventSink;
use crate::console::{Clock, Stamp};
use crate::store::{ChildLedger, EventLog, StoreError, start_ticks};

/// Accounts for child processes in the run's directory.
pub(super) struct RunLedger {
    children: Arc<ChildLedger>,
    /// Start times, to name the same process when it is gone.
    ticks: Mutex<BTreeMap<i32, u64>>,
}

impl RunLedger {
    pub(super) fn new(children: &Arc<ChildLedger>) -> Self {
        Self { children: Arc::clone(children), ticks: Mutex::default() }
    }
}

impl ProcessLedger for RunLedger {
    fn started(&self, pid: i32, what: &str) {
        let Ok(id) = u32::try_from(pid) else { return };
        let Some(ticks) = start_ticks(id) else { return };
        self.ticks.lock().unwrap_or_else(PoisonError::into_inner).insert(pid, ticks);
        // The parent-death signal still covers a child that could not be recorded.
        if let Err(error) = self.children.add(id, ticks, what) {
            tracing::warn!(%error, pid, "child process not recorded");
        }
    }

    fn ended(&self, pid: i32) {
        let ticks = self.ticks.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        let (Ok(id), Some(ticks)) = (u32::try_from(pid), ticks) else { return };
        // Harmless: a later sweep compares start times.
        let _ = self.children.remove(id, ticks);
    }
}

/// Writes events to the run's log and passes them on.
pub(super) struct RunEvents {
    pub(super) log: Arc<EventLog>,
    pub(super) observer: Arc<dyn Observer>,
    /// The first event that could not be written.
    pub(super) failed: OnceLock<StoreError>,
}

impl EventSink for RunEvents {
    fn emit(&self, event: RunEvent) {
        if let Err(error) = self.log.append(&event) {
            tracing::error!(%error, "event not recorded");
            let _ = self.failed.set(error);
        }
        self.observer.event(&event);
    }
}

/// Stamps console logs with the time line of the run's events.
pub(super) struct RunClock {
    pub(super) clock: Arc<dyn crate::store::Clock>,
    pub(super) began: Duration,
}

impl Clock for RunClock {
    fn stamp(&self) -> Stamp {
        let mono = self.clock.mono().saturating_sub(self.began).as_nanos();
        let wall = self.clock.wall().as_nanosecond();
        Stamp {
            mono_ns: u64::try_from(mono).unwrap_or(u64::MAX),
            wall_ns: i64::try_from(wall).unwrap_or(i64::MAX),
        }
    }
}
