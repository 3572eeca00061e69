//! Processes of the board, its emulator and those that reach its consoles: learnt from the ledger
//! that every child is entered in.
//!
//! A process is held by a descriptor, not by its number: a number may be another's by the
//! time a signal is sent.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use jig_model::protocol::ProcessLedger;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::injector::Injector;
use crate::serial::PROGRAM;

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
    fn open(pid: i32) -> Option<Self> {
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

/// Stands before the ledger of a run.
pub(super) struct WatchedLedger {
    pub(super) ledger: Arc<dyn ProcessLedger>,
    pub(super) injector: Injector,
    /// The emulator's program, if the board is emulated.
    pub(super) program: Option<String>,
}

impl ProcessLedger for WatchedLedger {
    fn started(&self, pid: i32, what: &str) {
        self.ledger.started(pid, what);
        let role = match what {
            PROGRAM => Role::Console,
            what if self.program.as_deref() == Some(what) => Role::Emulator,
            _ => return,
        };
        if let Some(process) = Process::open(pid) {
            self.injector.process_started(role, process);
        }
    }

    fn ended(&self, pid: i32) {
        self.injector.process_ended(pid);
        self.ledger.ended(pid);
    }
}
