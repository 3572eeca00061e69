//! What shows that a place of a board is well, and when to look.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::Choice;

/// Names the checks that a place can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckKind {
    /// The emulator starts and answers, or the debug port says what it is.
    Board,
    /// The other ends of the place's console transports are there and unused.
    Console,
    /// What the place is reached at over a network answers.
    Network,
    /// What switches the place's power can be asked.
    Power,
    /// The folder of the runs has room.
    Disk,
    /// The host has memory to spare.
    Memory,
    /// More files can be opened.
    Handles,
    /// The host's clock goes forward as it should.
    Clock,
}

impl CheckKind {
    /// Lists all of them.
    pub const ALL: &'static [Self] = &[
        Self::Board,
        Self::Console,
        Self::Network,
        Self::Power,
        Self::Disk,
        Self::Memory,
        Self::Handles,
        Self::Clock,
    ];

    /// Returns the stable text form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Console => "console",
            Self::Network => "network",
            Self::Power => "power",
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Handles => "handles",
            Self::Clock => "clock",
        }
    }
}

impl std::fmt::Display for CheckKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Choice for CheckKind {
    const WHAT: &'static str = "health check";
    const CHOICES: &'static [(&'static str, Self)] = &[
        ("board", Self::Board),
        ("console", Self::Console),
        ("network", Self::Network),
        ("power", Self::Power),
        ("disk", Self::Disk),
        ("memory", Self::Memory),
        ("handles", Self::Handles),
        ("clock", Self::Clock),
    ];
}

/// What shows that a place of a board is well, and when to look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HealthSpec {
    /// The checks, if the profile chooses; never empty.
    pub checks: Option<Vec<CheckKind>>,
    /// How often an idle place is looked at.
    pub interval: Duration,
    /// Bytes that must be free where runs are kept.
    pub free_disk: u64,
    /// Bytes of memory that programs could still get.
    pub free_memory: u64,
    /// How many files must still be free to be opened.
    pub free_handles: u64,
    /// How far the host's clock may be from where it should be.
    pub clock_skew: Duration,
}

impl HealthSpec {
    /// Returns these limits as far as a single run cannot do without them: a host that has less
    /// than a profile wants is not well, but runs still work there.
    #[must_use]
    pub fn barely(&self) -> Self {
        Self {
            free_disk: self.free_disk.min(BARE_DISK),
            free_memory: self.free_memory.min(BARE_MEMORY),
            free_handles: self.free_handles.min(BARE_HANDLES),
            ..self.clone()
        }
    }
}

/// Often enough to know of a place in the morning what broke at night, and seldom enough that
/// the start of an emulator, a tenth of a second, does not count.
const INTERVAL: Duration = Duration::from_secs(5 * 60);

/// A flood writes up to 1 GiB where a profile lets it; reports of a day take some megabytes.
const FREE_DISK: u64 = 512 << 20;

/// The largest emulated machine that is shipped has this much.
const FREE_MEMORY: u64 = 256 << 20;

/// A run with an emulator, its pipes, sockets and logs has some 40 files open.
const FREE_HANDLES: u64 = 64;

/// Images of some megabytes are copied into a run, and its logs and records are some hundred
/// kilobytes.
const BARE_DISK: u64 = 8 << 20;

/// An emulator of a small board takes some 40 MiB, Jig itself 12.
const BARE_MEMORY: u64 = 48 << 20;

/// What of [`FREE_HANDLES`] a run still opens once it has begun.
const BARE_HANDLES: u64 = 24;

/// Time lines are read by people, and certificates of servers are judged by the day.
const CLOCK_SKEW: Duration = Duration::from_secs(5);

/// More often, checks would keep a place from its runs; less often, their result would be too old
/// to use.
pub(super) const INTERVAL_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(10)..=Duration::from_secs(24 * 3600);
/// Less than the clock's own steps would always fail; more than an hour is no limit.
pub(super) const SKEW_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

impl Default for HealthSpec {
    fn default() -> Self {
        Self {
            checks: None,
            interval: INTERVAL,
            free_disk: FREE_DISK,
            free_memory: FREE_MEMORY,
            free_handles: FREE_HANDLES,
            clock_skew: CLOCK_SKEW,
        }
    }
}
