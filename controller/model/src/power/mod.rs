//! Power devices: what switches the power of boards, as a rig file describes it.
//!
//! Owns the lowered description of a device and of what hangs on it, the presets of devices
//! that many labs have, and who is disturbed when an outlet is switched. Refuses to switch
//! anything, and to hold a secret: it only knows where one is kept.

mod blast_radius;
mod device;
mod outlet;
mod preset;
mod secret;
mod template;
mod web_address;

pub use blast_radius::BlastRadius;
pub use device::{
    CommandPower, GpioPower, HttpAuth, HttpCall, HttpMethod, HttpPower, IpmiPower, ManualPower,
    ModbusLink, ModbusPower, Parity, PduDaemonPower, PowerDevice, PowerDriver, RedfishPower,
    RelayPower, RelayProtocol, SerialLine, SnmpAuth, SnmpPower, SnmpPrivacy, SnmpSecurity,
    SnmpVersion, TlsTrust, UsbHubPower,
};
pub use outlet::{Confirmation, OutletRule, PlacePower, PlaceSense, SenseOutlet};
pub(crate) use preset::{HttpFacts, SnmpFacts};
pub use preset::{HttpPreset, SnmpPreset};
pub use secret::SecretSource;
pub use template::{PowerPart, power_parts};
pub use web_address::{WebAddress, WebAddressError, host_and_port};

#[cfg(test)]
mod tests;
