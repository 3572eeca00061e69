//! The outlet of a place with whoever sees its power beside it.

use std::sync::Arc;

use jig_drivers::power::{OutletPower, open_witnessed};
use jig_model::Fault;
use jig_model::power::PlaceWitness;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BindContext, DriverFactory as _, NoLedger, NoSink, PowerWitness};
use jig_model::rig_file::Place;

use super::{Switch, context, failure};
use crate::catalogue::Catalogue;
use crate::failure::Failure;
use crate::wire_up;

/// Opens what switches a place, and its witness. Touches nothing yet. Call within a tokio
/// runtime; whoever asks the witness holds the place.
pub(super) fn outlet_of(
    catalogue: &Catalogue,
    switch: &Switch<'_>,
) -> Result<OutletPower, Failure> {
    let (place, profile) = catalogue.place(switch.place)?;
    let driver = &switch.device.driver;
    let debug_port = match place.second_witness(driver) {
        PlaceWitness::DebugPort => debug_port(&place, &profile)?,
        PlaceWitness::Outlet(_) | PlaceWitness::Console | PlaceWitness::Nobody => None,
    };
    let opened = open_witnessed(
        switch.power,
        switch.devices,
        &context(catalogue.places().root()),
        (&profile, &place),
        debug_port,
    );
    opened.map_err(|error| failure(&error, switch))
}

/// Binds a board that is only asked whether it answers.
fn debug_port(
    place: &Place,
    profile: &Arc<BoardProfile>,
) -> Result<Option<Box<dyn PowerWitness>>, Failure> {
    let bound = wire_up::Parts.bind(BindContext {
        profile: Arc::clone(profile),
        place: Arc::new(place.clone()),
        sink: Arc::new(NoSink),
        // To be asked leaves no evidence.
        evidence: std::env::temp_dir(),
        images: Catalogue::images_dir(),
        ledger: Arc::new(NoLedger),
    });
    let failed = |error: &jig_model::protocol::DriverError| {
        Failure::of(error.cause.fault().unwrap_or(Fault::Lab), error)
    };
    Ok(bound.map_err(|error| failed(&error))?.witness)
}
