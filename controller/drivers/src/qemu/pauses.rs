//! The time in which an emulated machine stood, by the events of its monitor, and the sum of what it
//! lost. Pure, but for the clocks that [`EventTime::happened`] and [`Pauses::total`] ask.
//!
//! # Design
//! *Lengths are measured by the monotonic clock.* The emulator stamps its events by the clock of the
//! day, which may be set while a machine stands. So each stamp is turned at once into its age, and
//! ages are taken from the clock that nothing sets.
//!
//! *No more is lost than has passed.* What threads waited is added up, and they also wait while the
//! machine is stopped and let run on. On a busy host the sum would grow faster than the clock for as
//! long as the machine is halted again and again, and its time would never be had.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

/// When an event happened, as the emulator stamps it.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct EventTime {
    seconds: i64,
    microseconds: i64,
}

impl EventTime {
    /// Returns when the event happened, which was read just now.
    pub(super) fn happened(self) -> Instant {
        let now = Instant::now();
        let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(self.age(today)).unwrap_or(now)
    }

    /// Returns how old the event is by the clock of the day; zero where the emulator could not tell
    /// its time, or where that lies further back than an event stays unread.
    fn age(self, today: Duration) -> Duration {
        let seconds = u64::try_from(self.seconds).unwrap_or_default();
        let micros = u64::try_from(self.microseconds).unwrap_or_default();
        let at = Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros));
        Some(today.saturating_sub(at)).filter(|&age| age <= OLDEST).unwrap_or_default()
    }
}

/// How long an event may lie unread: the owner of an emulator reads them as they come, unless Jig
/// itself was stopped. A greater age means that the clock of the day was set meanwhile.
const OLDEST: Duration = Duration::from_secs(60);

/// Account of the time in which a machine stood: halted, or stopped by the fault watch.
#[derive(Debug, Default)]
pub(super) struct Pauses {
    since: Option<Instant>,
    total: Duration,
}

impl Pauses {
    pub(super) fn begin(&mut self, at: Instant) {
        self.since.get_or_insert(at);
    }

    pub(super) fn end(&mut self, at: Instant) {
        // Nothing to add at the first start: the machine is launched halted.
        let since = self.since.take().unwrap_or(at);
        self.total = self.total.saturating_add(at.saturating_duration_since(since));
    }

    /// Returns for how long it has stood in all.
    pub(super) fn total(&self) -> Duration {
        self.total_at(Instant::now())
    }

    fn total_at(&self, now: Instant) -> Duration {
        let this = self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.total.saturating_add(this)
    }
}

/// Sum of the time that a machine lost, however often it was halted meanwhile.
#[derive(Debug)]
pub(super) struct LostTime {
    /// When it was last halted or let run on.
    since: Instant,
    /// What the sources had counted by then.
    counted: Duration,
    /// What was lost by then.
    lost: Duration,
}

impl LostTime {
    /// Begins to add up, at the launch.
    pub(super) fn begin(at: Instant) -> Self {
        Self { since: at, counted: Duration::ZERO, lost: Duration::ZERO }
    }

    /// Returns what was lost in all, where the sources have counted `counted`.
    pub(super) fn total(&self, now: Instant, counted: Duration) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        self.lost.saturating_add(counted.saturating_sub(self.counted).min(passed))
    }

    /// Notes that the machine was halted or let run on just now.
    pub(super) fn turn(&mut self, now: Instant, counted: Duration) {
        *self = Self { since: now, counted, lost: self.total(now, counted) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_add_up_and_the_launch_is_none() {
        let ms = Duration::from_millis;
        let launch = Instant::now();
        let at = |time| launch + ms(time);
        let mut pauses = Pauses::default();
        pauses.end(at(100));
        assert_eq!(pauses.total_at(at(200)), ms(0));
        pauses.begin(at(200));
        // A second request to stop changes nothing.
        pauses.begin(at(210));
        assert_eq!(pauses.total_at(at(230)), ms(30));
        pauses.end(at(250));
        assert_eq!(pauses.total_at(at(900)), ms(50));
        // Events whose order the stamps do not keep take nothing away.
        pauses.begin(at(300));
        pauses.end(at(1));
        assert_eq!(pauses.total_at(at(900)), ms(50));
    }

    #[test]
    fn no_more_is_lost_than_has_passed() {
        let ms = Duration::from_millis;
        let launch = Instant::now();
        let at = |time| launch + ms(time);
        let mut lost = LostTime::begin(launch);
        assert_eq!(lost.total(at(50), ms(20)), ms(20));
        // Two threads waited side by side.
        assert_eq!(lost.total(at(50), ms(70)), ms(50));
        lost.turn(at(50), ms(70));
        assert_eq!(lost.total(at(50), ms(70)), ms(50));
        // What was too much before does not come behind.
        assert_eq!(lost.total(at(90), ms(75)), ms(55));
        lost.turn(at(90), ms(75));
        assert_eq!(lost.total(at(91), ms(500)), ms(56));
    }

    #[test]
    fn an_event_is_as_old_as_its_stamp_says_unless_the_clock_was_set() {
        let today = Duration::from_secs(1_000_000);
        let age = |seconds, microseconds| EventTime { seconds, microseconds }.age(today);
        assert_eq!(age(999_999, 999_000), Duration::from_millis(1));
        for (seconds, microseconds) in [(-1, -1), (5, 0), (2_000_000, 0), (i64::MAX, i64::MAX)] {
            assert_eq!(age(seconds, microseconds), Duration::ZERO, "{seconds}.{microseconds}");
        }
    }
}
