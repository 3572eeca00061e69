//! The worker's thread: the session, and the loop that serves requests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use probe_rs::{Core, MemoryInterface as _, Session};

use super::leash::Leash;
use super::translate;
use crate::ProbeError;

/// What a request does, on the worker's thread. It answers by itself; `Break` ends the thread.
pub(crate) type WorkerJob = Box<dyn FnOnce(&mut Option<OpenSession>) -> Flow + Send>;

/// What comes after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// The next one.
    Continue,
    /// Nothing: the session is closed or broken.
    Break,
}

/// When the worker last showed that it is alive.
#[derive(Debug)]
pub(crate) struct WorkerPulse {
    since: Instant,
    millis: AtomicU64,
}

impl WorkerPulse {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), millis: AtomicU64::new(0) }
    }

    /// Shows that the worker is alive.
    pub(crate) fn beat(&self) {
        self.beat_ahead(Duration::ZERO);
    }

    /// Shows that the worker is alive, and will be silent for so long: it calls a function of
    /// probe-rs that waits for the chip.
    pub(crate) fn beat_ahead(&self, silence: Duration) {
        let until = self.since.elapsed().saturating_add(silence);
        self.millis.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns when it last did.
    pub(crate) fn last(&self) -> Instant {
        self.since + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

/// What worker and handles share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    pub(crate) name: String,
    pub(crate) pulse: WorkerPulse,
    /// Set when the worker is given up, or has ended.
    pub(crate) lost: AtomicBool,
    pub(crate) leash: Leash,
}

impl WorkerShared {
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Gives the worker up.
    pub(crate) fn give_up(&self) {
        self.lost.store(true, Ordering::Release);
        self.leash.cut();
    }
}

/// The open session and what is known of it.
pub(crate) struct OpenSession {
    session: Session,
}

impl OpenSession {
    pub(crate) fn new(session: Session) -> Self {
        Self { session }
    }

    /// Borrows the session.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Borrows the first core, the one that every verb without a core's name means.
    pub(crate) fn core(&mut self) -> Result<Core<'_>, ProbeError> {
        self.session.core(0).map_err(|error| translate::failed("reaching the core", error))
    }

    /// Closes the session and leaves the core halted. Dropping a session lets the core run,
    /// so it must not be able to: its transport is cut first. Where nothing can cut it, the session
    /// is forgotten, and the probe stays taken until the process ends.
    pub(crate) fn close_halted(mut self, leash: &Leash) {
        // A probe may have collected writes. One that is lost is closed all the same.
        let _ = self.core().map(|mut core| core.flush());
        if !leash.cut() {
            std::mem::forget(self.session);
        }
    }
}

/// Serves requests until all senders are gone, or a request ends the session.
pub(crate) fn serve(
    open_session: OpenSession,
    requests: &mpsc::Receiver<WorkerJob>,
    shared: &Arc<WorkerShared>,
) {
    let mut open_session = Some(open_session);
    while let Ok(job) = requests.recv() {
        if shared.is_lost() {
            break;
        }
        shared.pulse.beat();
        let flow = job(&mut open_session);
        shared.pulse.beat();
        if flow == Flow::Break {
            break;
        }
    }
    // A session says good-bye to its target, through a driver that may be broken.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(open_session.take())));
    shared.lost.store(true, Ordering::Release);
    shared.leash.release();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_that_was_told_before_is_no_lack_of_life() {
        let pulse = WorkerPulse::new();
        pulse.beat_ahead(Duration::from_secs(3600));
        assert!(pulse.last() > Instant::now() + Duration::from_secs(1800));
        pulse.beat();
        assert!(pulse.last() <= Instant::now());
    }
}
