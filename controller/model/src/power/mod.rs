//! Power devices: what switches the power of boards, as a rig file describes it.
//!
//! Owns the description of a device, as a rig file writes it and lowered, what hangs on it, the
//! presets of devices that many labs have, and which places an outlet disturbs. [`kinds`] says how
//! to add a kind. Refuses to switch
//! anything, and to hold a secret: it only knows where one is kept.

mod blast_radius;
mod device;
mod kind;
mod kinds;
mod outlet;
mod outlet_rule;
mod secret;
mod template;
mod web_address;

pub use blast_radius::BlastRadius;
pub use device::PowerDevice;
pub(crate) use kinds::RawPower;
pub use kinds::{
    CommandPower, GpioPower, HttpAuth, HttpCall, HttpMethod, HttpPower, IpmiPower, ManualPower,
    ModbusLink, ModbusPower, Parity, PduDaemonPower, PowerDriver, RedfishPower, RelayPower,
    RelayProtocol, SerialLine, SnmpAuth, SnmpPower, SnmpPrivacy, SnmpSecurity, SnmpVersion,
    TlsTrust, UsbHubPower,
};
pub use outlet::{Confirmation, PlacePower, PlaceSense, SenseOutlet};
pub use outlet_rule::OutletRule;
pub(crate) use secret::SECRET;
pub use secret::SecretSource;
pub use template::{PowerPart, power_parts};
pub use web_address::{WebAddress, WebAddressError, host_and_port};

#[cfg(test)]
mod tests;
