//! How long a process's threads have waited for a processor, as the kernel counts it.
//!
//! Reading is pure but for [`waits`], which looks below a folder of threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Reads how long each thread has been ready to run without a processor, by its number. Empty
/// where the kernel does not say.
pub(super) fn waits(tasks: &Path) -> BTreeMap<u32, Duration> {
    let Ok(threads) = std::fs::read_dir(tasks) else { return BTreeMap::new() };
    let waits = threads.filter_map(|thread| {
        let thread = thread.ok()?;
        let number = thread.file_name().to_str()?.parse().ok()?;
        // A thread that ends meanwhile is not missed.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((number, wait(&text)?))
    });
    waits.collect()
}

/// Reads the second of the numbers in `schedstat`: nanoseconds of waiting on a run queue.
/// (Linux, `Documentation/scheduler/sched-stats.rst`.)
fn wait(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// How much longer threads have waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MoreWaits {
    /// The thread that waited most. Less was not lost: threads may wait side by side.
    pub(super) longest: Duration,
    /// All threads. More was not lost: threads may also wait for each other.
    pub(super) all: Duration,
}

/// Returns how much longer threads have waited since `before`. A new one has waited since it began.
pub(super) fn more(before: &BTreeMap<u32, Duration>, now: &BTreeMap<u32, Duration>) -> MoreWaits {
    now.iter().fold(MoreWaits::default(), |waits, (number, wait)| {
        let more = wait.saturating_sub(before.get(number).copied().unwrap_or_default());
        MoreWaits { longest: waits.longest.max(more), all: waits.all.saturating_add(more) }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_words_are_read_and_nothing_else() {
        assert_eq!(wait("158246 2000 3\n"), Some(Duration::from_micros(2)));
        for other in ["", "5", "1 x 3", "1 -4 3", "1 99999999999999999999 3"] {
            assert_eq!(wait(other), None, "{other}");
        }
        assert!(waits(Path::new("/proc/self/none")).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_numbers_are_read(text in "[0-9a-z \\n-]{0,40}", nanos in any::<u64>()) {
            let _ = wait(&text);
            prop_assert_eq!(wait(&format!("1 {nanos} 2")), Some(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn the_thread_that_waited_most_and_all_threads_are_counted() {
        let ms = Duration::from_millis;
        let before = BTreeMap::from([(1, ms(50)), (2, ms(10)), (3, ms(900))]);
        let now = BTreeMap::from([(1, ms(55)), (2, ms(40)), (4, ms(20))]);
        assert_eq!(more(&before, &now), MoreWaits { longest: ms(30), all: ms(55) });
        // A number that was given anew counts from nothing, not backwards.
        assert_eq!(more(&before, &BTreeMap::from([(3, ms(5))])), MoreWaits::default());
    }
}
