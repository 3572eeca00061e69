//! The end of the service while commands run: waits for them for a while, and begins none.
//!
//! Owns what is waited for: commands of callers, each a process of its own, and transports whose
//! bytes this process passes on. Ends none of them.

use std::time::Duration;

use jig_rig::capture_service::CaptureService;
use jig_service::jobs::{Job, JobStore};
use jig_service::server::JobWatchers;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::consoles::passed_on;
use crate::render::Screen;

/// Interval of the looks at what is under way.
const LOOK: Duration = Duration::from_millis(100);

/// How long a caller that fetches the end of a command may stand still, and how long all of it may take:
/// with the time for commands, a stop stays within what its manager waits for.
const STILL: Duration = Duration::from_secs(5);
const MOST_FETCH: Duration = Duration::from_secs(30);

/// What a stop waits for.
pub(super) struct Drain {
    jobs: Vec<Job>,
    /// Callers whose command has ended may still fetch its output.
    watchers: JobWatchers,
    fetch: FetchWait,
    passed_on: usize,
    end: Instant,
}

/// How long callers are waited for that fetch the last output and the files of commands.
#[derive(Debug, Clone, Copy)]
struct FetchWait {
    /// When the last command ended.
    began: Instant,
    /// How long all of it may take.
    limit: Duration,
}

impl FetchWait {
    /// Tells whether no caller is waited for any longer; `moved` is when one moved last, if there are any.
    fn is_over(&self, now: Instant, moved: Option<Instant>) -> bool {
        let Some(moved) = moved else { return true };
        let still = now.saturating_duration_since(moved.max(self.began));
        still >= STILL || now.saturating_duration_since(self.began) >= self.limit
    }
}

/// Whether there is more to wait for.
pub(super) enum Drained {
    /// Commands are under way, and there is time.
    Goes,
    /// Nothing is left, or the time is over.
    Over,
}

impl Drain {
    /// Refuses further commands, and finds what is under way.
    pub(super) fn begin(
        jobs: &JobStore,
        watchers: JobWatchers,
        service: &CaptureService,
        limit: Duration,
    ) -> Self {
        jobs.close();
        let all = jobs.list().unwrap_or_else(|error| {
            tracing::warn!(error = jig_model::chain(&error), "commands under way are not known");
            Vec::new()
        });
        let jobs = all.into_iter().filter(Job::is_alive).collect();
        let (now, passed_on) = (Instant::now(), passed_on(service));
        let fetch = FetchWait { began: now, limit: limit.min(MOST_FETCH) };
        Self { jobs, watchers, fetch, passed_on, end: now + limit }
    }

    fn is_over(&self) -> bool {
        let now = Instant::now();
        match self.jobs.is_empty() {
            true => {
                let passed = self.passed_on == 0 || now >= self.end;
                passed && self.fetch.is_over(now, self.watchers.last_move())
            }
            false => now >= self.end,
        }
    }

    /// Looks again after a moment. Cancel-safe.
    pub(super) async fn look(&mut self, service: &CaptureService) -> Drained {
        if self.is_over() {
            return Drained::Over;
        }
        sleep(LOOK).await;
        if !self.jobs.is_empty() {
            self.jobs.retain(Job::is_alive);
            self.fetch.began = Instant::now();
        }
        self.passed_on = passed_on(service);
        Drained::Goes
    }

    /// Describes what is waited for in one line.
    pub(super) fn words(&self) -> String {
        let (commands, consoles) = (self.jobs.len(), self.passed_on);
        format!("stopping; {commands} commands and {consoles} lent consoles are waited for")
    }

    /// Tells what is waited for, if anything.
    pub(super) fn tell(&self, screen: &Screen) {
        let (commands, consoles) = (self.jobs.len(), self.passed_on);
        if screen.json() {
            let at = jiff::Timestamp::now();
            screen.out_json(&json!({
                "event": "draining", "at": at, "commands": commands, "consoles": consoles,
            }));
        } else if !self.is_over() {
            let now = if screen.is_watched() { "; Ctrl-C ends this at once" } else { "" };
            screen.say(&format!("{}{now}", self.words()));
        }
    }

    /// Tells what was not waited for any longer, if anything.
    pub(super) fn tell_end(&self, screen: &Screen) {
        let left = self.jobs.len();
        if screen.json() {
            let at = jiff::Timestamp::now();
            screen.out_json(&json!({"event": "drained", "at": at, "left": left}));
        } else if left > 0 {
            screen.insist(&format!("{left} commands go on without this service; see: jig runs"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_waited_for_while_it_moves_and_not_for_ever() {
        let began = Instant::now();
        let wait = FetchWait { began, limit: MOST_FETCH };
        let at = |ms| began + Duration::from_millis(ms);
        // No caller, or one that has not moved since long before.
        assert!(wait.is_over(began, None));
        let early = began.checked_sub(Duration::from_secs(3)).unwrap_or(began);
        assert!(!wait.is_over(at(4_999), Some(early)));
        assert!(wait.is_over(at(5_000), Some(early)));
        // One that moves is waited for beyond that, up to the limit.
        assert!(!wait.is_over(at(29_999), Some(at(25_000))));
        assert!(wait.is_over(at(29_999), Some(at(24_999))));
        assert!(wait.is_over(at(30_000), Some(at(29_999))));
        // Who gives commands no time gives callers none.
        assert!(FetchWait { began, limit: Duration::ZERO }.is_over(began, Some(began)));
    }
}
