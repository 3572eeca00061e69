//! The outlet of a place with whoever sees its power beside it.

use std::sync::Arc;

use jig_drivers::power::{OutletPower, open_sensed};
use jig_model::Fault;
use jig_model::power::PlaceSense;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BindContext, NoLedger, NoSink, PowerSense};
use jig_model::rig_file::Place;

use super::{Switch, context, failure};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::wire_up;

/// Opens what switches a place, and its power sense. Touches nothing yet. Call within a tokio
/// runtime; whoever asks the power sense holds the place.
pub(super) fn outlet_of(
    catalogue: &Catalogue,
    switch: &Switch<'_>,
) -> Result<OutletPower, Failure> {
    let (place, profile) = catalogue.place(switch.place)?;
    let driver = &switch.device.driver;
    let debug_port = match switch.power.second_sense(driver) {
        PlaceSense::DebugPort => debug_port(&place, &profile)?,
        PlaceSense::Outlet(_) | PlaceSense::Console | PlaceSense::Nobody => None,
    };
    let opened = open_sensed(
        switch.power,
        switch.devices,
        &context(catalogue.places().root()),
        (&profile, &place.resource),
        debug_port,
    );
    opened.map_err(|error| failure(&error, switch))
}

/// Binds a board that is only asked whether it answers.
fn debug_port(
    place: &Place,
    profile: &Arc<BoardProfile>,
) -> Result<Option<Box<dyn PowerSense>>, Failure> {
    let bound = wire_up::factory(profile, &place.resource)?.bind(BindContext {
        profile: Arc::clone(profile),
        resource: place.resource.clone(),
        sink: Arc::new(NoSink),
        // To be asked leaves no evidence.
        evidence: std::env::temp_dir(),
        images: Catalogue::images_dir(),
        ledger: Arc::new(NoLedger),
    });
    let failed = |error: &jig_model::protocol::DriverError| {
        Failure::of(error.cause.fault().unwrap_or(Fault::Lab), error)
    };
    Ok(bound.map_err(|error| failed(&error))?.sense)
}
