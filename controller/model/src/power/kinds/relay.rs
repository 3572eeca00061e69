//! A relay board on a serial port.

use serde::Serialize;

use super::fields::{check_baud, check_port, line};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{OutletRule, Parity, SerialLine};
use crate::toml_table;

/// What a relay board on a serial port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayProtocol {
    /// Four bytes a command, no answer (`LCUS-1` to `LCUS-8` and their many copies).
    Lcus,
    /// Lines of text, with read-back (boards by Numato Lab).
    Numato,
}
choices!(RelayProtocol, "protocol of relay boards": "lcus" = Lcus, "numato" = Numato);

/// A relay board on a serial port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelayPower {
    /// The line.
    pub line: SerialLine,
    /// What it speaks.
    pub protocol: RelayProtocol,
}

impl PowerKind for RelayPower {
    fn times(&self) -> PowerTimes {
        PowerTimes::new(50, 5, 2)
    }

    fn reads_back(&self) -> bool {
        self.protocol == RelayProtocol::Numato
    }

    fn outlets(&self) -> OutletRule {
        match self.protocol {
            // The protocol has one byte for the channel; 1 is the first.
            RelayProtocol::Lcus => OutletRule::Numbers(1..=254),
            RelayProtocol::Numato => OutletRule::Channel,
        }
    }
}

toml_table! {
    /// A relay board on a serial port.
    pub(crate) struct RawRelay {
        /// The port, by a path that stays: "/dev/serial/by-id/...".
        port: String = required,
        /// What it speaks.
        protocol: RelayProtocol = required,
        /// Bits per second; 9600 if missing.
        baud: u32 = optional,
    }
}

impl PowerTable for RawRelay {
    type Kind = RelayPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        check_port(table.value.port.as_ref(), findings);
        check_baud(table.value.baud.as_ref(), findings);
    }

    fn lower(&self) -> Option<RelayPower> {
        Some(RelayPower {
            line: line(&self.port, &self.baud, Parity::None)?,
            protocol: self.protocol.as_ref()?.value,
        })
    }
}
