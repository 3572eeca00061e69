//! Reports progress, obeys requests to stop, shows that the worker is alive, and keeps how long
//! each phase took.

use std::time::{Duration, Instant};

use super::cancel::FlashStop;
use crate::worker::open_session::WorkerPulse;
use crate::{FlashLeft, FlashPhase, FlashProgress, ProbeError};

/// Takes what is told about a flash operation's progress.
pub(crate) type ProgressSink = Box<dyn FnMut(FlashProgress) + Send>;

/// The phases of one flash operation. A phase may be left and entered again.
pub(crate) struct Phases<'a> {
    sink: ProgressSink,
    stop: &'a FlashStop,
    pulse: &'a WorkerPulse,
    /// What is left on the chip if the operation stops now.
    pub(crate) left: FlashLeft,
    /// How long the worker may be silent from now on, although nothing is wrong.
    silence: Duration,
    all: Vec<TimedPhase>,
    now: Option<(usize, Instant)>,
}

struct TimedPhase {
    at: FlashProgress,
    took: Duration,
}

impl<'a> Phases<'a> {
    pub(crate) fn new(
        sink: ProgressSink,
        stop: &'a FlashStop,
        pulse: &'a WorkerPulse,
        silence: Duration,
    ) -> Self {
        let left = FlashLeft::Untouched;
        Self { sink, stop, pulse, left, silence, all: Vec::new(), now: None }
    }

    /// Fails if the operation was asked to stop.
    pub(crate) fn check_stop(&self) -> Result<(), ProbeError> {
        let left = self.left;
        if self.stop.is_wanted() { Err(ProbeError::Cancelled { left }) } else { Ok(()) }
    }

    /// Enters a phase; a phase that was left goes on where it was.
    pub(crate) fn enter(&mut self, phase: FlashPhase, total: u64) {
        self.leave();
        self.beat();
        let known = self.all.iter().position(|one| one.at.phase == phase);
        let nth = known.unwrap_or_else(|| {
            let at = FlashProgress { phase, done: 0, total };
            (self.sink)(at);
            self.all.push(TimedPhase { at, took: Duration::ZERO });
            self.all.len() - 1
        });
        self.now = Some((nth, Instant::now()));
    }

    /// Tells that bytes are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.beat();
        let now = self.now.and_then(|(nth, _)| self.all.get_mut(nth));
        if bytes > 0
            && let Some(TimedPhase { at, .. }) = now
            && at.done < at.total
        {
            at.done = at.total.min(at.done.saturating_add(bytes));
            (self.sink)(*at);
        }
    }

    /// Returns how many bytes of the phase are done.
    pub(crate) fn done(&self) -> u64 {
        let now = self.now.and_then(|(nth, _)| self.all.get(nth));
        now.map_or(0, |phase| phase.at.done)
    }

    /// Leaves the phase, done or not.
    pub(crate) fn leave(&mut self) {
        if let Some((nth, since)) = self.now.take()
            && let Some(phase) = self.all.get_mut(nth)
        {
            phase.took += since.elapsed();
        }
    }

    /// Shows that the worker is alive.
    pub(crate) fn beat(&self) {
        self.pulse.beat_ahead(self.silence);
    }

    /// Returns how long each phase took.
    pub(crate) fn durations(&self) -> Vec<(FlashPhase, Duration)> {
        self.all.iter().map(|phase| (phase.at.phase, phase.took)).collect()
    }
}
