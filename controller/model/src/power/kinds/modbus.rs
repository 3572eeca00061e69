//! A relay board that speaks Modbus.

use serde::Serialize;

use super::fields::{check_address, check_baud, check_port, joined, line};
use crate::document::{Findings, Located};
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::power::{OutletRule, Parity, SerialLine, host_and_port};
use crate::toml_table;

/// How a Modbus device is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModbusLink {
    /// By TCP: `HOST:PORT`.
    Tcp(String),
    /// By a serial line (RTU).
    Serial(SerialLine),
}

/// A device that speaks Modbus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModbusPower {
    /// How it is reached.
    pub link: ModbusLink,
    /// Its unit number.
    pub unit: u8,
}

impl PowerKind for ModbusPower {
    fn times(&self) -> PowerTimes {
        PowerTimes::new(50, 5, 2)
    }

    /// Coils have 16 bits of address.
    fn outlets(&self) -> OutletRule {
        OutletRule::Numbers(0..=65_535)
    }
}

toml_table! {
    /// A device that speaks Modbus: it has either an `address` or a `port`.
    pub(crate) struct RawModbus {
        /// Where it listens: "HOST" or "HOST:PORT".
        address: String = optional,
        /// The serial port, by a path that stays: "/dev/serial/by-id/...".
        port: String = optional,
        /// Bits per second; 9600 if missing.
        baud: u32 = optional,
        /// The parity bit; none if missing.
        parity: Parity = optional,
        /// Its unit number; 1 if missing.
        unit: u8 = optional,
    }
}

impl PowerTable for RawModbus {
    type Kind = ModbusPower;

    fn check(modbus: &Located<Self>, findings: &Findings) {
        let raw = &modbus.value;
        check_address(raw.address.as_ref(), findings);
        check_port(raw.port.as_ref(), findings);
        check_baud(raw.baud.as_ref(), findings);
        let message = match (&raw.address, &raw.port) {
            (None, None) => "nothing says where this device is",
            (Some(_), Some(_)) => "this device is in two places",
            (Some(_), None) | (None, Some(_)) => return,
        };
        let help = "give one of `address = \"HOST:502\"` and `port = \"/dev/serial/by-id/...\"`";
        findings.add("rig::power-modbus", modbus.at(), message, help);
    }

    fn lower(&self) -> Option<ModbusPower> {
        let parity = self.parity.as_ref().map_or(Parity::None, |parity| parity.value);
        let link = match &self.address {
            Some(address) => {
                // IANA has given 502 to it.
                let (host, port) = host_and_port(&address.value, 502)?;
                ModbusLink::Tcp(joined(&host, port))
            }
            None => ModbusLink::Serial(line(&self.port, &self.baud, parity)?),
        };
        Some(ModbusPower { link, unit: self.unit.as_ref().map_or(1, |unit| unit.value) })
    }
}
