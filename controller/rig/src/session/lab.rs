//! What a run may use of the lab beside its own place.

use std::sync::Arc;
use std::time::Duration;

use jig_model::PlaceName;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BoxFuture, DriverFactory, HealthCheck};
use jig_model::rig_file::{Canary, Place};

/// A place that a run can be made on.
#[derive(Clone)]
pub struct DutSpec<'a> {
    /// What it is made of.
    pub place: Arc<Place>,
    /// Its board, with the consoles it has there.
    pub profile: Arc<BoardProfile>,
    /// Binds it.
    pub factory: &'a dyn DriverFactory,
    /// How long something of the lab may take to cycle its power, if anything switches it.
    pub outlet: Option<Duration>,
    /// The image that is known to work there, where somebody says so; its path resolved.
    pub canary: Option<Canary>,
}

/// The checks at the start of a run. They are run beside it, so none of them may touch a board
/// or a device that the run is about to use.
#[derive(Default)]
pub struct StartChecks {
    /// Without these the place is not well, but a run may work.
    pub should: Vec<Box<dyn HealthCheck>>,
    /// Without these no run works. Asked only where one of the others fails: each of these is
    /// implied by one of them.
    pub must: Vec<Box<dyn HealthCheck>>,
}

/// The rest of the lab.
pub trait LabServices: Sync {
    /// Takes another place for this run, for as long as the lab value lives.
    ///
    /// # Errors
    /// Says who has it.
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), String>>;
    /// Returns how long it may take to cycle the power of a place's hub, if it can be.
    fn hub_timeout(&self, place: &PlaceName) -> Option<Duration>;
    /// Takes the power of the hub that a place hangs on and gives it back, if nobody else is
    /// disturbed by it; says what was done.
    ///
    /// # Errors
    /// Says who would be disturbed, or what the device said.
    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, String>>;
    /// Returns the checks of what a place stands on: the machine that Jig runs on, its transports,
    /// its switch.
    fn host_checks(&self, place: &PlaceName) -> Vec<Box<dyn HealthCheck>>;
    /// Returns the checks at the start of a run on a place.
    fn start_checks(&self, _place: &PlaceName) -> StartChecks {
        StartChecks::default()
    }
}

/// A lab with nothing in it but the place itself.
pub struct NoLabServices;

impl LabServices for NoLabServices {
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { Err(format!("there is no place {place}")) })
    }
    fn hub_timeout(&self, _place: &PlaceName) -> Option<Duration> {
        None
    }
    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move { Err(format!("nothing switches the hub of {place}")) })
    }
    fn host_checks(&self, _place: &PlaceName) -> Vec<Box<dyn HealthCheck>> {
        Vec::new()
    }
}
