//! Talks to the service manager that started this process (sd_notify(3)).
//!
//! Without one, all calls do nothing. Errors are logged and change nothing: the rig is served
//! whether its manager listens or not.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Longest status line, in characters: `systemctl status` shows one line.
const MOST_STATUS: usize = 200;

/// The service manager.
pub(super) struct ServiceManager {
    address: Option<SocketAddr>,
    status: String,
    /// Ticks twice in the time after which the manager takes this process for hung.
    beats: Option<Interval>,
}

impl ServiceManager {
    /// Finds the manager by the environment. Call within a tokio runtime.
    pub(super) fn of_environment() -> Self {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let address = name.and_then(|name| match address(&name) {
            Ok(address) => Some(address),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET names no socket");
                None
            }
        });
        let variable = |name| std::env::var(name).ok();
        let limit = watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        let beats = limit.filter(|_| address.is_some()).map(|limit| {
            let mut beats = interval_at(Instant::now(), limit / 2);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beats
        });
        Self { address, status: String::new(), beats }
    }

    /// Says that all sockets are bound and calls are answered, at the start or after a reload.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Says that the configuration is read anew; [`Self::ready`] ends that.
    pub(super) fn reloading(&self) {
        self.tell("RELOADING=1");
    }

    /// Says that this process is about to end, and how long that may take: the rig file may allow commands more
    /// time than the unit allows a stop.
    pub(super) fn stopping(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        self.tell(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={limit}"));
    }

    /// Describes the state of the service in one line; the same line is sent once.
    pub(super) fn status(&mut self, words: &str) {
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = words.chars().map(shown).take(MOST_STATUS).collect();
        if line != self.status {
            self.tell(&format!("STATUS={line}"));
            self.status = line;
        }
    }

    /// Waits until a sign of life is due and gives it; for ever if the manager wants none.
    /// Cancel-safe. To be awaited by the loop whose life it proves, and by no task of its own.
    pub(super) async fn beat(&mut self) {
        match &mut self.beats {
            Some(beats) => drop(beats.tick().await),
            None => std::future::pending().await,
        }
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, state: &str) {
        let Some(address) = &self.address else { return };
        let told = || {
            let socket = UnixDatagram::unbound()?;
            // A manager that does not read must not hang the service.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(state.as_bytes(), address)
        };
        if let Err(error) = told() {
            tracing::warn!(%error, "the service manager was not told {state}");
        }
    }
}

/// Reads the name of a socket: a path, or `@NAME` for one without a file.
fn address(name: &OsStr) -> std::io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

/// Reads the time after which a silent process counts as hung; none if it is another process that
/// is watched.
fn watchdog(limit_us: Option<String>, pid: Option<String>) -> Option<Duration> {
    let limit = limit_us?.parse().ok().filter(|us| *us > 0).map(Duration::from_micros)?;
    let ours = pid.is_none_or(|pid| pid.parse() == Ok(std::process::id()));
    ours.then_some(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_that_of_this_process() {
        let own = || Some(std::process::id().to_string());
        let limit = |text: &str, pid| watchdog(Some(text.to_owned()), pid);
        assert_eq!(limit("2000000", own()), Some(Duration::from_secs(2)));
        assert_eq!(limit("2000000", None), Some(Duration::from_secs(2)));
        for (text, pid) in [("2000000", Some("1".to_owned())), ("0", own()), ("x", own())] {
            assert_eq!(limit(text, pid), None, "{text}");
        }
        assert_eq!(watchdog(None, own()), None);
    }
}
