//! How long a run waits for builds, the rig and agents. What remains of its time is the loop's own.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Measures the time in which at least one build, run of the rig or agent is at work.
#[derive(Debug, Default)]
pub struct BusyClock(Mutex<Busy>);

#[derive(Debug, Default)]
struct Busy {
    /// What is at work: how much of it, and since when some of it is.
    now: Option<(u32, Instant)>,
    total: Duration,
}

/// Something is at work until this is dropped.
struct AtWork<'c>(&'c BusyClock);

impl BusyClock {
    /// Waits for work, and counts its time once, whatever else is at work meanwhile.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let _at_work = self.begin(Instant::now());
        work.await
    }

    /// Returns the time since the last call.
    pub fn take(&self) -> Duration {
        std::mem::take(&mut self.busy().total)
    }

    fn begin(&self, at: Instant) -> AtWork<'_> {
        let mut busy = self.busy();
        let (count, since) = busy.now.unwrap_or((0, at));
        busy.now = Some((count + 1, since));
        AtWork(self)
    }

    fn end(&self, at: Instant) {
        let mut busy = self.busy();
        busy.now = match busy.now {
            Some((count, since)) if count > 1 => Some((count - 1, since)),
            Some((_, since)) => {
                busy.total += at.saturating_duration_since(since);
                None
            }
            None => None,
        };
    }

    fn busy(&self) -> MutexGuard<'_, Busy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.end(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_two_are_at_work_counts_once() {
        let (clock, start) = (BusyClock::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        // The guards are forgotten: the test says when each ends.
        std::mem::forget(clock.begin(at(0)));
        std::mem::forget(clock.begin(at(2)));
        clock.end(at(3));
        assert_eq!(clock.take(), Duration::ZERO, "one of them is still at work");
        clock.end(at(5));
        std::mem::forget(clock.begin(at(10)));
        clock.end(at(11));
        assert_eq!((clock.take(), clock.take()), (Duration::from_secs(6), Duration::ZERO));
    }

    #[test]
    fn work_that_is_broken_off_has_ended() {
        let clock = BusyClock::default();
        drop(clock.begin(Instant::now()));
        assert!(clock.busy().now.is_none());
    }
}
