//! What each kind of power device declares.

use std::time::Duration;

use super::OutletRule;
use crate::document::{Findings, FromToml, Located};

/// What is usual for a kind of device, where the rig file does not say it.
pub(crate) struct PowerTimes {
    /// Least time between two commands.
    pub(crate) min_interval: Duration,
    /// How long one command may take.
    pub(crate) timeout: Duration,
    /// How long after a command the device may take until it reports the new state.
    pub(crate) settle: Duration,
}

impl PowerTimes {
    pub(super) fn new(min_interval_ms: u64, timeout_s: u64, settle_s: u64) -> Self {
        Self {
            min_interval: Duration::from_millis(min_interval_ms),
            timeout: Duration::from_secs(timeout_s),
            settle: Duration::from_secs(settle_s),
        }
    }
}

/// A lowered device of one kind.
pub(super) trait PowerKind {
    /// Returns the times that are usual for it.
    fn times(&self) -> PowerTimes;

    /// Tells whether it can be asked for the state of an outlet.
    fn reads_back(&self) -> bool {
        true
    }

    /// Returns how its outlets are called.
    fn outlets(&self) -> OutletRule {
        OutletRule::Word
    }

    /// Returns the programs that it is switched by.
    fn programs(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// The table of one kind in a rig file.
pub(super) trait PowerTable: FromToml {
    /// What it describes.
    type Kind: PowerKind;

    /// Checks what must hold beyond the types of its values.
    fn check(table: &Located<Self>, findings: &Findings) {
        let _ = (table, findings);
    }

    /// Lowers it; nothing where something of it was reported.
    fn lower(&self) -> Option<Self::Kind>;
}
