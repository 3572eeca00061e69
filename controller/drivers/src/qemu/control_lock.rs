//! The lock of who stops an emulated machine or lets it run.
//!
//! # Design
//! *Owner and fault watch take turns.* Both stop the machine and let it run, each by a channel of its
//! own, and the watch executes instructions meanwhile. So each holds the lock from its first command to
//! its last. What it guards is whether the owner has halted the machine, which the watch then leaves
//! standing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::monitor::MonitorError;

/// How long the fault watch may hold the machine. It copies registers and RAM in a few milliseconds,
/// on a host with far too much to do in a second; an emulator that answers nothing is given up by
/// the watch first.
const COPIED: Duration = Duration::from_secs(20);

/// Held by who stops a machine or lets it run.
#[derive(Debug, Clone, Default)]
pub struct ControlLock(Arc<Mutex<bool>>);

/// The turn of a watcher.
#[derive(Debug)]
pub struct ControlHeld<'a>(MutexGuard<'a, bool>);

impl ControlLock {
    /// Waits for the turn of a watcher, on a plain thread. The owner needs a few commands for its own.
    pub fn hold(&self) -> ControlHeld<'_> {
        ControlHeld(self.0.blocking_lock())
    }

    /// Waits for the turn of the owner; the guard tells whether it has halted the machine.
    pub(super) async fn own(&self) -> Result<MutexGuard<'_, bool>, MonitorError> {
        let late = |_| MonitorError::TimedOut { command: "the fault watch", after: COPIED };
        timeout(COPIED, self.0.lock()).await.map_err(late)
    }
}

impl ControlHeld<'_> {
    /// Tells whether the owner has halted the machine, which then stays so.
    pub fn is_halted(&self) -> bool {
        *self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn the_owner_waits_for_a_watcher_that_then_knows_of_the_halt() {
        let lock = ControlLock::default();
        let (holds, is_held) = channel();
        let (release, released) = channel();
        let watcher = std::thread::spawn({
            let lock = lock.clone();
            move || {
                let held = lock.hold();
                holds.send(held.is_halted()).unwrap();
                released.recv().unwrap();
                drop(held);
                released.recv().unwrap();
                lock.hold().is_halted()
            }
        });
        assert!(!is_held.recv().unwrap());
        let mut own = std::pin::pin!(lock.own());
        let at_once = tokio::select! { biased; _ = &mut own => true, () = async {} => false };
        assert!(!at_once, "the owner took a machine that the watcher holds");
        release.send(()).unwrap();
        *own.await.unwrap() = true;
        release.send(()).unwrap();
        assert!(watcher.join().unwrap());
    }
}
