//! Timeouts that count only time in which this process ran.
//!
//! # Design
//! *What is waited for gets no time while the host stands still.* A paused machine and a host without a
//! free processor stop an emulator together with Jig; when both go on, an ordinary deadline has passed
//! before the emulator could answer. So a wait is cut into slices, and one that took longer than it was
//! asked for counts as one slice. An emulator that is stopped alone is given up in the usual time.

use std::pin::pin;
use std::time::{Duration, Instant};

/// Longest piece of a wait: what is counted of a time in which this process stood.
const SLICE: Duration = Duration::from_millis(100);

/// The rest of a timeout.
#[derive(Debug, Clone)]
pub struct OwnTimeout {
    left: Duration,
    /// When it was counted last; begins with the first slice.
    last: Option<Instant>,
}

impl OwnTimeout {
    /// Makes a timeout that begins with the first wait.
    pub fn new(timeout: Duration) -> Self {
        Self { left: timeout, last: None }
    }

    /// Returns how long to wait before the next call; zero once the time is over.
    pub fn slice(&mut self, now: Instant) -> Duration {
        let passed = self.last.replace(now).map(|last| now.saturating_duration_since(last));
        self.left = self.left.saturating_sub(passed.unwrap_or_default().min(SLICE));
        self.left.min(SLICE)
    }

    /// Waits for something; nothing if it does not happen in time.
    pub async fn limit<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        let mut what = pin!(what);
        loop {
            let slice = self.slice(tokio::time::Instant::now().into_std());
            match tokio::time::timeout(slice, what.as_mut()).await {
                Ok(done) => return Some(done),
                Err(_) if slice.is_zero() => return None,
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Counts the slices of a timeout, each of which takes as long as the next of `took` says, and
    /// what they were asked for in the end.
    fn slices(timeout: Duration, mut took: impl FnMut(Duration) -> Duration) -> (u32, Duration) {
        let (mut timeout, mut now, mut count) = (OwnTimeout::new(timeout), Instant::now(), 0);
        let began = now;
        loop {
            let slice = timeout.slice(now);
            if slice.is_zero() {
                return (count, now - began);
            }
            count += 1;
            now += took(slice);
        }
    }

    #[test]
    fn slices_that_take_as_long_as_asked_add_up_to_the_timeout() {
        assert_eq!(slices(5000 * MS, |slice| slice), (50, 5000 * MS));
        assert_eq!(slices(30 * MS, |slice| slice), (1, 30 * MS));
        assert_eq!(slices(250 * MS, |slice| slice), (3, 250 * MS));
        assert_eq!(slices(Duration::ZERO, |slice| slice), (0, Duration::ZERO));
        // Something arrives again and again, and is not what is waited for.
        assert_eq!(slices(5000 * MS, |_| 10 * MS), (500, 5000 * MS));
    }

    #[test]
    fn a_time_in_which_the_process_stood_counts_as_one_slice() {
        let mut stops = [90_000 * MS].into_iter();
        let took = |slice: Duration| stops.next().unwrap_or(slice);
        assert_eq!(slices(5000 * MS, took), (50, 90_000 * MS + 4900 * MS));
        // Each slice ends late where many want the processor.
        assert_eq!(slices(5000 * MS, |slice| 3 * slice), (50, 15_000 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn what_does_not_happen_is_waited_for_as_long_as_asked() {
        let began = tokio::time::Instant::now();
        let mut timeout = OwnTimeout::new(5000 * MS);
        assert_eq!(timeout.limit(std::future::ready(7)).await, Some(7));
        assert_eq!(timeout.limit(tokio::time::sleep(1000 * MS)).await, Some(()));
        assert_eq!(timeout.limit(std::future::pending::<()>()).await, None);
        let waited = began.elapsed();
        assert!((5000 * MS..5200 * MS).contains(&waited), "{waited:?}");
        // What has happened is taken, even late.
        assert_eq!(timeout.limit(std::future::ready(7)).await, Some(7));
    }
}
