//! From what a place says of its power to its outlet and its power sense.

use jig_model::power::{PlacePower, PlaceSense, PowerDevice};
use jig_model::profile::BoardProfile;
use jig_model::protocol::PowerSense;
use jig_model::rig_file::Place;

use super::open::{find, open};
use super::sense::{outlet_sense, sense};
use super::{OutletPower, PowerContext, PowerError};

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
