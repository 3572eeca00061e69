//! From the description of a device to the device.

use jig_model::DeviceName;
use jig_model::power::{PowerDevice, PowerDriver};

use super::context::{OpenOutlets as _, PowerContext};
use super::{OpenDevice, PowerError};

/// Opens a device: reads its secrets, and touches nothing else. Call within a tokio runtime.
///
/// # Errors
/// A secret cannot be had, or a pattern or a certificate cannot be used.
pub fn open(about: &PowerDevice, context: &PowerContext) -> Result<OpenDevice, PowerError> {
    let outlets = match about.driver.clone() {
        PowerDriver::Command(kind) => kind.open(context),
        PowerDriver::Http(kind) => kind.open(context),
        PowerDriver::Pdudaemon(kind) => kind.open(context),
        PowerDriver::Relay(kind) => kind.open(context),
        PowerDriver::Modbus(kind) => kind.open(context),
        PowerDriver::Snmp(kind) => kind.open(context),
        PowerDriver::Redfish(kind) => kind.open(context),
        PowerDriver::Ipmi(kind) => kind.open(context),
        PowerDriver::Gpio(kind) => kind.open(context),
        PowerDriver::UsbHub(kind) => kind.open(context),
        PowerDriver::Manual(kind) => kind.open(context),
    }?;
    let outlets = match &context.between {
        Some(between) => between(outlets),
        None => outlets,
    };
    Ok(OpenDevice::start(about, outlets, &context.locks))
}

/// Finds a device of the rig.
pub(super) fn find<'d>(
    name: &DeviceName,
    devices: &'d [PowerDevice],
) -> Result<&'d PowerDevice, PowerError> {
    let found = devices.iter().find(|device| device.name == *name);
    found.ok_or_else(|| PowerError::unusable(name.to_string(), "the rig has no such device"))
}
