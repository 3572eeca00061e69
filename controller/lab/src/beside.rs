//! What a run may use of the rig beside its own place.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jig_model::access::AccessRight;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::{BoxFuture, CheckReport, DriverFactory, HealthCheck};
use jig_model::rig_file::{Canary, Place};
use jig_model::{PlaceName, chain};
use jig_rig::health::PlaceHealth;
use jig_rig::session::{ClaimError, DutSpec, HubError, StartChecks};
use jig_rig::store::{PlaceLock, PlaceLockError};

use crate::bind::PlaceParts;
use crate::hold::claim;
use crate::power::OutletInRun;
use crate::{CatalogueError, Lab, health_subject};

/// A place with its parts, and the outlet that a run switches.
pub(crate) struct BoundPlace {
    pub(crate) place: Arc<Place>,
    pub(crate) profile: Arc<BoardProfile>,
    pub(crate) parts: PlaceParts,
    pub(crate) outlet: Option<OutletInRun>,
    pub(crate) canary: Option<Canary>,
}

impl BoundPlace {
    /// Returns the place as a run takes it.
    pub(crate) fn dut_spec<'a>(&self, factory: &'a dyn DriverFactory) -> DutSpec<'a> {
        DutSpec {
            place: Arc::clone(&self.place),
            profile: Arc::clone(&self.profile),
            factory,
            outlet: self.outlet.as_ref().map(|outlet| outlet.takes),
            canary: self.canary.clone(),
        }
    }
}

impl Lab {
    /// Binds a place for a run.
    pub(crate) fn bind(&self, name: &PlaceName) -> Result<BoundPlace, CatalogueError> {
        let (place, profile) = self.catalogue.place(name)?;
        let (canary, outlet) = (self.catalogue.canary(&place), self.outlet_in_run(name));
        Ok(BoundPlace { place: Arc::new(place), profile, parts: self.parts(), outlet, canary })
    }

    /// Finds the places that can stand in for one: the same board, on which as much can be done
    /// and seen.
    pub(crate) fn spares(&self, here: &BoundPlace) -> Result<Vec<BoundPlace>, CatalogueError> {
        let (place, board) = (&here.place, &here.profile);
        let others = self.catalogue.rig.places.iter().filter(|other| {
            other.name != place.name
                && other.board == place.board
                && stands_in(other, place, board)
                && self.catalogue.may(AccessRight::Use, &other.name)
        });
        others.map(|other| self.bind(&other.name)).collect()
    }
}

/// Tells whether a run at one place can go on at another.
fn stands_in(other: &Place, here: &Place, board: &BoardProfile) -> bool {
    let deploy = |place: &Place| board.deploy_at(place).map(|deploy| deploy.method());
    let consoles = board.consoles.iter().filter(|console| console.kind == ConsoleKind::Uart);
    other.is_emulated() == here.is_emulated()
        && other.has_probe() == here.has_probe()
        && deploy(other) == deploy(here)
        && (other.starts_boots() || !here.starts_boots())
        && consoles
            .map(|console| &console.name)
            .all(|name| here.console(name).is_none() || other.console(name).is_some())
}

/// The rig beside the place of a run.
pub(crate) struct RigBeside<'l> {
    lab: &'l Lab,
    /// What is the run's for as long as it lasts: its place, those it has moved to, and those
    /// that lose their power with them.
    held: Mutex<Vec<PlaceLock>>,
    /// Whether the board is one that another process holds.
    board_of_other: bool,
}

impl<'l> RigBeside<'l> {
    pub(crate) fn new(lab: &'l Lab, board_of_other: bool) -> Self {
        Self { lab, held: Mutex::default(), board_of_other }
    }

    /// Takes in what is the run's for as long as it lasts.
    pub(crate) fn keep(&self, mut locks: Vec<PlaceLock>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).append(&mut locks);
    }

    fn has(&self, place: &PlaceName) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().any(|lock| lock.place() == place)
    }

    /// Locks places that no other process uses, or none of them.
    async fn lock(&self, mut names: Vec<PlaceName>) -> Result<Vec<PlaceLock>, PlaceLockError> {
        // In one order for all, so that no two wait for each other.
        names.sort();
        names.retain(|name| !self.has(name));
        let mut locked = Vec::new();
        for name in &names {
            locked.push(claim(&self.lab.catalogue, name).await?);
        }
        Ok(locked)
    }
}

/// Refuses a place that is known to be no better than the one to be left.
fn fit(lab: &Lab, place: &Place) -> Result<(), ClaimError> {
    // Without the notes nothing is known against it.
    let store = lab.health_store().ok();
    let now = store.and_then(|store| store.of_by(&health_subject(place), &place.name).ok());
    match now.filter(|now| !now.state.usable()) {
        Some(now) => {
            let PlaceHealth { state, why, .. } = now;
            Err(ClaimError::Unfit { place: place.name.clone(), state, why })
        }
        None => Ok(()),
    }
}

impl jig_rig::session::LabServices for RigBeside<'_> {
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), ClaimError>> {
        Box::pin(async move {
            let known = self.lab.catalogue.place(place);
            let (known, _) = known.map_err(|error| ClaimError::Unknown(error.into()))?;
            fit(self.lab, &known)?;
            if known.is_emulated() {
                // Runs on it share nothing: each has an emulator of its own.
                return Ok(());
            }
            let mut names = vec![place.clone()];
            names.extend(self.lab.outlet_in_run(place).into_iter().flat_map(|o| o.also));
            self.keep(self.lock(names).await?);
            Ok(())
        })
    }

    fn hub_timeout(&self, place: &PlaceName) -> Option<Duration> {
        let rig = &self.lab.catalogue.rig;
        let hub = rig.hub_of(rig.place(place.as_str()).ok()?)?;
        let device = rig.power_device(&hub.power.device)?;
        Some(hub.power.cycle_timeout(device))
    }

    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, HubError>> {
        Box::pin(async move {
            let rig = &self.lab.catalogue.rig;
            let place =
                rig.place(place.as_str()).map_err(|error| HubError::Failed(error.into()))?;
            let Some(hub) = rig.hub_of(place) else {
                return Err(HubError::NotSwitched(place.name.clone()));
            };
            // Held until the hub is back, so that no run loses its board.
            let held = self.lock(rig.hub_neighbours(place)).await;
            let _held = held.map_err(|held| HubError::InUse { hub: hub.name.to_string(), held })?;
            self.lab.cycle_power_of_hub(hub).await
        })
    }

    fn host_checks(&self, place: &PlaceName) -> Vec<Box<dyn HealthCheck>> {
        let unchecked =
            |why: String| -> Vec<Box<dyn HealthCheck>> { vec![Box::new(Unchecked(why))] };
        match self.lab.catalogue.place(place) {
            Err(error) => unchecked(chain(&error)),
            Ok((place, profile)) => self
                .lab
                .stands_on(&place, &profile)
                .unwrap_or_else(|error| unchecked(chain(&error))),
        }
    }

    fn start_checks(&self, place: &PlaceName) -> StartChecks {
        if self.board_of_other {
            // Its holder has checked it, and has its ports open.
            return StartChecks::default();
        }
        let known = self.lab.catalogue.place(place).ok();
        known.map_or_else(StartChecks::default, |(place, profile)| {
            self.lab.at_start(&place, &profile)
        })
    }
}

/// A check that could not even be made, for this reason.
struct Unchecked(String);

impl HealthCheck for Unchecked {
    fn name(&self) -> String {
        "place".to_owned()
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        let (check, detail) = (self.name(), self.0.clone());
        Box::pin(async move { CheckReport { check, ok: false, detail } })
    }
}
