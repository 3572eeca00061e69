//! How much time a process has had since a moment.
//!
//! # Design
//! *Time alone tells nothing on a busy host.* A process that was ready to run, and got no processor,
//! has done nothing in it. The kernel counts such a wait when it is over, so a thread that is ready
//! now may have waited since the last look: then only what the busiest thread ran counts. Where all
//! threads sleep the process had what it wanted, but for the waits that are over.
//!
//! *What it had, it keeps.* Threads wait side by side, too, so of a process that is often woken on a busy
//! host more waits may be counted than time has passed. That takes nothing from earlier looks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::starved::{MoreTime, ThreadTime, more, thread_times};

/// Measures the time that a process has.
#[derive(Debug)]
pub(crate) struct RunTime {
    tasks: PathBuf,
    began: Instant,
    last: Instant,
    times: BTreeMap<u32, ThreadTime>,
    had: Duration,
}

impl RunTime {
    /// Begins to measure.
    pub(crate) fn of(pid: i32) -> Self {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let times = thread_times(&tasks);
        let now = Instant::now();
        Self { tasks, began: now, last: now, times, had: Duration::ZERO }
    }

    /// Returns how much time it had. Where the kernel does not say, that is all that has passed.
    pub(crate) fn had(&mut self) -> Duration {
        let now = Instant::now();
        let passed = now.duration_since(self.last);
        let is_told = !self.times.is_empty();
        let is_ready = is_told && is_ready(&self.tasks);
        let times = thread_times(&self.tasks);
        // A wait while this was read belongs to the waits of this look, so its time may not belong to
        // the next one.
        self.last = Instant::now();
        let more = more(&self.times, &times);
        self.times = times;
        // What a thread runs is counted in ticks, so some of the first may lie before the begin.
        let had = self.had.saturating_add(had(passed, more, is_ready));
        self.had = had.min(now.duration_since(self.began));
        self.had
    }
}

/// Returns how much of the time that has passed a process had.
fn had(passed: Duration, more: MoreTime, is_ready: bool) -> Duration {
    match is_ready {
        true => more.ran,
        false => more.ran.max(passed.saturating_sub(more.all)),
    }
}

/// Tells whether one of the threads runs, or would if it had a processor.
fn is_ready(tasks: &Path) -> bool {
    let Ok(threads) = std::fs::read_dir(tasks) else { return false };
    let stats = threads.filter_map(|thread| std::fs::read(thread.ok()?.path().join("stat")).ok());
    stats.into_iter().any(|stat| state(&stat) == Some(b'R'))
}

/// Reads the state, which stands behind the name; a name may hold anything.
fn state(stat: &[u8]) -> Option<u8> {
    let name = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(name + 2).copied()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_state_stands_behind_the_name() {
        assert_eq!(state(b"12 (qemu-system-arm) S 1 12"), Some(b'S'));
        assert_eq!(state(b"12 (a) R (b) R 1 12"), Some(b'R'));
        assert_eq!(state(b"12 (a)"), None);
        assert_eq!(state(b""), None);
    }

    #[test]
    fn waits_of_a_process_that_sleeps_take_no_more_than_has_passed() {
        let ms = Duration::from_millis;
        let more = |ran, all| MoreTime { ran: ms(ran), longest: ms(all), all: ms(all) };
        assert_eq!(had(ms(10), more(0, 0), false), ms(10));
        assert_eq!(had(ms(10), more(1, 4), false), ms(6));
        // Threads waited side by side.
        assert_eq!(had(ms(10), more(1, 25), false), ms(1));
        // A wait that goes on is not counted yet.
        assert_eq!(had(ms(10), more(1, 4), true), ms(1));
        // The kernel counts what a thread runs in ticks: some of it was before the last look.
        assert_eq!(had(ms(1), more(4, 0), true), ms(4));
    }

    #[test]
    fn a_process_that_sleeps_has_all_its_time() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let began = Instant::now();
        let mut time = RunTime::of(child.id() as i32);
        let wanted = Duration::from_millis(5);
        while time.had() < wanted {
            std::thread::yield_now();
        }
        assert!(began.elapsed() >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_busy_process_has_no_more_than_it_ran() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let before = thread_times(Path::new(&format!("/proc/{}/task", child.id())));
        let mut time = RunTime::of(child.id() as i32);
        while time.had() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        let more = more(&before, &thread_times(&time.tasks));
        assert!(more.ran >= Duration::from_millis(20), "{more:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
