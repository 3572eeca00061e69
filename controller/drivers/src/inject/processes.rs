//! The emulator's process: learnt from the ledger that every child is entered in.
//!
//! A process is held by a descriptor, not by its number: a number may be another's by the
//! time a signal is sent.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use jig_model::protocol::ProcessLedger;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::injector::Injector;

/// A running emulator.
#[derive(Debug, Clone)]
pub(super) struct Emulator {
    pub(super) pid: i32,
    process: Arc<OwnedFd>,
}

impl Emulator {
    fn open(pid: i32) -> Option<Self> {
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        Some(Self { pid, process: Arc::new(process) })
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub(super) fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.process, signal) {
            tracing::debug!(%error, pid = self.pid, "the emulator got no signal");
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
        if self.program.as_deref() == Some(what)
            && let Some(emulator) = Emulator::open(pid)
        {
            self.injector.emulator_started(emulator);
        }
    }

    fn ended(&self, pid: i32) {
        self.injector.emulator_ended(pid);
        self.ledger.ended(pid);
    }
}
