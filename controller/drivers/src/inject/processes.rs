//! Processes of the board: its emulator and those that reach its consoles.
//!
//! A process is held by a descriptor, not by its number: a number may be another's by the
//! time a signal is sent.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What a process is to the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It runs the board.
    Emulator,
    /// It reaches a console.
    Console,
}

/// A running process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: i32,
    process: Arc<OwnedFd>,
}

impl Process {
    pub(super) fn open(pid: i32) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, process: Arc::new(process) })
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub(super) fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.process, signal) {
            tracing::debug!(%error, pid = self.pid, "the process got no signal");
        }
    }
}
