//! The time in which an emulated machine stood, by the events of its monitor. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

/// When an event happened, as the emulator stamps it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct EventTime {
    seconds: i64,
    microseconds: i64,
}

impl EventTime {
    /// Returns the time since 1970; zero where the emulator could not tell it.
    pub(super) fn since_epoch(self) -> Duration {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        let micros = u64::try_from(self.microseconds).unwrap_or_default();
        Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros))
    }
}

/// Account of the time in which a machine stood: halted, or stopped by the fault watch.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    since: Option<Duration>,
    total: Duration,
}

impl Pauses {
    pub(super) fn begin(&mut self, at: Duration) {
        self.since.get_or_insert(at);
    }

    pub(super) fn end(&mut self, at: Duration) {
        // Nothing to add at the first start: the machine is launched halted.
        let since = self.since.take().unwrap_or(at);
        self.total = self.total.saturating_add(at.saturating_sub(since));
    }

    /// Tells whether the machine stands.
    pub(super) fn stands(&self) -> bool {
        self.since.is_some()
    }

    /// Returns for how long it has stood in all.
    pub(super) fn total(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.total_at(now)
    }

    fn total_at(&self, now: Duration) -> Duration {
        let this = self.since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.total.saturating_add(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_add_up_and_the_launch_is_none() {
        let ms = Duration::from_millis;
        let mut pauses = Pauses::default();
        pauses.end(ms(100));
        assert_eq!((pauses.total_at(ms(200)), pauses.stands()), (ms(0), false));
        pauses.begin(ms(200));
        // A second request to stop changes nothing.
        pauses.begin(ms(210));
        assert_eq!((pauses.total_at(ms(230)), pauses.stands()), (ms(30), true));
        pauses.end(ms(250));
        assert_eq!((pauses.total_at(ms(900)), pauses.stands()), (ms(50), false));
        // A clock that was set back takes nothing away.
        pauses.begin(ms(300));
        pauses.end(ms(1));
        assert_eq!(pauses.total_at(ms(900)), ms(50));
    }

    #[test]
    fn a_time_stamp_that_the_emulator_does_not_know_is_zero() {
        let unknown = EventTime { seconds: -1, microseconds: -1 };
        assert_eq!(unknown.since_epoch(), Duration::ZERO);
        let known = EventTime { seconds: 2, microseconds: 5 };
        assert_eq!(known.since_epoch(), Duration::from_micros(2_000_005));
    }
}
