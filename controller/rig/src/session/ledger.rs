//! What a run's parts need of its directory, in the shape they ask for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::protocol::ProcessLedger;
use jig_model::{Note, RunEvent, Verdict};

use super::environment::Observer;
use crate::attempt::EventSink;
use crate::console::{Clock, GapReason, Stamp};
use crate::store::{ChildLedger, EventLog, LiveRun, StoreError, start_ticks};

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

/// Most strikes of the fault injector that a verdict lists; the events hold all.
const MAX_INJECTED: usize = 16;

/// Writes events to the run's log and passes them on.
pub(super) struct RunEvents {
    log: Arc<EventLog>,
    pub(super) observer: Arc<dyn Observer>,
    /// The run's id, which joins log lines of one run.
    trace: String,
    /// The first event of the attempt that could not be written.
    failed: Mutex<Option<StoreError>>,
    /// What the fault injector did, a line each.
    injected: Mutex<Vec<Note>>,
    /// What the events amount to for the health of the place.
    tally: Mutex<Tally>,
}

/// What a run's events amount to.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// How long the last deployment took, in milliseconds.
    flash_ms: Option<u64>,
    /// How often console output was lost.
    gaps: u32,
    /// How often of these a port had overrun.
    overruns: u32,
}

impl EventSink for RunEvents {
    fn emit(&self, event: RunEvent) {
        self.mirror(&event);
        self.count(&event);
        if let Err(error) = self.log.append(&event) {
            tracing::error!(%error, "event not recorded");
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        self.observer.event(&event);
    }
}

impl RunEvents {
    /// Begins the events of a run.
    pub(super) fn new(live: &LiveRun, observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self {
            log: Arc::clone(live.events()),
            observer,
            trace: live.id().to_string(),
            failed: Mutex::default(),
            injected: Mutex::default(),
            tally: Mutex::default(),
        })
    }

    /// Returns why an event could not be written since this was asked last. What a later
    /// attempt shows is whole again.
    pub(super) fn lost(&self) -> Option<StoreError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Adds what the fault injector did to a verdict that does not say it, because it struck
    /// an attempt that was made again: such a run is no natural one.
    pub(super) fn own_up(&self, verdict: &mut Verdict) {
        let mut notes = self.injected.lock().unwrap_or_else(PoisonError::into_inner).clone();
        notes.retain(|note| !verdict.notes.contains(note));
        verdict.notes.splice(0..0, notes);
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, event: &RunEvent) {
        match event {
            RunEvent::Deployed(report) => self.tally().flash_ms = Some(report.duration_ms),
            RunEvent::Gap { reason, .. } => {
                let mut tally = self.tally();
                tally.gaps += 1;
                tally.overruns += u32::from(reason == GapReason::Overrun.as_str());
            }
            RunEvent::Injected { fault, detail } => {
                let mut injected = self.injected.lock().unwrap_or_else(PoisonError::into_inner);
                if injected.len() < MAX_INJECTED {
                    let (fault, detail) = (fault.clone(), detail.clone());
                    injected.push(Note::Injected { fault, detail });
                }
            }
            _ => {}
        }
    }

    /// Returns how long the last deployment took, in milliseconds.
    pub(super) fn flash_ms(&self) -> Option<u64> {
        self.tally().flash_ms
    }

    /// Returns how often console output was lost.
    pub(super) fn gaps(&self) -> u32 {
        self.tally().gaps
    }

    /// Returns how often a port has overrun.
    pub(super) fn overruns(&self) -> u32 {
        self.tally().overruns
    }

    /// Repeats an event in Jig's own log, so that one stream tells everything.
    fn mirror(&self, event: &RunEvent) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let Ok(mut data) = serde_json::to_value(event) else { return };
        let fields = data.as_object_mut();
        let kind = fields.and_then(|fields| fields.remove("event"));
        let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or("event");
        let (event_type, trace) = (kind.to_ascii_uppercase(), self.trace.as_str());
        let message = kind.replace('_', " ");
        match event {
            RunEvent::ActionEnded { duration_ms, .. } => {
                tracing::info!(event_type, trace, duration_ms, %data, "{message}");
            }
            _ => tracing::info!(event_type, trace, %data, "{message}"),
        }
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
