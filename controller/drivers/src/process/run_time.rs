//! How much time a process has had since a moment.
//!
//! # Design
//! *Time alone tells nothing on a busy host.* A process that was ready to run, and got no processor,
//! has done nothing in it. The kernel counts such a wait when it is over, so a thread that is ready
//! now may have waited all the time: then only what the busiest thread ran counts. Where all threads
//! sleep the process had what it wanted, but for the waits that are over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::starved::{ThreadTime, more, thread_times};

/// Measures the time that a process has.
#[derive(Debug)]
pub(crate) struct RunTime {
    tasks: PathBuf,
    began: Instant,
    before: BTreeMap<u32, ThreadTime>,
}

impl RunTime {
    /// Begins to measure.
    pub(crate) fn of(pid: i32) -> Self {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let before = thread_times(&tasks);
        Self { tasks, began: Instant::now(), before }
    }

    /// Returns how much time it had. Where the kernel does not say, that is all that has passed.
    pub(crate) fn had(&self) -> Duration {
        let passed = self.began.elapsed();
        if self.before.is_empty() {
            return passed;
        }
        let more = more(&self.before, &thread_times(&self.tasks));
        match is_ready(&self.tasks) {
            true => more.ran,
            false => more.ran.max(passed.saturating_sub(more.all)),
        }
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
    fn a_process_that_sleeps_has_all_its_time() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let time = RunTime::of(child.id() as i32);
        let wanted = Duration::from_millis(5);
        while time.had() < wanted {
            std::thread::yield_now();
        }
        assert!(time.began.elapsed() >= wanted);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_busy_process_has_no_more_than_it_ran() {
        let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let time = RunTime::of(child.id() as i32);
        while time.had() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        let more = more(&time.before, &thread_times(&time.tasks));
        assert!(more.ran >= Duration::from_millis(20), "{more:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
