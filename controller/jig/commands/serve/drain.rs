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

/// How long callers may fetch the last output and the files of a command that has ended.
const FETCH: Duration = Duration::from_secs(5);

/// What a stop waits for.
pub(super) struct Drain {
    jobs: Vec<Job>,
    /// Callers whose command has ended may still fetch its output.
    watchers: JobWatchers,
    fetch_end: Instant,
    passed_on: usize,
    end: Instant,
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
        Self { jobs, watchers, fetch_end: now + FETCH, passed_on, end: now + limit }
    }

    fn is_over(&self) -> bool {
        let now = Instant::now();
        let fetched = self.watchers.count() == 0 || now >= self.fetch_end;
        (self.jobs.is_empty() && self.passed_on == 0 && fetched) || now >= self.end
    }

    /// Looks again after a moment. Cancel-safe.
    pub(super) async fn look(&mut self, service: &CaptureService) -> Drained {
        if self.is_over() {
            return Drained::Over;
        }
        sleep(LOOK.min(self.end.saturating_duration_since(Instant::now()))).await;
        if !self.jobs.is_empty() {
            self.jobs.retain(Job::is_alive);
            self.fetch_end = Instant::now() + FETCH;
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
            screen.say(&format!("{}; Ctrl-C ends this at once", self.words()));
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
