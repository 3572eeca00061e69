//! How long a process's threads have run and have waited for a processor, as the kernel counts it.
//!
//! Reading is pure but for [`thread_times`], which looks below a folder of threads.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What the scheduler has counted of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// How long it has run.
    pub(super) ran: Duration,
    /// How long it was ready to run without a processor.
    pub(super) waited: Duration,
}

/// Reads the time of each thread by its number. Empty where the kernel does not say.
pub(super) fn thread_times(tasks: &Path) -> BTreeMap<u32, ThreadTime> {
    let Ok(threads) = std::fs::read_dir(tasks) else { return BTreeMap::new() };
    let times = threads.filter_map(|thread| {
        let thread = thread.ok()?;
        let number = thread.file_name().to_str()?.parse().ok()?;
        // A thread that ends meanwhile is not missed.
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((number, thread_time(&text)?))
    });
    times.collect()
}

/// Reads the first two numbers in `schedstat`: nanoseconds on a processor, and nanoseconds of
/// waiting on a run queue. (Linux, `Documentation/scheduler/sched-stats.rst`.)
fn thread_time(schedstat: &str) -> Option<ThreadTime> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok().map(Duration::from_nanos);
    Some(ThreadTime { ran: next()?, waited: next()? })
}

/// How much longer threads have run and waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MoreTime {
    /// How long the thread ran that ran most. The process ran for no less.
    pub(super) ran: Duration,
    /// The thread that waited most. Less was not lost: threads may wait side by side.
    pub(super) longest: Duration,
    /// All threads. More was not lost: threads may also wait for each other.
    pub(super) all: Duration,
}

/// Returns how much longer threads have run and waited since `before`. A new one began with
/// nothing.
pub(super) fn more(
    before: &BTreeMap<u32, ThreadTime>,
    now: &BTreeMap<u32, ThreadTime>,
) -> MoreTime {
    now.iter().fold(MoreTime::default(), |sum, (number, time)| {
        let before = before.get(number).copied().unwrap_or_default();
        let waited = time.waited.saturating_sub(before.waited);
        MoreTime {
            ran: sum.ran.max(time.ran.saturating_sub(before.ran)),
            longest: sum.longest.max(waited),
            all: sum.all.saturating_add(waited),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_words_are_read_and_nothing_else() {
        let micros = Duration::from_micros;
        let read = thread_time("158000 2000 3\n");
        assert_eq!(read, Some(ThreadTime { ran: micros(158), waited: micros(2) }));
        for other in ["", "5", "x 1 3", "1 x 3", "1 -4 3", "1 99999999999999999999 3"] {
            assert_eq!(thread_time(other), None, "{other}");
        }
        assert!(thread_times(Path::new("/proc/self/none")).is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_numbers_are_read(
            text in "[0-9a-z \\n-]{0,40}",
            (ran, waited) in any::<(u64, u64)>(),
        ) {
            let _ = thread_time(&text);
            let time =
                ThreadTime { ran: Duration::from_nanos(ran), waited: Duration::from_nanos(waited) };
            prop_assert_eq!(thread_time(&format!("{ran} {waited} 2")), Some(time));
        }
    }

    #[test]
    fn the_thread_that_did_most_and_all_threads_are_counted() {
        let ms = Duration::from_millis;
        let time = |ran, waited| ThreadTime { ran: ms(ran), waited: ms(waited) };
        let before = BTreeMap::from([(1, time(7, 50)), (2, time(0, 10)), (3, time(500, 900))]);
        let now = BTreeMap::from([(1, time(9, 55)), (2, time(1, 40)), (4, time(0, 20))]);
        let wanted = MoreTime { ran: ms(2), longest: ms(30), all: ms(55) };
        assert_eq!(more(&before, &now), wanted);
        // A number that was given anew counts from nothing, not backwards.
        assert_eq!(more(&before, &BTreeMap::from([(3, time(1, 5))])), MoreTime::default());
    }
}
