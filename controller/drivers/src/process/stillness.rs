//! What of a child's time it did not have.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ManagedProcess;

/// For how long a child stood, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stillness {
    /// How long at least: as the thread that stood longest.
    pub time: Duration,
    /// How long at most: as if its threads had waited one after the other.
    pub most: Duration,
    /// It was stopped (SIGSTOP); else it was ready to run and got no processor.
    pub stopped: bool,
}

/// Keeps account of the time that a child does not have. It must be looked at often: a stop
/// between two looks leaves no trace.
#[derive(Debug)]
pub struct StillnessWatch {
    last: Instant,
    /// Time that passed and was not found to be lost: the kernel counts a wait when it is over,
    /// which may be many looks after it began.
    unspent: Unspent,
    waits: BTreeMap<u32, Duration>,
}

impl StillnessWatch {
    /// Begins to watch.
    pub fn new(child: &ManagedProcess) -> Self {
        Self { last: Instant::now(), unspent: Unspent::default(), waits: child.waits() }
    }

    /// Says how long the child has stood since the last look. One that is found stopped is taken
    /// to have stood for all of it, but no longer than `most`: whoever looks may have stood too.
    pub fn look(&mut self, child: &ManagedProcess, most: Duration) -> Stillness {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.last, now));
        let waits = child.waits();
        let before = std::mem::replace(&mut self.waits, waits);
        if child.is_stopped() {
            let time = passed.min(most);
            return Stillness { time, most: time, stopped: true };
        }
        let more = super::starved::more(&before, &self.waits);
        let time = Unspent::spend(&mut self.unspent.longest, passed, more.longest);
        let most = Unspent::spend(&mut self.unspent.all, passed, more.all);
        Stillness { time, most, stopped: false }
    }
}

/// Time that passed and was not found to be lost, by each of the two measures.
#[derive(Debug, Default)]
struct Unspent {
    longest: Duration,
    all: Duration,
}

impl Unspent {
    /// Takes lost time from what has passed; no more is lost than has passed.
    fn spend(unspent: &mut Duration, passed: Duration, lost: Duration) -> Duration {
        *unspent += passed;
        let lost = lost.min(*unspent);
        *unspent -= lost;
        lost
    }
}
