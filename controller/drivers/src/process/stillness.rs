//! What of a child's time it did not have.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ManagedProcess;

/// For how long a child stood, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stillness {
    /// How long.
    pub time: Duration,
    /// Somebody had stopped it; else it was ready to run and got no processor.
    pub stopped: bool,
}

/// Keeps account of the time that a child does not have. It must be looked at often: a stop
/// between two looks leaves no trace.
#[derive(Debug)]
pub struct StillnessWatch {
    last: Instant,
    /// Time that passed and was not found to be lost: the kernel counts a wait when it is over,
    /// which may be many looks after it began.
    unspent: Duration,
    waits: BTreeMap<u32, Duration>,
}

impl StillnessWatch {
    /// Begins to watch.
    pub fn new(child: &ManagedProcess) -> Self {
        Self { last: Instant::now(), unspent: Duration::ZERO, waits: child.waits() }
    }

    /// Says how long the child has stood since the last look. One that is found stopped is taken
    /// to have stood for all of it, but no longer than `most`: whoever looks may have stood too.
    pub fn look(&mut self, child: &ManagedProcess, most: Duration) -> Stillness {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.last, now));
        let waits = child.waits();
        let before = std::mem::replace(&mut self.waits, waits);
        if child.is_stopped() {
            return Stillness { time: passed.min(most), stopped: true };
        }
        self.unspent += passed;
        let time = super::starved::longest(&before, &self.waits).min(self.unspent);
        self.unspent -= time;
        Stillness { time, stopped: false }
    }
}
