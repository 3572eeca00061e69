//! What of a child's time it did not have.
//!
//! # Design
//! *What a child does to itself is not lost.* Threads of an emulator also wait for each other: a
//! guest that keeps the emulated core busy lets its other threads wait for the processor. While
//! any thread runs the child runs, so no more is lost than what the busiest thread leaves.
//! Otherwise a firmware could make the host look starved.
//!
//! *What the hypervisor takes is lost time.* It comes on top of the longest measure only: it
//! makes a quiet period longer, and is no proof that this child stood; see `stolen.rs`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ManagedProcess;
use super::starved::ThreadTime;
use super::stolen::StolenTime;

/// For how long a child stood, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stillness {
    /// How long at least: as the thread that stood longest.
    pub time: Duration,
    /// How long at most: as if its threads had waited one after the other, and all that was stolen
    /// from the host had been stolen from them.
    pub most: Duration,
    /// It was stopped (SIGSTOP); else it was ready to run and got no processor.
    pub stopped: bool,
}

/// Keeps account of the time that a child does not have. It must be looked at often: a stop
/// between two looks leaves no trace.
#[derive(Debug)]
pub struct StillnessWatch {
    last: Instant,
    /// Time that passed, in which no thread was seen to run, and that was not found to be lost.
    unspent: Unspent,
    times: BTreeMap<u32, ThreadTime>,
    stolen: StolenTime,
}

impl StillnessWatch {
    /// Begins to watch.
    pub fn new(child: &ManagedProcess) -> Self {
        let (unspent, times) = (Unspent::default(), child.thread_times());
        Self { last: Instant::now(), unspent, times, stolen: StolenTime::begin() }
    }

    /// Says how long the child has stood since the last look. One that is found stopped is taken
    /// to have stood for all of it, but no longer than `most`: this process may have been stopped,
    /// too.
    pub fn look(&mut self, child: &ManagedProcess, most: Duration) -> Stillness {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.last, now));
        let times = child.thread_times();
        let before = std::mem::replace(&mut self.times, times);
        let stolen = self.stolen.take();
        if child.is_stopped() {
            let time = passed.min(most);
            return Stillness { time, most: time, stopped: true };
        }
        let more = super::starved::more(&before, &self.times);
        let idle = passed.saturating_sub(more.ran);
        let time = self.unspent.longest.spend(idle, more.longest);
        let most = self.unspent.all.spend(idle, more.all).saturating_add(stolen);
        Stillness { time, most, stopped: false }
    }
}

/// Longest single wait for a processor that is accounted for. The kernel counts a wait when it is
/// over, which may be many looks after it began. Time that a child slept is not kept for longer:
/// otherwise a guest that sleeps first could make all of it look lost later.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Time that may have been lost, by each of the two measures.
#[derive(Debug, Default)]
struct Unspent {
    longest: IdleTime,
    all: IdleTime,
}

/// Time in which no thread was seen to run.
#[derive(Debug, Default)]
struct IdleTime(Duration);

impl IdleTime {
    /// Takes waits from the time that was idle; no more is lost than that.
    fn spend(&mut self, idle: Duration, waited: Duration) -> Duration {
        self.0 = self.0.saturating_add(idle);
        let lost = waited.min(self.0);
        self.0 = (self.0 - lost).min(LONGEST_WAIT);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_idle_time_is_lost_and_sleep_is_not_kept_for_long() {
        let s = Duration::from_secs;
        let mut idle = IdleTime::default();
        // One thread runs all the time, and others wait for it.
        assert_eq!(idle.spend(s(0), s(9)), s(0));
        // A wait that began three looks ago ends.
        for _ in 0..3 {
            assert_eq!(idle.spend(s(1), s(0)), s(0));
        }
        assert_eq!(idle.spend(s(1), s(4)), s(4));
        assert_eq!(idle.spend(s(60), s(1)), s(1));
        assert_eq!(idle.spend(s(0), s(60)), LONGEST_WAIT);
        assert_eq!(idle.spend(s(0), s(60)), s(0));
    }
}
