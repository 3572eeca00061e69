//! What switches the power of places: an outlet of the lab.
//!
//! A command that switches an outlet holds the places on it: the own one, and each other that
//! shares it, so that no test loses its power.

mod command;
mod held;
mod in_run;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use jig_drivers::power::{OutletPower, PowerContext, PowerError, open_outlet, open_sensed};
use jig_model::power::{PlacePower, PlaceSense, PowerDevice};
use jig_model::protocol::{NoLedger, PowerState};
use jig_model::rig_file::Place;
use jig_model::{DeviceName, Fault, PlaceName};
use jig_rig::store::PlaceLockError;
use tokio::time::timeout;

pub use self::command::PowerCommandError;
pub(crate) use self::in_run::OutletInRun;
pub use self::in_run::confirmation_words;
use crate::{BindError, CatalogueError, Lab};

/// How long an outlet is asked about a board that did not answer: a failure is told soon, even
/// without a better word for it.
const SECOND_LOOK: Duration = Duration::from_secs(10);

/// What switches a place.
#[derive(Debug, Clone)]
pub struct PlaceSwitch {
    /// The place.
    pub place: PlaceName,
    /// Its outlet.
    pub power: PlacePower,
    /// The device of the outlet.
    pub device: PowerDevice,
    /// The other places on the outlet, in the order of the rig file.
    pub shared_with: Vec<PlaceName>,
}

impl PlaceSwitch {
    /// Names the outlet: `outlet 3 of bench-pdu`.
    pub fn outlet(&self) -> String {
        self.power.words()
    }

    /// Returns how long the board stays off in a power cycle.
    pub fn off_time(&self) -> Duration {
        self.power.off_time.unwrap_or(self.device.off_time)
    }

    fn failed(&self, error: PowerError) -> SwitchError {
        SwitchError::Power { switch: Box::new(self.clone()), error }
    }
}

/// Says why the power of a place was not switched, or its outlet not asked.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The rig file does not say what switches it.
    #[error("nothing says what switches the power of {place}")]
    NotSwitched {
        /// The place.
        place: PlaceName,
        /// The file that declares it.
        origin: String,
        /// The power devices of the rig.
        devices: Vec<DeviceName>,
    },
    /// The device did not do as asked.
    #[error("{}", jig_model::chain(error))]
    Power {
        /// What was switched.
        switch: Box<PlaceSwitch>,
        /// What the device said.
        error: PowerError,
    },
    /// Another place on the outlet is in use.
    #[error(
        "{} would be disturbed: {}, and it shares {}",
        place, jig_model::chain(error), switch.outlet()
    )]
    Disturbs {
        /// What was to be switched.
        switch: Box<PlaceSwitch>,
        /// The other place.
        place: PlaceName,
        /// Its holder.
        error: PlaceLockError,
    },
    /// The place itself is in use.
    #[error(transparent)]
    Held(#[from] PlaceLockError),
    /// The place is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The board's debug port, which is to say whether it has power, cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
}

impl SwitchError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NotSwitched { .. } => Fault::Profile,
            Self::Power { error, .. } => error.cause().fault().unwrap_or(Fault::Lab),
            Self::Disturbs { error, .. } | Self::Held(error) => error.fault(),
            Self::Catalogue(error) => error.fault(),
            Self::Bind(error) => error.fault(),
        }
    }
}

impl Lab {
    /// Finds what switches a place.
    ///
    /// # Errors
    /// The rig file does not say.
    pub(crate) fn switch_of(&self, place: &Place) -> Result<PlaceSwitch, SwitchError> {
        let rig = &self.catalogue.rig;
        let found = || {
            let power = place.power.clone()?;
            let device = rig.power_device(&power.device)?.clone();
            let shared_with = rig.blast_radius(place)?.also;
            Some(PlaceSwitch { place: place.name.clone(), power, device, shared_with })
        };
        found().ok_or_else(|| SwitchError::NotSwitched {
            place: place.name.clone(),
            origin: place.origin.clone(),
            devices: rig.power.iter().map(|device| device.name.clone()).collect(),
        })
    }

    /// Opens what switches a place. Touches nothing yet. Call within a tokio runtime.
    ///
    /// # Errors
    /// The device cannot be opened.
    pub(crate) fn open_outlet(&self, switch: &PlaceSwitch) -> Result<OutletPower, SwitchError> {
        open_outlet(&switch.power, &self.catalogue.rig.power, &self.power_context())
            .map_err(|error| switch.failed(error))
    }

    /// Opens what switches a place, and what sees its power beside it. Touches nothing yet. Call
    /// within a tokio runtime; the caller holds the place before it asks.
    ///
    /// # Errors
    /// The device cannot be opened, or the board not be bound.
    pub(crate) fn open_sensed_outlet(
        &self,
        switch: &PlaceSwitch,
    ) -> Result<OutletPower, SwitchError> {
        let (place, profile) = self.catalogue.place(&switch.place)?;
        let who = place.second_sense(&switch.device.driver);
        let debug_port = match who {
            // To be asked leaves no evidence.
            PlaceSense::DebugPort => {
                self.bind_quietly(&place, &profile, std::env::temp_dir())?.sense
            }
            PlaceSense::Outlet(_) | PlaceSense::Console | PlaceSense::Absent => None,
        };
        open_sensed(
            &switch.power,
            &self.catalogue.rig.power,
            &self.power_context(),
            (&profile, &place),
            (&who, debug_port),
        )
        .map_err(|error| switch.failed(error))
    }

    /// Opens what switches a place and what sees its power beside it, if anything switches it.
    pub(crate) fn sensed_outlet(&self, place: &Place) -> Result<Option<OutletPower>, SwitchError> {
        if place.power.is_none() {
            return Ok(None);
        }
        self.open_sensed_outlet(&self.switch_of(place)?).map(Some)
    }

    /// Names the outlet of a place, if it has one that says that it is off.
    pub async fn outlet_that_is_off(&self, place: &Place) -> Option<String> {
        let switch = self.switch_of(place).ok()?;
        let mut power = self.open_outlet(&switch).ok()?;
        let seen = timeout(SECOND_LOOK, power.read()).await.ok()?.ok()?;
        (seen == Some(PowerState::Off)).then(|| switch.outlet())
    }

    /// Returns what devices need of this host.
    pub(crate) fn power_context(&self) -> PowerContext {
        PowerContext {
            locks: self.catalogue.places().root().to_owned(),
            ledger: Arc::new(NoLedger),
            human: Arc::clone(&self.human),
            sysfs: "/sys".into(),
            between: None,
        }
    }
}
