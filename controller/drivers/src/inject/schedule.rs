//! When a fault is due. Pure.

use std::time::Duration;

use tokio::time::Instant;

use super::catalogue::{Moments, When};
use super::grammar::Injection;

/// What times count from, as far as it has happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Origins {
    /// The run, or the attempt, began.
    pub(super) began: Option<Instant>,
    /// The board had power for the first time since then.
    pub(super) powered: Option<Instant>,
}

/// What is known of the run so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Course {
    /// Of the run: what strikes once counts from there.
    pub(super) run: Origins,
    /// Of the attempt under way: what strikes in each counts from there.
    pub(super) attempt: Origins,
    /// How much of the deployment under way is done, in percent.
    pub(super) deployed: Option<u8>,
}

impl Course {
    /// Begins the run.
    pub(super) fn begin(&mut self, now: Instant) {
        self.run.began.get_or_insert(now);
        self.attempt.began.get_or_insert(now);
    }

    /// Begins another attempt.
    pub(super) fn begin_attempt(&mut self, now: Instant) {
        self.run.began.get_or_insert(now);
        self.attempt = Origins { began: Some(now), powered: None };
        self.deployed = None;
    }

    /// The board has power.
    pub(super) fn powered(&mut self, now: Instant) {
        self.run.powered.get_or_insert(now);
        self.attempt.powered.get_or_insert(now);
    }

    /// Returns the moment at which a fault is due, if that is known yet; it may be over.
    pub(super) fn due(&self, injection: &Injection) -> Option<Instant> {
        let origins = if injection.every { &self.attempt } else { &self.run };
        // Nothing strikes before the run has begun: the injector's timer starts with it.
        let began = origins.began?;
        match injection.when {
            When::Share(share) => (self.deployed? >= share).then_some(began),
            When::After(time) => {
                let from = match injection.fault.spec().moments {
                    Moments::Running | Moments::Deploying | Moments::BeforeDeploying => {
                        origins.powered?
                    }
                    Moments::Run | Moments::Command => began,
                };
                Some(later(from, time))
            }
        }
    }
}

/// Adds a time, however long.
pub(super) fn later(from: Instant, time: Duration) -> Instant {
    // A time that no clock can hold is never reached either.
    from.checked_add(time).unwrap_or(from + Duration::from_secs(1 << 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injection(text: &str) -> Injection {
        text.parse().unwrap()
    }

    #[test]
    fn times_count_from_what_the_fault_is_about() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut course = Course::default();
        let (host, board) = (injection("disk-full@2s"), injection("kill-emulator@2s"));
        assert_eq!(course.due(&host), None);
        course.begin_attempt(start);
        assert_eq!((course.due(&host), course.due(&board)), (Some(at(2)), None));
        course.powered(at(5));
        course.powered(at(9));
        assert_eq!(course.due(&board), Some(at(7)));
        // What strikes once counts from the first power of the run; what strikes in each
        // attempt, from the attempt's own.
        let every = injection("kill-emulator@2s,every");
        course.begin_attempt(at(20));
        assert_eq!((course.due(&board), course.due(&every)), (Some(at(7)), None));
        course.powered(at(30));
        assert_eq!(course.due(&every), Some(at(32)));
    }

    #[test]
    fn a_share_is_due_while_a_deployment_has_come_that_far() {
        let mut course = Course::default();
        let half = injection("lose-probe@50%");
        course.begin_attempt(Instant::now());
        assert_eq!(course.due(&half), None);
        for (deployed, due) in [(0, false), (49, false), (50, true), (100, true)] {
            course.deployed = Some(deployed);
            assert_eq!(course.due(&half).is_some(), due);
        }
        course.begin_attempt(Instant::now());
        assert_eq!(course.due(&half), None);
    }
}
