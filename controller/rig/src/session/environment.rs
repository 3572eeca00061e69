//! What a run is given: its place, the lab around it, and an observer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::profile::BoardProfile;
use jig_model::protocol::{BoxFuture, DriverFactory, HealthCheck, Host, ProcessLedger};
use jig_model::rig_file::{Canary, Place};
use jig_model::{ConsoleName, PlaceName, RunEvent};

use crate::console::ConsoleHandle;
use crate::health::{HealthState, HealthStore};
use crate::store::{Clock, PlaceLockError, Places, RunStore};

/// Receives what happens in a run, as it happens. Must not block.
pub trait Observer: Send + Sync {
    /// The run has a directory now.
    fn began(&self, run: &jig_model::RunId, dir: &Path);
    /// An event was recorded.
    fn event(&self, event: &RunEvent);
    /// A console is being captured; its log can be followed.
    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle);
}

/// What a run may use beside its own place.
#[derive(Clone)]
pub struct RunEnvironment<'a> {
    /// Where runs are kept.
    pub store: &'a RunStore,
    /// Other places with the same kind of board, to fail over to.
    pub spare: &'a [DutSpec<'a>],
    /// The rest of the lab.
    pub lab: &'a dyn LabServices,
    /// Where the health of places is kept.
    pub health: Option<&'a HealthStore>,
    /// What places keep between runs; known-good images are kept and found there.
    pub places: Option<&'a Places>,
    /// Makes the host that a run's commands run on.
    pub host: &'a (dyn Fn(Arc<dyn ProcessLedger>) -> Box<dyn Host> + Sync),
    /// Folder of the built image sets.
    pub image_sets: &'a Path,
    /// The program's version, for the record.
    pub version: &'a str,
    /// The clock of the run, if it is not the machine's.
    pub clock: Option<Arc<dyn Clock>>,
}

/// A place that a run can be made on.
#[derive(Clone)]
pub struct DutSpec<'a> {
    /// What it is made of.
    pub place: Arc<Place>,
    /// Its board, with the consoles it has there.
    pub profile: Arc<BoardProfile>,
    /// Binds it.
    pub factory: &'a dyn DriverFactory,
    /// Longest time that its power device may take for a power cycle, if it has one.
    pub outlet: Option<Duration>,
    /// The known-good image that the place declares; its path resolved.
    pub canary: Option<Canary>,
}

/// The checks at the start of a run. They are run beside it, so none of them may touch a board
/// or a device that the run is about to use.
#[derive(Default)]
pub struct StartChecks {
    /// Checks whose failure makes the place unhealthy, though a run may still work.
    pub should: Vec<Box<dyn HealthCheck>>,
    /// Checks without which no run works. They are made only if a check in `should` fails, because
    /// each of them is implied by one there.
    pub must: Vec<Box<dyn HealthCheck>>,
}

/// An error of the lab that concerns no run.
type LabError = Box<dyn std::error::Error + Send + Sync>;

/// Says why a run cannot move to another place.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The lab has no such place.
    #[error("there is no place {0}")]
    NoPlace(PlaceName),
    /// The place, or its board, cannot be read.
    #[error(transparent)]
    Unknown(LabError),
    /// The place is known to be unhealthy itself.
    #[error("place {place} is {state}: {why}")]
    Unfit {
        /// The place.
        place: PlaceName,
        /// Its health.
        state: HealthState,
        /// Why it is unhealthy; may hold any text.
        why: String,
    },
    /// Another process uses the place, or one that loses its power with it.
    #[error(transparent)]
    Held(#[from] PlaceLockError),
}

/// Says why the power of a hub was not cycled.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub has no power device.
    #[error("nothing switches the hub of {0}")]
    NotSwitched(PlaceName),
    /// Another process uses a board on it.
    #[error("hub {hub}")]
    InUse {
        /// The hub.
        hub: String,
        /// Which process uses which place.
        #[source]
        held: PlaceLockError,
    },
    /// The place cannot be read, or the device failed.
    #[error(transparent)]
    Failed(LabError),
}

/// The rest of the lab.
pub trait LabServices: Sync {
    /// Takes another place for this run, for as long as the lab value lives.
    ///
    /// # Errors
    /// Names the process that uses the place.
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), ClaimError>>;
    /// Returns how long it may take to cycle the power of a place's hub, if it can be.
    fn hub_timeout(&self, place: &PlaceName) -> Option<Duration>;
    /// Cycles the power of the hub of a place, if no other place on the hub is in use; returns what
    /// was done.
    ///
    /// # Errors
    /// Names the place that is in use, or says what the device reported.
    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, HubError>>;
    /// Returns the checks of what a place depends on: this host, its transports, its power device.
    fn host_checks(&self, place: &PlaceName) -> Vec<Box<dyn HealthCheck>>;
    /// Returns the checks at the start of a run on a place.
    fn start_checks(&self, _place: &PlaceName) -> StartChecks {
        StartChecks::default()
    }
}

/// A lab with nothing in it but the place itself.
pub struct NoLabServices;

impl LabServices for NoLabServices {
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), ClaimError>> {
        Box::pin(async move { Err(ClaimError::NoPlace(place.clone())) })
    }
    fn hub_timeout(&self, _place: &PlaceName) -> Option<Duration> {
        None
    }
    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, HubError>> {
        Box::pin(async move { Err(HubError::NotSwitched(place.clone())) })
    }
    fn host_checks(&self, _place: &PlaceName) -> Vec<Box<dyn HealthCheck>> {
        Vec::new()
    }
}
