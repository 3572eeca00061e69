//! What a run does with its events: writes them, counts them, passes them on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::{Note, RunEvent, Verdict};

use super::environment::Observer;
use crate::attempt::RunEventSink;
use crate::console::{ConsoleClock, GapReason, Stamp};
use crate::store::{EventLog, LiveRun, StoreError};

/// Most injected faults that a verdict lists; the events hold all.
const MAX_INJECTED: usize = 16;

/// Writes events to the run's log and passes them on.
pub(super) struct RunEvents {
    log: Arc<EventLog>,
    pub(super) observer: Arc<dyn Observer>,
    /// The run's id, which joins log lines of one run.
    trace: String,
    tally: Mutex<RunTally>,
}

/// What a run's events amount to.
#[derive(Default)]
struct RunTally {
    /// The first event of the attempt that could not be written.
    unwritten: Option<StoreError>,
    /// What the fault injector did, at most [`MAX_INJECTED`] notes.
    injected: Vec<Note>,
    /// How long the last deployment took, in milliseconds.
    flash_ms: Option<u64>,
    loss: RunLoss,
}

/// What of the console output of a run was lost or spoilt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunLoss {
    /// How often output was lost.
    pub(super) gaps: u32,
    /// How often of these a port had overrun.
    pub(super) overruns: u32,
    /// Bytes that were lost, as far as their number is known.
    pub(super) bytes: u64,
    /// Characters that came with a wrong stop or parity bit.
    pub(super) garbled: u64,
}

impl RunTally {
    fn count(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Deployed(report) => self.flash_ms = Some(report.duration_ms),
            RunEvent::Gap { reason, lost, .. } => {
                let loss = &mut self.loss;
                loss.gaps += 1;
                loss.overruns += u32::from(reason == GapReason::Overrun.as_str());
                loss.bytes = loss.bytes.saturating_add(lost.unwrap_or(0));
            }
            RunEvent::Garbled { count, .. } => {
                self.loss.garbled = self.loss.garbled.saturating_add(*count);
            }
            RunEvent::Injected { fault, detail } if self.injected.len() < MAX_INJECTED => {
                let (fault, detail) = (fault.clone(), detail.clone());
                self.injected.push(Note::Injected { fault, detail });
            }
            _ => {}
        }
    }
}

impl RunEventSink for RunEvents {
    fn emit(&self, event: RunEvent) {
        self.mirror(&event);
        let written = self.log.append(&event);
        let mut tally = self.tally();
        tally.count(&event);
        if let Err(error) = written {
            tracing::error!(%error, "event not recorded");
            tally.unwritten.get_or_insert(error);
        }
        drop(tally);
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
            tally: Mutex::default(),
        })
    }

    /// Returns the first error of writing an event since the last call.
    pub(super) fn take_unwritten(&self) -> Option<StoreError> {
        self.tally().unwritten.take()
    }

    /// Adds the injected faults to a verdict that does not list them, because they hit an attempt
    /// that was made again.
    pub(super) fn note_injected(&self, verdict: &mut Verdict) {
        let mut notes = self.tally().injected.clone();
        notes.retain(|note| !verdict.notes.contains(note));
        verdict.notes.splice(0..0, notes);
    }

    /// Returns how long the last deployment took, in milliseconds.
    pub(super) fn flash_ms(&self) -> Option<u64> {
        self.tally().flash_ms
    }

    /// Returns what of the console output was lost or spoilt.
    pub(super) fn loss(&self) -> RunLoss {
        self.tally().loss
    }

    fn tally(&self) -> MutexGuard<'_, RunTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
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

impl ConsoleClock for RunClock {
    fn stamp(&self) -> Stamp {
        let mono = self.clock.mono().saturating_sub(self.began).as_nanos();
        let wall = self.clock.wall().as_nanosecond();
        Stamp {
            mono_ns: u64::try_from(mono).unwrap_or(u64::MAX),
            wall_ns: i64::try_from(wall).unwrap_or(i64::MAX),
        }
    }
}
