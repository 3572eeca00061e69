//! The time of a session.
//!
//! # Design
//! *Setting the clock of the host moves no session.* The clock of the host is read once, when a session
//! begins. From then on its time is counted by how long the host has been up, which cannot be set. The journal
//! keeps the two readings of that moment, so that all processes of the same start of the host count alike:
//! the time that is left, and the end of a confirmation.
//!
//! *A restart of the host, and another host, have another count.* The clock of the host is read once more
//! then. It never leads back behind the last row.

use std::fmt::Debug;
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The clocks at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// The clock of the host: milliseconds since 1970, UTC. It may jump.
    pub wall_ms: u64,
    /// Milliseconds since the host started. They only grow.
    pub running_ms: u64,
    /// Names the start of the host that `running_ms` counts from.
    pub boot: String,
}

/// Tells the time to a session.
pub trait SessionClock: Debug + Send + Sync {
    /// Reads the clocks.
    fn read(&self) -> ClockReading;
}

/// The clocks of this host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostSessionClock;

/// What is read once in a process: the name of the start of the host, and how long it had been up.
struct HostStart {
    boot: String,
    up: Duration,
    read_at: Instant,
}

static START: LazyLock<HostStart> = LazyLock::new(|| {
    let read_at = Instant::now();
    let text = |path| fs::read_to_string(path).ok();
    let boot = text("/proc/sys/kernel/random/boot_id").map(|boot| boot.trim().to_owned());
    let up = text("/proc/uptime").and_then(|text| {
        let seconds = text.split_ascii_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    });
    match boot.filter(|boot| !boot.is_empty()).zip(up) {
        Some((boot, up)) => HostStart { boot, up, read_at },
        // Counted for this process alone: no other one has this name.
        None => {
            let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let boot = format!("process {} of {}", std::process::id(), wall.as_nanos());
            HostStart { boot, up: Duration::ZERO, read_at }
        }
    }
});

impl SessionClock for HostSessionClock {
    fn read(&self) -> ClockReading {
        let HostStart { boot, up, read_at } = &*START;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let running = up.saturating_add(read_at.elapsed());
        ClockReading { wall_ms: millis(wall), running_ms: millis(running), boot: boot.clone() }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of a session at one moment. `first` are the clocks when its time began to be counted.
pub(super) fn session_ms(first: &ClockReading, now: &ClockReading) -> u64 {
    first.wall_ms.saturating_add(now.running_ms.saturating_sub(first.running_ms))
}
