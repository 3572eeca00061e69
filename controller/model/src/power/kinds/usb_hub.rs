//! A USB hub whose ports switch.

use serde::Serialize;

use super::fields::text;
use crate::document::{Findings, Located};
use crate::power::OutletRule;
use crate::power::kind::{PowerKind, PowerTable, PowerTimes};
use crate::toml_table;

/// A USB hub whose ports switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsbHubPower {
    /// The hub, as the kernel names it: `1-1.4`, or `usb1` for a root hub.
    pub hub: String,
}

impl PowerKind for UsbHubPower {
    fn times(&self) -> PowerTimes {
        PowerTimes::new(0, 5, 2)
    }

    /// USB 3.2, 10.15.2.1: a hub has at most 15 ports; USB 2.0 hubs exist with more.
    fn outlets(&self) -> OutletRule {
        OutletRule::Numbers(1..=31)
    }
}

toml_table! {
    /// A USB hub whose ports switch. Needs Linux 6.0 and the right to write to sysfs.
    pub(crate) struct RawUsbHub {
        /// The hub as the kernel names it: "1-1.4", or "usb1" for a root hub.
        hub: String = required,
    }
}

impl PowerTable for RawUsbHub {
    type Kind = UsbHubPower;

    fn check(table: &Located<Self>, findings: &Findings) {
        let Some(hub) = &table.value.hub else { return };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-.".contains(&b);
        if hub.value.is_empty() || !hub.value.bytes().all(plain) || hub.value.contains("..") {
            let help = "write it as below /sys/bus/usb/devices: \"1-1.4\", or \"usb1\"";
            findings.add("rig::power-hub", hub.at(), "this names no USB hub", help);
        }
    }

    fn lower(&self) -> Option<UsbHubPower> {
        Some(UsbHubPower { hub: text(&self.hub)? })
    }
}
