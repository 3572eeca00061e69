//! Power devices of a rig, one type per kind.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::{OutletRule, SecretSource, WebAddress};
use crate::DeviceName;
use crate::pattern::Pattern;

/// One device that switches the power of boards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PowerDevice {
    /// Its name; unique in the rig.
    pub name: DeviceName,
    /// What it is and how to reach it.
    pub driver: PowerDriver,
    /// Least time between the end of one command to it and the next. Cheap devices drop
    /// commands that come faster.
    pub min_interval: Duration,
    /// How long a board stays off in a power cycle.
    pub off_time: Duration,
    /// How long one command may take.
    pub timeout: Duration,
    /// How long after a command the device may take until it reports the new state.
    pub settle: Duration,
    /// The file it stands in.
    pub origin: String,
}

/// What a power device is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerDriver {
    /// A program switches it.
    Command(CommandPower),
    /// It has a web interface.
    Http(HttpPower),
    /// A `pdudaemon` switches it.
    #[serde(rename = "pdudaemon")]
    PduDaemon(PduDaemonPower),
    /// A relay board on a serial port.
    Relay(RelayPower),
    /// A relay board that speaks Modbus; an outlet is a coil.
    Modbus(ModbusPower),
    /// It speaks SNMP.
    Snmp(SnmpPower),
    /// A management controller that speaks Redfish.
    Redfish(RedfishPower),
    /// A management controller that speaks IPMI.
    Ipmi(IpmiPower),
    /// Lines of a GPIO chip of this host.
    Gpio(GpioPower),
    /// A USB hub whose ports switch.
    UsbHub(UsbHubPower),
    /// A person.
    Manual(ManualPower),
}

impl PowerDriver {
    /// Returns the kind, as rig files name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command(_) => "command",
            Self::Http(_) => "http",
            Self::PduDaemon(_) => "pdudaemon",
            Self::Relay(_) => "relay",
            Self::Modbus(_) => "modbus",
            Self::Snmp(_) => "snmp",
            Self::Redfish(_) => "redfish",
            Self::Ipmi(_) => "ipmi",
            Self::Gpio(_) => "gpio",
            Self::UsbHub(_) => "usb_hub",
            Self::Manual(_) => "manual",
        }
    }

    /// Tells whether such a device can be asked for the state of an outlet.
    pub fn reads_back(&self) -> bool {
        match self {
            Self::Command(CommandPower { status, .. }) => status.is_some(),
            Self::Http(HttpPower { status, .. }) => status.is_some(),
            Self::Relay(RelayPower { protocol, .. }) => *protocol == RelayProtocol::Numato,
            Self::PduDaemon(_) | Self::Manual(_) => false,
            Self::Modbus(_)
            | Self::Snmp(_)
            | Self::Redfish(_)
            | Self::Ipmi(_)
            | Self::Gpio(_)
            | Self::UsbHub(_) => true,
        }
    }

    /// Returns how its outlets are called.
    pub fn outlets(&self) -> OutletRule {
        match self {
            Self::Ipmi(_) => OutletRule::One,
            // The protocol has one byte for the channel; 1 is the first.
            Self::Relay(RelayPower { protocol: RelayProtocol::Lcus, .. }) => {
                OutletRule::Numbers(1..=254)
            }
            Self::Relay(RelayPower { protocol: RelayProtocol::Numato, .. }) => OutletRule::Channel,
            // Coils have 16 bits of address.
            Self::Modbus(_) => OutletRule::Numbers(0..=65_535),
            Self::Snmp(_) => OutletRule::Dotted,
            // USB 3.2, 10.15.2.1: a hub has at most 15 ports; USB 2.0 hubs exist with more.
            Self::UsbHub(_) => OutletRule::Numbers(1..=31),
            Self::Command(_)
            | Self::Http(_)
            | Self::PduDaemon(_)
            | Self::Redfish(_)
            | Self::Gpio(_)
            | Self::Manual(_) => OutletRule::Word,
        }
    }
}

/// A program that switches outlets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandPower {
    /// Program and arguments, with `{outlet}` and `{state}`. Never empty. Exit code 0 means
    /// that it was done.
    pub set: Vec<String>,
    /// Program and arguments that print the state, with `{outlet}`.
    pub status: Option<Vec<String>>,
    /// The words that stand for on and off in `{state}`.
    pub words: (String, String),
    /// What the printed state looks like when it is on, and when it is off.
    pub says: (Pattern, Pattern),
}

/// How a web interface wants to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// To ask.
    Get,
    /// To submit.
    Post,
    /// To replace.
    Put,
}

/// How somebody proves who they are to a web interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpAuth {
    /// Not at all, or by the placeholders of a template.
    None,
    /// Name and password in a header (RFC 7617).
    Basic,
    /// A hash of them (RFC 7616, SHA-256 only).
    Digest,
}

/// One request to a web interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpCall {
    /// How.
    pub method: HttpMethod,
    /// Path and query, with placeholders; begins with `/`.
    pub path: String,
    /// Body, with placeholders. Sent as JSON.
    pub body: Option<String>,
}

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsTrust {
    /// Those that this host believes.
    #[default]
    System,
    /// Those of this PEM file, and those that one of them has signed.
    File(PathBuf),
    /// Any: who listens in learns the password.
    Anything,
}

/// A device with a web interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HttpPower {
    /// Where it is.
    pub url: WebAddress,
    /// Switches an outlet.
    pub set: HttpCall,
    /// Asks for the state of an outlet.
    pub status: Option<HttpCall>,
    /// The words that stand for on and off in `{state}`.
    pub words: (String, String),
    /// What the answer to `status` looks like when it is on, and when it is off.
    pub says: (Pattern, Pattern),
    /// An answer that means that it was not done, although the device calls it a success.
    pub refusal: Option<Pattern>,
    /// How to prove who one is.
    pub auth: HttpAuth,
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretSource>,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

/// A `pdudaemon` that switches a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PduDaemonPower {
    /// Where it listens.
    pub url: WebAddress,
    /// The device, by the name the daemon knows it by.
    pub hostname: String,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

/// A serial line to a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SerialLine {
    /// The port's path.
    pub port: PathBuf,
    /// Bits per second.
    pub baud: u32,
    /// The parity bit.
    pub parity: Parity,
}

/// Parity of a serial line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parity {
    /// None.
    None,
    /// Even.
    Even,
    /// Odd.
    Odd,
}

/// What a relay board on a serial port speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayProtocol {
    /// Four bytes a command, no answer (`LCUS-1` to `LCUS-8` and their many copies).
    Lcus,
    /// Lines of text, with read-back (boards by Numato Lab).
    Numato,
}

/// A relay board on a serial port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelayPower {
    /// The line.
    pub line: SerialLine,
    /// What it speaks.
    pub protocol: RelayProtocol,
}

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

/// Versions of SNMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum SnmpVersion {
    /// The first.
    #[serde(rename = "1")]
    V1,
    /// The second, with communities.
    #[serde(rename = "2c")]
    V2c,
    /// The third, with users.
    #[serde(rename = "3")]
    V3,
}

/// Hash functions that sign SNMP version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpAuth {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// Ciphers of SNMP version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpPrivacy {
    /// DES.
    Des,
    /// AES with 128 bits.
    Aes,
    /// AES with 256 bits, as most devices derive its key.
    Aes256,
}

/// Who one is to an SNMP device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnmpSecurity {
    /// Somebody who knows the community.
    Community {
        /// Version 1 instead of 2c.
        first: bool,
        /// The community; `private`, which devices are delivered with, without one.
        community: Option<SecretSource>,
    },
    /// A user.
    User {
        /// The name.
        name: String,
        /// How messages are signed, and with which password.
        auth: Option<(SnmpAuth, SecretSource)>,
        /// How messages are encrypted, and with which password.
        privacy: Option<(SnmpPrivacy, SecretSource)>,
    },
}

/// A device that speaks SNMP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnmpPower {
    /// Where it listens: `HOST:PORT`.
    pub address: String,
    /// Who one is to it.
    pub security: SnmpSecurity,
    /// Object that switches an outlet, with `{outlet}`.
    pub set: String,
    /// The numbers that mean on and off there.
    pub set_values: (i64, i64),
    /// Object that tells the state of an outlet, with `{outlet}`.
    pub read: String,
    /// The numbers that mean on and off there.
    pub read_values: (i64, i64),
}

/// A management controller that speaks Redfish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RedfishPower {
    /// Where it is.
    pub url: WebAddress,
    /// The user's name.
    pub user: Option<String>,
    /// The password.
    pub password: Option<SecretSource>,
    /// Which certificates are believed.
    pub tls: TlsTrust,
}

/// A management controller that speaks IPMI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IpmiPower {
    /// The host.
    pub host: String,
    /// Its UDP port.
    pub port: u16,
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: SecretSource,
    /// Cipher suite.
    pub cipher_suite: u8,
}

/// Lines of a GPIO chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpioPower {
    /// The chip's device, such as `/dev/gpiochip0`.
    pub chip: PathBuf,
    /// Whether a low level switches on.
    pub active_low: bool,
}

/// A USB hub whose ports switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsbHubPower {
    /// The hub, as the kernel names it: `1-1.4`, or `usb1` for a root hub.
    pub hub: String,
}

/// A person who switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManualPower {
    /// What they are told beside the outlet, such as where the switch is.
    pub hint: Option<String>,
}
