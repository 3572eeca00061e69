//! The kinds of power devices, one file each, and the list of them.
//!
//! # Design
//! *A new kind* is one file here, one line in the list below, and one file and one line in the
//! driver (`jig_drivers::power`). The file has the description that is handed to the driver
//! ([`PowerKind`]: usual times, names of outlets, whether it reads back, the programs it needs) and
//! the table of the rig file ([`PowerTable`]: keys with their documentation, checks, lowering).
//! Reader, JSON Schema, the check for exactly one kind, `jig doctor` and the kinds' names follow
//! from the list. The compiler demands the driver; `power::tests` demands an example of the kind
//! and its row in `guide/power.md`.

/// Declares which word of a rig file stands for which value.
macro_rules! choices {
    ($kind:ident, $what:literal: $($word:literal = $value:ident),+) => {
        impl $crate::document::Choice for $kind {
            const WHAT: &'static str = $what;
            const CHOICES: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }
    };
}

mod command;
mod fields;
mod gpio;
mod http;
mod ipmi;
mod manual;
mod modbus;
mod pdudaemon;
mod redfish;
mod relay;
mod snmp;
mod usb_hub;

use std::time::Duration;

use serde::Serialize;

pub use self::command::CommandPower;
use self::command::RawCommand;
pub use self::fields::{Parity, SerialLine, TlsTrust};
pub use self::gpio::GpioPower;
use self::gpio::RawGpio;
use self::http::RawHttp;
pub use self::http::{HttpAuth, HttpCall, HttpMethod, HttpPower};
pub use self::ipmi::IpmiPower;
use self::ipmi::RawIpmi;
pub use self::manual::ManualPower;
use self::manual::RawManual;
use self::modbus::RawModbus;
pub use self::modbus::{ModbusLink, ModbusPower};
pub use self::pdudaemon::PduDaemonPower;
use self::pdudaemon::RawPduDaemon;
use self::redfish::RawRedfish;
pub use self::redfish::RedfishPower;
use self::relay::RawRelay;
pub use self::relay::{RelayPower, RelayProtocol};
use self::snmp::RawSnmp;
pub use self::snmp::{SnmpAuth, SnmpPower, SnmpPrivacy, SnmpSecurity, SnmpVersion};
use self::usb_hub::RawUsbHub;
pub use self::usb_hub::UsbHubPower;
use super::OutletRule;
use super::kind::{PowerKind, PowerTable, PowerTimes};
use crate::document::Findings;
use crate::{DeviceName, toml_table};

/// Declares the kinds: documentation, key in a rig file, variant, and the types of both.
macro_rules! power_kinds {
    ($($(#[doc = $doc:literal])+ $key:ident: $variant:ident($kind:ident, $table:ident),)+) => {
        /// What a power device is.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum PowerDriver {
            $($(#[doc = $doc])+ $variant($kind),)+
        }

        impl PowerDriver {
            /// All kinds, as rig files name them.
            pub const KINDS: &'static [&'static str] = &[$(stringify!($key)),+];

            /// Returns the kind, as rig files name it.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($key),)+
                }
            }

            fn declared(&self) -> &dyn PowerKind {
                match self {
                    $(Self::$variant(kind) => kind,)+
                }
            }
        }

        toml_table! {
            /// A device that switches the power of boards. It has exactly one table that says what
            /// it is, such as `[power.snmp]`.
            pub(crate) struct RawPower {
                /// Its name; places say it.
                name: DeviceName = required,
                /// Least time between two commands to it; as is usual for its kind if missing.
                min_interval: Duration = optional,
                /// How long a board stays off in a power cycle; "2s" if missing.
                off_time: Duration = optional,
                /// How long one command may take; as is usual for its kind if missing.
                timeout: Duration = optional,
                /// How long after a command it may take until the device reports the new state; as
                /// is usual for its kind if missing.
                settle: Duration = optional,
                $($(#[doc = $doc])+ $key: $table = optional,)+
            }
        }

        impl RawPower {
            /// Returns the kinds that it says it is.
            pub(crate) fn kinds(&self) -> Vec<&'static str> {
                let said = [$((stringify!($key), self.$key.is_some())),+];
                said.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect()
            }

            /// Checks the tables of its kinds.
            pub(crate) fn check_kinds(&self, findings: &Findings) {
                $(if let Some(table) = &self.$key {
                    $table::check(table, findings);
                })+
            }

            /// Lowers the table of its kind; nothing where something of it was reported.
            pub(crate) fn driver(&self) -> Option<PowerDriver> {
                $(if let Some(table) = &self.$key {
                    return table.value.lower().map(PowerDriver::$variant);
                })+
                None
            }
        }
    };
}

power_kinds! {
    /// A program switches it.
    command: Command(CommandPower, RawCommand),
    /// It has a web interface.
    http: Http(HttpPower, RawHttp),
    /// A pdudaemon switches it.
    pdudaemon: Pdudaemon(PduDaemonPower, RawPduDaemon),
    /// A relay board on a serial port.
    relay: Relay(RelayPower, RawRelay),
    /// A relay board that speaks Modbus; an outlet is the address of a coil.
    modbus: Modbus(ModbusPower, RawModbus),
    /// It speaks SNMP.
    snmp: Snmp(SnmpPower, RawSnmp),
    /// A management controller that speaks Redfish; an outlet is the id of a system, or
    /// the path of anything that has a reset or power action.
    redfish: Redfish(RedfishPower, RawRedfish),
    /// A management controller that speaks IPMI (needs the program ipmitool).
    ipmi: Ipmi(IpmiPower, RawIpmi),
    /// Lines of a GPIO chip; an outlet is the number or the name of a line.
    gpio: Gpio(GpioPower, RawGpio),
    /// A USB hub whose ports switch; an outlet is the number of a port.
    usb_hub: UsbHub(UsbHubPower, RawUsbHub),
    /// A person who is asked to switch.
    manual: Manual(ManualPower, RawManual),
}

impl PowerDriver {
    /// Tells whether such a device can be asked for the state of an outlet.
    pub fn reads_back(&self) -> bool {
        self.declared().reads_back()
    }

    /// Returns how its outlets are called.
    pub fn outlets(&self) -> OutletRule {
        self.declared().outlets()
    }

    /// Returns the programs that it is switched by.
    pub fn programs(&self) -> Vec<&str> {
        self.declared().programs()
    }

    pub(crate) fn times(&self) -> PowerTimes {
        self.declared().times()
    }
}
