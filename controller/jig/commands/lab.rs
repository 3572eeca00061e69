//! What a run may use of the rig beside its own place.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jig_drivers::power::OutletFactory;
use jig_model::PlaceName;
use jig_model::protocol::{BoxFuture, CheckReport, DriverFactory, HealthCheck};
use jig_model::rig_file::{Place, Resource};
use jig_rig::session::{Lab, Seat, StartChecks};
use jig_rig::store::PlaceLock;

use super::health::{self, at_start, stands_on};
use super::power::{InRun, cycle_hub};
use super::turn;
use crate::args::Common;
use crate::catalogue::Catalogue;
use crate::failure::{Failure, chain};
use crate::wire_up;

/// The other places with a board like that of one place, ready to be moved to.
pub(crate) struct Spares<'c> {
    outlets: Vec<(PlaceName, Option<InRun<'c>>)>,
}

impl<'c> Spares<'c> {
    /// Finds the places of the rig that can stand in for one: the same board on the same kind
    /// of resource, an image going onto it in the same way.
    pub(crate) fn of(catalogue: &'c Catalogue, place: &PlaceName) -> Result<Self, Failure> {
        let (here, board) = catalogue.place(place)?;
        let same = |resource: &Resource| {
            std::mem::discriminant(resource) == std::mem::discriminant(&here.resource)
                && board.deploy_on(resource) == board.deploy_on(&here.resource)
        };
        let others = catalogue.rig.places.iter().filter(|other| {
            other.name != here.name && other.board == here.board && same(&other.resource)
        });
        let outlets = others.map(|other| (other.name.clone(), InRun::of(catalogue, &other.name)));
        Ok(Self { outlets: outlets.collect() })
    }

    /// Puts each place's outlet before its board.
    pub(crate) fn powered<'a>(
        &'a self,
        catalogue: &Catalogue,
    ) -> Result<Vec<Powered<'a>>, Failure> {
        let powered = |(place, outlet): &'a (PlaceName, Option<InRun<'c>>)| {
            let (place, board) = catalogue.place(place)?;
            let factory = wire_up::factory(&board, &place.resource)?;
            let outlet = outlet.as_ref().map(|outlet| outlet.before(factory));
            Ok(Powered { factory, outlet })
        };
        self.outlets.iter().map(powered).collect()
    }

    /// Returns the places as a run takes them.
    pub(crate) fn seats<'a>(
        &self,
        catalogue: &Catalogue,
        powered: &'a [Powered<'a>],
    ) -> Result<Vec<Seat<'a>>, Failure> {
        let seat =
            |((name, outlet), powered): (&(PlaceName, Option<InRun<'c>>), &'a Powered<'a>)| {
                let (place, profile) = catalogue.place(name)?;
                Ok(Seat {
                    canary: catalogue.canary(&place),
                    place: place.name,
                    resource: place.resource,
                    profile,
                    factory: powered.factory(),
                    outlet: outlet.as_ref().map(|outlet| outlet.takes),
                })
            };
        self.outlets.iter().zip(powered).map(seat).collect()
    }
}

/// A board, behind its outlet if it has one.
pub(crate) struct Powered<'a> {
    factory: &'static dyn DriverFactory,
    outlet: Option<OutletFactory<'a>>,
}

impl Powered<'_> {
    fn factory(&self) -> &dyn DriverFactory {
        match &self.outlet {
            Some(outlet) => outlet,
            None => self.factory,
        }
    }
}

/// The rig beside the place of a run.
pub(crate) struct RigLab<'c> {
    catalogue: &'c Catalogue,
    common: &'c Common,
    /// What is the run's for as long as it lasts: its place, those it has moved to, and those
    /// that lose their power with them.
    held: Mutex<Vec<PlaceLock>>,
}

impl<'c> RigLab<'c> {
    pub(crate) fn new(catalogue: &'c Catalogue, common: &'c Common) -> Self {
        Self { catalogue, common, held: Mutex::default() }
    }

    /// Takes in what is the run's for as long as it lasts.
    pub(crate) fn keep(&self, mut locks: Vec<PlaceLock>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).append(&mut locks);
    }

    fn has(&self, place: &PlaceName) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().any(|lock| lock.place() == place)
    }

    /// Takes places that nobody else uses, or none of them.
    async fn lock(&self, mut names: Vec<PlaceName>) -> Result<Vec<PlaceLock>, String> {
        // In one order for all, so that no two wait for each other.
        names.sort();
        names.retain(|name| !self.has(name));
        let places = self.catalogue.places();
        let mut locked = Vec::new();
        for name in &names {
            locked.push(turn::claim(&places, name).await.map_err(|error| chain(&error))?);
        }
        Ok(locked)
    }
}

/// Refuses a place that is known to be no better than the one to be left.
fn fit(catalogue: &Catalogue, place: &Place) -> Result<(), String> {
    let store = health::open(catalogue);
    // Without the store nothing is known against it.
    let now = store.ok().and_then(|store| store.of_by(&health::policy(place), &place.name).ok());
    match now.filter(|now| !now.state.usable()) {
        Some(now) => Err(format!("place {} is {}: {}", place.name, now.state, now.why)),
        None => Ok(()),
    }
}

impl Lab for RigLab<'_> {
    fn claim<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let (known, _) = self.catalogue.place(place).map_err(|failure| failure.message)?;
            fit(self.catalogue, &known)?;
            if matches!(known.resource, Resource::Emulator(_)) {
                // Runs on it share nothing: each has an emulator of its own.
                return Ok(());
            }
            let mut names = vec![place.clone()];
            names.extend(InRun::of(self.catalogue, place).into_iter().flat_map(|o| o.also));
            self.keep(self.lock(names).await?);
            Ok(())
        })
    }

    fn hub_within(&self, place: &PlaceName) -> Option<Duration> {
        let rig = &self.catalogue.rig;
        let hub = rig.hub_of(rig.place(place.as_str()).ok()?)?;
        let device = rig.power_device(&hub.power.device)?;
        Some(hub.power.cycle_within(device))
    }

    fn cycle_hub<'a>(&'a self, place: &'a PlaceName) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let rig = &self.catalogue.rig;
            let place = rig.place(place.as_str()).map_err(|error| error.to_string())?;
            let Some(hub) = rig.hub_of(place) else {
                return Err(format!("nothing switches the hub of {}", place.name));
            };
            // Held until the hub is back: nobody loses a board under a test.
            let held = self.lock(rig.hub_neighbours(place)).await;
            let _held = held.map_err(|why| format!("hub {}: {why}", hub.name))?;
            cycle_hub(self.catalogue, hub).await
        })
    }

    fn host_checks(&self, place: &PlaceName) -> Vec<Box<dyn HealthCheck>> {
        let checks = self
            .catalogue
            .place(place)
            .and_then(|(place, profile)| stands_on(self.catalogue, self.common, &place, &profile));
        checks.unwrap_or_else(|failure| {
            let check: Box<dyn HealthCheck> = Box::new(Unchecked(failure.message));
            vec![check]
        })
    }

    fn start_checks(&self, place: &PlaceName) -> StartChecks {
        let known = self.catalogue.place(place).ok();
        known.map_or_else(StartChecks::default, |(place, profile)| {
            at_start(self.catalogue, self.common, &place, &profile)
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
