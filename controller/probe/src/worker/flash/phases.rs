//! Tells progress, and keeps how long each phase took.

use std::time::{Duration, Instant};

use super::Sink;
use crate::worker::bench::Pulse;
use crate::{FlashPhase, FlashProgress};

/// The phases of one flash operation.
pub(crate) struct Phases<'a> {
    sink: Sink,
    pulse: &'a Pulse,
    now: Option<(FlashProgress, Instant)>,
    done: Vec<(FlashPhase, Duration)>,
}

impl<'a> Phases<'a> {
    pub(crate) fn new(sink: Sink, pulse: &'a Pulse) -> Self {
        Self { sink, pulse, now: None, done: Vec::new() }
    }

    /// Begins a phase.
    pub(crate) fn begin(&mut self, phase: FlashPhase, total: u64) {
        let progress = FlashProgress { phase, done: 0, total };
        self.now = Some((progress, Instant::now()));
        (self.sink)(progress);
    }

    /// Tells that bytes are done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.pulse.beat();
        if bytes > 0
            && let Some((progress, _)) = &mut self.now
        {
            progress.done = progress.total.min(progress.done + bytes);
            (self.sink)(*progress);
        }
    }

    /// Ends the phase, done or not. A phase that comes twice counts as one.
    pub(crate) fn end(&mut self) {
        let Some((progress, since)) = self.now.take() else { return };
        match self.done.iter_mut().find(|(phase, _)| *phase == progress.phase) {
            Some((_, took)) => *took += since.elapsed(),
            None => self.done.push((progress.phase, since.elapsed())),
        }
    }

    /// Returns how long each phase took.
    pub(crate) fn durations(&self) -> Vec<(FlashPhase, Duration)> {
        self.done.clone()
    }
}
