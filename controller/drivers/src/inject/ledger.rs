//! The ledger from which the injector learns of the board's processes: every child is entered in it.

use std::sync::Arc;

use jig_model::protocol::ProcessLedger;

use super::injector::Injector;
use super::processes::{Process, Role};
use crate::serial::PROGRAM;

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
