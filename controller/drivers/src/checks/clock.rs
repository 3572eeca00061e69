//! The host's clock: whether it goes forward as the machine's own time does.
//!
//! # Design
//! The last look stands in a file, so that a jump between two commands is seen as well: the
//! time since the machine's start, the wall clock's then, and which start it was. The first
//! look after a start has nothing to compare with. After a jump was told once, the new time
//! counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jig_model::Cause;
use jig_model::protocol::HealthCheck;

use super::error::HostCheckError;
use super::{Found, SystemCheck, proc};

/// The kernel corrects a clock by no more than 500 parts in a million (adjtimex(2)); what is
/// more was set.
const SLEW: u32 = 2000;

/// Two clocks were looked at at once if no more than this has passed between.
const AT_ONCE: Duration = Duration::from_millis(50);

/// How often that is tried: a process that is held up each time is on no host that works.
const TRIES: u32 = 100;

/// Largest record that is read: it has three short words.
const MAX_RECORD: usize = 256;

/// Where the time comes from.
#[derive(Debug, Clone)]
pub struct ClockSources {
    /// The folder with `uptime` and `sys/kernel/random/boot_id`.
    pub proc: PathBuf,
    /// Tells the wall clock's time.
    pub wall: fn() -> SystemTime,
}

impl Default for ClockSources {
    fn default() -> Self {
        Self { proc: proc(), wall: SystemTime::now }
    }
}

/// Checks that the wall clock is within `skew` of where it should be since the last look,
/// which `record` keeps, and not before a time that has surely passed.
pub fn clock(
    record: PathBuf,
    skew: Duration,
    not_before: SystemTime,
    sources: ClockSources,
) -> Box<dyn HealthCheck> {
    SystemCheck::boxed("clock", Cause::RigUnhealthy, move || {
        look(&record, skew, not_before, &sources)
    })
}

/// One look at both clocks.
#[derive(Debug, PartialEq)]
struct Times {
    boot: String,
    up: Duration,
    wall: Duration,
}

fn look(record: &Path, skew: Duration, not_before: SystemTime, sources: &ClockSources) -> Found {
    let now = times(sources)?;
    let before = fs::read(record).ok().and_then(|text| read(&text));
    // Only a hint for the next look: without it that is a first look again.
    if let Err(error) = write(record, &now) {
        tracing::debug!(%error, path = %record.display(), "the look at the clock was not kept");
    }
    let earliest = not_before.duration_since(UNIX_EPOCH).unwrap_or_default();
    if now.wall + skew < earliest {
        let days = (earliest - now.wall).as_secs() / 86_400;
        return Err(HostCheckError::TooEarly { days });
    }
    let Some(before) = before.filter(|before| before.boot == now.boot && before.up <= now.up)
    else {
        return Ok("first look since the machine started".to_owned());
    };
    let passed = now.up - before.up;
    let expected = before.wall.saturating_add(passed);
    let off = now.wall.abs_diff(expected);
    let allowed = skew.saturating_add(passed / SLEW);
    let way = if now.wall < expected { "back" } else { "forward" };
    let (off, passed) = (off.as_secs_f64(), passed.as_secs_f64());
    if off > allowed.as_secs_f64() {
        return Err(HostCheckError::Jumped { way, off, passed });
    }
    Ok(format!("{off:.3} s off since the last look, {passed:.0} s ago"))
}

fn times(sources: &ClockSources) -> Result<Times, HostCheckError> {
    let text = |name: &str| {
        let path = sources.proc.join(name);
        fs::read_to_string(&path).map_err(|source| HostCheckError::Unreadable { path, source })
    };
    let up = || {
        let up = text("uptime")?;
        let up = up.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        let up = up.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        up.ok_or(HostCheckError::NoUptime)
    };
    let boot = text("sys/kernel/random/boot_id")?.trim().chars().take(64).collect();
    for _ in 0..TRIES {
        let before = up()?;
        let wall = (sources.wall)().duration_since(UNIX_EPOCH).unwrap_or_default();
        if up()?.saturating_sub(before) <= AT_ONCE {
            return Ok(Times { boot, up: before, wall });
        }
    }
    Err(HostCheckError::Busy)
}

fn read(text: &[u8]) -> Option<Times> {
    let text = std::str::from_utf8(text.get(..text.len().min(MAX_RECORD))?).ok()?;
    let mut words = text.split_ascii_whitespace();
    let boot = words.next()?.to_owned();
    let mut time = || Some(Duration::from_millis(words.next()?.parse().ok()?));
    Some(Times { boot, up: time()?, wall: time()? })
}

fn write(record: &Path, now: &Times) -> std::io::Result<()> {
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder)?;
    }
    // Several processes may look at once: each writes a file of its own, the last one stays.
    let mut fresh = record.as_os_str().to_owned();
    fresh.push(format!(".{}", std::process::id()));
    let text = format!("{} {} {}\n", now.boot, now.up.as_millis(), now.wall.as_millis());
    let kept = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, record));
    if kept.is_err() {
        // On a full disk there is one without its text.
        let _ = fs::remove_file(&fresh);
    }
    kept
}
