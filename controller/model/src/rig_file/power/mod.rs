//! Power devices and outlets in a rig file: as they are written, checked and lowered.

mod checks;
mod lower;
mod raw;

use std::collections::BTreeMap;

pub(super) use checks::{
    check_device, check_hub_outlet, check_outlet, check_reset_outlet, sense_word,
};
pub(super) use lower::{lower_device, lower_outlet, lower_reset_outlet};
pub(super) use raw::{RawPlacePower, SenseWord};

use crate::DeviceName;
use crate::power::{OutletRule, RawPower};

/// The power devices of all files, and how they call their outlets, where that is known.
pub(super) type Devices = BTreeMap<DeviceName, Option<OutletRule>>;

/// Returns what a list of devices tells to the places that use them.
pub(super) fn devices<'a>(list: impl IntoIterator<Item = &'a RawPower>) -> Devices {
    let rule = |power: &RawPower| {
        let name = power.name.as_ref()?.value.clone();
        Some((name, lower_device(power, "").map(|device| device.driver.outlets())))
    };
    list.into_iter().filter_map(rule).collect()
}
