//! What of a child's time it did not have.
//!
//! # Design
//! *What a child does to itself is not lost.* Threads of an emulator also wait for each other: a
//! guest that keeps the emulated core busy lets its other threads wait for the processor. While
//! any thread runs the child runs, so no more is lost for certain than what the busiest thread
//! leaves. Otherwise a firmware could make the host look starved.
//!
//! *What may be lost is more.* While the thread that serves an emulator's timers waits for a
//! processor, the guest runs without its clock, so a delay of 40 ticks takes longer than 40 ms. By
//! that measure time in which threads waited counts as lost although another one ran, but for a
//! part of it: a guest that keeps a host of one processor busy is not watched without end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ManagedProcess;
use super::starved::{MoreTime, ThreadTime};

/// For how long a child stood, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stillness {
    /// How long at least: as the thread that stood longest.
    pub time: Duration,
    /// How long at most: as if its threads had waited one after the other, and as if what one of
    /// them did meanwhile were nothing to the others.
    pub most: Duration,
    /// It was stopped (SIGSTOP); else it was ready to run and got no processor.
    pub stopped: bool,
}

/// Keeps account of the time that a child does not have. It must be looked at often: a stop
/// between two looks leaves no trace.
#[derive(Debug)]
pub struct StillnessWatch {
    last: Instant,
    unspent: Unspent,
    times: BTreeMap<u32, ThreadTime>,
}

impl StillnessWatch {
    /// Begins to watch.
    pub fn new(child: &ManagedProcess) -> Self {
        Self { last: Instant::now(), unspent: Unspent::default(), times: child.thread_times() }
    }

    /// Says how long the child has stood since the last look. One that is found stopped is taken
    /// to have stood for all of it, but no longer than `most`: this process may have been stopped,
    /// too.
    pub fn look(&mut self, child: &ManagedProcess, most: Duration) -> Stillness {
        let now = Instant::now();
        let passed = now.duration_since(std::mem::replace(&mut self.last, now));
        let times = child.thread_times();
        let before = std::mem::replace(&mut self.times, times);
        if child.is_stopped() {
            let time = passed.min(most);
            return Stillness { time, most: time, stopped: true };
        }
        let more = super::starved::more(&before, &self.times);
        self.unspent.spend(passed, more)
    }
}

/// The part of its busiest thread's time that a child had in any case, as a divisor.
const HAD: u32 = 3;

/// Longest single wait for a processor that is accounted for. The kernel counts a wait when it is
/// over, which may be many looks after it began. Time that a child slept is not kept for longer:
/// otherwise a guest that sleeps first could make all of it look lost later.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Time that passed and may turn out to be lost, by each of the two measures.
#[derive(Debug, Default)]
struct Unspent {
    longest: IdleTime,
    all: IdleTime,
}

impl Unspent {
    fn spend(&mut self, passed: Duration, more: MoreTime) -> Stillness {
        let time = self.longest.spend(passed.saturating_sub(more.ran), more.longest);
        let idle = passed.saturating_sub(more.ran / HAD);
        // Threads that waited side by side did so for no longer than one, and that cannot be told.
        let most = self.all.spend(idle, more.all.min(idle.max(more.longest)));
        Stillness { time, most, stopped: false }
    }
}

/// Time that a child may have lost.
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
    fn a_guest_whose_timers_wait_while_it_runs_may_have_lost_that_time() {
        let ms = Duration::from_millis;
        let spent = |passed, ran, longest, all| {
            let more = MoreTime { ran: ms(ran), longest: ms(longest), all: ms(all) };
            let Stillness { time, most, .. } = Unspent::default().spend(ms(passed), more);
            (time, most)
        };
        // The guest ran all the while, and the thread of its timers waited for half of it.
        assert_eq!(spent(100, 100, 50, 50), (ms(0), ms(50)));
        // Two threads waited in turns; a guest that ran had some time whatever they did.
        assert_eq!(spent(100, 60, 40, 180), (ms(40), ms(80)));
        // A wait that began before is counted when it is over.
        let mut unspent = Unspent::default();
        assert_eq!(unspent.spend(ms(100), MoreTime::default()).most, ms(0));
        let more = MoreTime { ran: ms(0), longest: ms(150), all: ms(250) };
        assert_eq!(unspent.spend(ms(100), more).most, ms(150));
        assert_eq!(spent(100, 0, 50, 100), (ms(50), ms(100)));
        assert_eq!(spent(100, 100, 0, 0), (ms(0), ms(0)));
    }

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
