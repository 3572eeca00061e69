//! The limits a profile has if it says nothing, and what a profile may say.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Limits;

/// A test report is some kilobytes. An emulated UART prints 0.3 to 0.6 MB/s when firmware
/// prints without end, so a flood is known after a few seconds, and a serial line at 115200
/// baud would need three minutes for as much.
const STORM_BYTES: u64 = 2 << 20;

/// One unrequested boot is a fact of its own, a second may follow from it (a watchdog that was left
/// running); at the third the board is looping.
const BOOT_LOOP: u32 = 3;

/// A lock-up ends the emulator within 11 ms of the fault, and a fault handler begins to
/// print within a few; this leaves room for a busy host and costs a run next to nothing.
const SETTLE: Duration = Duration::from_millis(50);

/// Bare-metal firmware prints its first byte within 0.2 s even on a busy host; nothing for 5 s is
/// worth a line on the user's terminal. It ends no run by itself.
const SILENCE: Duration = Duration::from_secs(5);

/// The widest values that can be meant. Less than a report is no flood, and more than 1 GiB
/// would fill disks.
pub(super) const STORM_RANGE: RangeInclusive<u64> = (4 << 10)..=(1 << 30);
/// With 0 every board loops; at 100 boots a run has long timed out.
pub(super) const BOOT_LOOP_RANGE: RangeInclusive<u32> = 1..=100;
/// Each run waits this long at its end, so it must stay short.
pub(super) const SETTLE_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(10);
/// Boots take seconds to minutes; a wait of over an hour is a mistake.
pub(crate) const WAIT_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3600);
/// A rig that has to be recovered more often than this in one run is out of order.
pub(super) const MAX_RECOVERIES_RANGE: RangeInclusive<u32> = 0..=20;
/// Less does not differ from a power cycle; what leaks for longer leaks for ever.
pub(super) const LONG_OFF_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(600);
/// From the slowest modem to the fastest USB serial adapters.
pub(crate) const BAUD_RANGE: RangeInclusive<u32> = 50..=12_000_000;

impl Default for Limits {
    fn default() -> Self {
        Self { flood_bytes: STORM_BYTES, boot_loop: BOOT_LOOP, settle: SETTLE, silence: SILENCE }
    }
}
