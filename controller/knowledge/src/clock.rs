//! Time, as it is given to knowledge.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Tells the time.
pub trait KnowledgeClock: Send + Sync {
    /// Returns the time of day.
    fn now(&self) -> Timestamp;

    /// Returns the time since some moment, which never runs backwards.
    fn running(&self) -> Duration;
}

/// The clocks of the system.
#[derive(Debug, Clone, Copy)]
pub struct HostClock(Instant);

impl Default for HostClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl KnowledgeClock for HostClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn running(&self) -> Duration {
        self.0.elapsed()
    }
}
