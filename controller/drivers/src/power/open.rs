//! From the description of a device to the device.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::DeviceName;
use jig_model::power::{PlacePower, PlaceSense, PowerDevice, PowerDriver};
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BoxFuture, PowerSense, ProcessLedger};
use jig_model::rig_file::Place;

use super::command::command_outlets;
use super::gpio::GpioOutlets;
use super::http::http_outlets;
use super::ipmi::IpmiOutlets;
use super::manual::ManualOutlets;
use super::modbus::ModbusOutlets;
use super::pdudaemon::PduDaemonOutlets;
use super::redfish::RedfishOutlets;
use super::relay::RelayOutlets;
use super::sense::{outlet_sense, sense};
use super::snmp::SnmpOutlets;
use super::usb_hub::UsbHubOutlets;
use super::{Device, OutletPower, Outlets, PowerError};

/// Asks a person to do something.
pub trait AskHuman: Send + Sync {
    /// Asks, and returns when they say that it is done. Dropping the future takes the
    /// question back.
    ///
    /// # Errors
    /// Says why nobody can be asked, or that they said no.
    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// There is nobody to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHuman;

impl AskHuman for NoHuman {
    fn ask<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("there is no terminal to ask on".to_owned()) })
    }
}

/// Stands between a device's owner and its driver.
pub type Between = Arc<dyn Fn(Box<dyn Outlets>) -> Box<dyn Outlets> + Send + Sync>;

/// What devices need of their surroundings.
#[derive(Clone)]
pub struct PowerContext {
    /// Folder in which processes of this user meet; created if it is missing.
    pub locks: PathBuf,
    /// Where child processes are accounted for.
    pub ledger: Arc<dyn ProcessLedger>,
    /// Who is asked where a person switches.
    pub human: Arc<dyn AskHuman>,
    /// Where the kernel shows its devices: `/sys`.
    pub sysfs: PathBuf,
    /// What stands between the device that switches a place and its driver, if anything does:
    /// tests and faults on purpose. Senses are asked without it.
    pub between: Option<Between>,
}

/// Opens a device: reads its secrets, and touches nothing else. Call within a tokio runtime.
///
/// # Errors
/// A secret cannot be had, or a pattern or a certificate cannot be used.
pub fn open(about: &PowerDevice, context: &PowerContext) -> Result<Device, PowerError> {
    let outlets: Box<dyn Outlets> = match about.driver.clone() {
        PowerDriver::Command(command) => {
            Box::new(command_outlets(command, Arc::clone(&context.ledger))?)
        }
        PowerDriver::Http(http) => Box::new(http_outlets(http)?),
        PowerDriver::PduDaemon(daemon) => Box::new(PduDaemonOutlets::new(daemon)?),
        PowerDriver::Relay(relay) => Box::new(RelayOutlets(relay)),
        PowerDriver::Modbus(modbus) => Box::new(ModbusOutlets(modbus)),
        PowerDriver::Snmp(snmp) => Box::new(SnmpOutlets::new(snmp)?),
        PowerDriver::Redfish(redfish) => Box::new(RedfishOutlets::new(&redfish)?),
        PowerDriver::Ipmi(ipmi) => Box::new(IpmiOutlets::new(ipmi, Arc::clone(&context.ledger))?),
        PowerDriver::Gpio(gpio) => Box::new(GpioOutlets::new(&gpio)),
        PowerDriver::UsbHub(hub) => Box::new(UsbHubOutlets::new(hub, context.sysfs.clone())),
        PowerDriver::Manual(manual) => {
            Box::new(ManualOutlets::new(manual, Arc::clone(&context.human)))
        }
    };
    let outlets = match &context.between {
        Some(between) => between(outlets),
        None => outlets,
    };
    Ok(Device::start(about, outlets, &context.locks))
}

/// Opens what a place says of its power: its outlet, and the outlet that is its power sense, if one
/// is. `devices` are those of the rig. Call within a tokio runtime.
///
/// # Errors
/// As [`open`], or a device is not among those of the rig.
pub fn open_outlet(
    place: &PlacePower,
    devices: &[PowerDevice],
    context: &PowerContext,
) -> Result<OutletPower, PowerError> {
    let about = find(&place.device, devices)?;
    let power = OutletPower::new(open(about, context)?, about, place);
    let Some(PlaceSense::Outlet(sense)) = &place.sense else { return Ok(power) };
    Ok(power.with_sense(Box::new(outlet_sense(sense, devices, context)?)))
}

/// Opens the outlet of a place and its power sense: which one, and the board's own debug port, if
/// it has one. Call within a tokio runtime.
///
/// # Errors
/// As [`open_outlet`].
pub fn open_sensed(
    place: &PlacePower,
    devices: &[PowerDevice],
    context: &PowerContext,
    board: (&BoardProfile, &Place),
    (who, debug_port): (&PlaceSense, Option<Box<dyn PowerSense>>),
) -> Result<OutletPower, PowerError> {
    let about = find(&place.device, devices)?;
    let power = OutletPower::new(open(about, context)?, about, place);
    let sense = sense(who, devices, context, board, debug_port)?;
    Ok(match sense {
        Some(sense) => power.with_sense(sense),
        None => power,
    })
}

/// Finds a device of the rig.
pub(super) fn find<'d>(
    name: &DeviceName,
    devices: &'d [PowerDevice],
) -> Result<&'d PowerDevice, PowerError> {
    let found = devices.iter().find(|device| device.name == *name);
    found.ok_or_else(|| PowerError::unusable(name.to_string(), "the rig has no such device"))
}
