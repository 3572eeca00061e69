//! Time, injected.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time, both kinds.
pub trait Clock: Send + Sync {
    /// Returns the monotonic time since some fixed moment of this clock.
    fn mono(&self) -> Duration;
    /// Returns the wall-clock time.
    fn wall(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Starts a clock whose monotonic time counts from now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn mono(&self) -> Duration {
        self.origin.elapsed()
    }

    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that only moves when told to, for tests.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// Stops the time at a moment.
    pub fn at(start: Timestamp) -> Self {
        Self { start, passed: Mutex::new(Duration::ZERO) }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        *passed = passed.saturating_add(by);
    }
}

impl Clock for ManualClock {
    fn mono(&self) -> Duration {
        *self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wall(&self) -> Timestamp {
        self.start.saturating_add(self.mono()).unwrap_or(Timestamp::MAX)
    }
}
