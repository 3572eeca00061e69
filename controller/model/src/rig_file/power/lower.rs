//! From the tables of power devices and outlets to both. Checks have run before.

use std::time::Duration;

use super::raw::{RawPlacePower, RawSense, SenseWord};
use crate::DeviceName;
use crate::document::Located;
use crate::power::{OutletRule, PlacePower, PlaceSense, PowerDevice, RawPower, SenseOutlet};

/// How long a board stays off. Two seconds empty the capacitors of most; what needs more
/// says so.
const OFF_TIME: Duration = Duration::from_secs(2);

/// Lowers a device; nothing where something of it was reported.
pub(in super::super) fn lower_device(raw: &RawPower, origin: &str) -> Option<PowerDevice> {
    let name = raw.name.as_ref()?.value.clone();
    let driver = raw.driver()?;
    let usual = driver.times();
    let said = |time: &Option<Located<Duration>>| time.as_ref().map(|time| time.value);
    Some(PowerDevice {
        name,
        min_interval: said(&raw.min_interval).unwrap_or(usual.min_interval),
        off_time: said(&raw.off_time).unwrap_or(OFF_TIME),
        timeout: said(&raw.timeout).unwrap_or(usual.timeout),
        settle: said(&raw.settle).unwrap_or(usual.settle),
        driver,
        origin: origin.to_owned(),
    })
}

/// Lowers what a place says of its power.
pub(in super::super) fn lower_outlet(
    raw: RawPlacePower,
    devices: &super::Devices,
) -> Option<PlacePower> {
    let device = raw.device?.value;
    let outlet = outlet_of(&device, raw.outlet, devices);
    let sense = match raw.sense {
        Some(sense) => Some(match sense.value {
            RawSense::Word(SenseWord::DebugPort) => PlaceSense::DebugPort,
            RawSense::Word(SenseWord::Console) => PlaceSense::Console,
            RawSense::Word(SenseWord::Absent) => PlaceSense::Absent,
            RawSense::Outlet(other) => {
                let device = other.device?.value;
                let outlet = outlet_of(&device, other.outlet, devices);
                PlaceSense::Outlet(SenseOutlet { device, outlet })
            }
        }),
        None => None,
    };
    Some(PlacePower { device, outlet, off_time: raw.off_time.map(|time| time.value), sense })
}

/// Lowers an outlet that resets a place.
pub(in super::super) fn lower_reset_outlet(
    device: Located<DeviceName>,
    outlet: Option<Located<String>>,
    off_time: Option<Duration>,
    devices: &super::Devices,
) -> Option<PlacePower> {
    let device = device.value;
    let outlet = outlet_of(&device, outlet, devices);
    Some(PlacePower { device, outlet, off_time, sense: None })
}

/// Gives an outlet its one name, or two places on it would not know of each other.
fn outlet_of(
    device: &DeviceName,
    outlet: Option<Located<String>>,
    devices: &super::Devices,
) -> String {
    let outlet = outlet.map(|outlet| outlet.value).unwrap_or_default();
    match devices.get(device) {
        Some(Some(OutletRule::Numbers(_) | OutletRule::Dotted)) => {
            let plain = |part: &str| match part.trim_start_matches('0') {
                "" => "0".to_owned(),
                digits => digits.to_owned(),
            };
            outlet.split('.').map(plain).collect::<Vec<_>>().join(".")
        }
        _ => outlet,
    }
}
