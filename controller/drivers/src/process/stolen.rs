//! How long the processors of this host stood still because its hypervisor ran something else.
//!
//! # Design
//! *Stolen time looks like time that was had.* A virtual machine's scheduler does not see that its
//! processor was taken away, so a thread's time of running goes on meanwhile. The kernel counts it per
//! processor, in ticks. Which thread it was taken from is not told, so the processor that lost most
//! stands for the process.

use std::path::Path;
use std::time::Duration;

/// Unit of the times in `/proc/stat`. (Linux, `USER_HZ`, the same on all architectures that matter.)
const TICK: Duration = Duration::from_millis(10);

/// Position of the stolen time in a processor's row, its name counted. (`proc(5)`: user, nice, system,
/// idle, iowait, irq, softirq, steal.)
const COLUMN: usize = 8;

/// Counts the time stolen from this host.
#[derive(Debug)]
pub(super) struct StolenTime {
    /// Ticks of each processor; empty on a host that has had none stolen since it was started. Such a
    /// one is taken to be no guest: reading the file costs a host with many processors some
    /// milliseconds.
    ticks: Vec<u64>,
}

impl StolenTime {
    /// Begins to count.
    pub(super) fn begin() -> Self {
        let ticks = read();
        let is_guest = ticks.iter().any(|&ticks| ticks > 0);
        Self { ticks: if is_guest { ticks } else { Vec::new() } }
    }

    /// Returns how much was stolen from the processor that lost most since the last call.
    pub(super) fn take(&mut self) -> Duration {
        if self.ticks.is_empty() {
            return Duration::ZERO;
        }
        let before = std::mem::replace(&mut self.ticks, read());
        most_stolen(&before, &self.ticks)
    }
}

fn read() -> Vec<u64> {
    stolen_ticks(&std::fs::read_to_string(Path::new("/proc/stat")).unwrap_or_default())
}

/// Reads the ticks stolen from each processor.
fn stolen_ticks(stat: &str) -> Vec<u64> {
    let is_cpu = |line: &&str| line.starts_with("cpu");
    let rows = stat.lines().take_while(is_cpu).filter(|line| !line.starts_with("cpu "));
    let ticks = |row: &str| row.split_ascii_whitespace().nth(COLUMN)?.parse().ok();
    rows.map(|row| ticks(row).unwrap_or_default()).collect()
}

/// Returns the largest growth. A processor that was switched off or on moves the rows: they are not
/// compared then.
fn most_stolen(before: &[u64], now: &[u64]) -> Duration {
    if before.len() != now.len() {
        return Duration::ZERO;
    }
    let grown = before.iter().zip(now).map(|(before, now)| now.saturating_sub(*before));
    TICK.saturating_mul(u32::try_from(grown.max().unwrap_or_default()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_processor_that_lost_most_counts() {
        let stat = "cpu  9 9 9 9 9 9 9 30 0 0\ncpu0 1 2 3 4 5 6 7 10 0 0\ncpu1 1 2 3 4 5 6 7 20 0 0\nintr 5 1 2 3 4 5 6 7 8\n";
        assert_eq!(stolen_ticks(stat), [10, 20]);
        assert_eq!(most_stolen(&[10, 20], &[12, 21]), Duration::from_millis(20));
        assert_eq!(most_stolen(&[10, 20], &[9, 20]), Duration::ZERO);
        assert_eq!(most_stolen(&[10, 20], &[90]), Duration::ZERO);
        // Of a kernel that counts none.
        assert_eq!(stolen_ticks("cpu  1 2\ncpu0 1 2 3 4\n"), [0]);
    }

    #[test]
    fn a_host_without_stolen_time_is_not_asked_again() {
        let mut none = StolenTime { ticks: Vec::new() };
        assert_eq!(none.take(), Duration::ZERO);
        assert!(none.ticks.is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(stat in "(cpu[0-9]? ?[0-9 x-]{0,30}\n){0,4}", before in prop::collection::vec(any::<u64>(), 0..4)) {
            most_stolen(&before, &stolen_ticks(&stat));
        }
    }
}
