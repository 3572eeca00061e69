//! Carrying out a power command.

use std::time::{Duration, Instant};

use jig_drivers::power::{OutletPower, PowerError, Verified};
use jig_model::command::{
    EmulatedPowerReply, EventSink, PowerAction, PowerCommand, PowerExplained, PowerReply, Reply,
    SharedOutlet,
};
use jig_model::power::Confirmation;
use jig_model::protocol::PowerState;
use jig_model::rig_file::Place;
use jig_model::{Fault, PlaceName};
use jig_rig::store::StoreError;
use jig_rig::workflow::CancelToken;

use super::{PlaceSwitch, SwitchError};
use crate::hold::{hold, name};
use crate::{CatalogueError, Lab};

/// Says why a power command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PowerCommandError {
    /// The place is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The outlet did not do as asked, or may not be used.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The holder of the place cannot be found out.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The caller cancelled it.
    #[error("cancelled: {0} may be on or off now")]
    Cancelled(PlaceName),
    /// An emulated board has power only while a command runs its emulator.
    #[error("{0} is emulated: it has power only while a command runs its emulator")]
    NoEmulator(PlaceName),
    /// The power of an emulated board goes with the command that runs its emulator.
    #[error("{place} is emulated, and {holder} runs its emulator")]
    EmulatorInUse {
        /// The place.
        place: PlaceName,
        /// The command that runs the emulator; may hold any text.
        holder: String,
    },
    /// The device's description cannot be told.
    #[error("describe the device")]
    Encode(#[source] serde_json::Error),
}

impl PowerCommandError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Switch(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::Cancelled(_) => Fault::Cancelled,
            Self::NoEmulator(_) => Fault::Usage,
            Self::EmulatorInUse { .. } => Fault::Lab,
            Self::Encode(_) => Fault::Bug,
        }
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Lab {
    /// Switches the power of a place, asks for it, or tells how it would be switched.
    pub(crate) async fn power(
        &self,
        command: PowerCommand,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, PowerCommandError> {
        let (place, _) = self.catalogue.place(&command.place)?;
        if place.is_emulated() {
            return self.emulated_power(&place.name, command.action).map(Reply::EmulatedPower);
        }
        let switch = self.switch_of(&place)?;
        if command.action == PowerAction::Explain {
            return self.explain_power(&place, switch).map(Reply::PowerExplained);
        }
        tokio::select! {
            done = self.switch_power(&switch, &command, events) => Ok(Reply::Power(done?)),
            () = cancel.cancelled() => Err(PowerCommandError::Cancelled(place.name)),
        }
    }

    async fn switch_power(
        &self,
        switch: &PlaceSwitch,
        command: &PowerCommand,
        events: &dyn EventSink,
    ) -> Result<PowerReply, SwitchError> {
        let wait = Duration::from_millis(command.wait_ms);
        let (_held, power) = match command.action {
            PowerAction::Status | PowerAction::Explain => (Vec::new(), self.open_outlet(switch)?),
            // What senses the power may be in use; its user is not disturbed.
            PowerAction::Verify => {
                let held = vec![hold(&self.catalogue, &switch.place, wait, events).await?];
                (held, self.open_sensed_outlet(switch)?)
            }
            PowerAction::On | PowerAction::Off | PowerAction::Cycle => {
                let held = self.hold_switched(switch, wait, command.force, events).await?;
                (held, self.open_sensed_outlet(switch)?)
            }
        };
        let off_time = command.off_ms.map_or(power.off_time(), Duration::from_millis);
        let began = Instant::now();
        let (power, found) = act(power, command.action, off_time).await;
        let (state, confirmation) = found.map_err(|error| switch.failed(error))?;
        Ok(PowerReply {
            place: switch.place.clone(),
            device: switch.device.name.clone(),
            driver: switch.device.driver.kind().to_owned(),
            outlet: switch.power.outlet.clone(),
            action: command.action,
            state,
            confirmation,
            sense: power.sense(),
            shared_with: switch.shared_with.clone(),
            off_ms: (command.action == PowerAction::Cycle).then_some(ms(off_time)),
            duration_ms: ms(began.elapsed()),
        })
    }

    fn explain_power(
        &self,
        place: &Place,
        switch: PlaceSwitch,
    ) -> Result<PowerExplained, PowerCommandError> {
        let places = self.catalogue.places();
        let device = &switch.device;
        let shared_with = switch.shared_with.iter().map(|other| {
            let holder = places.holder(other)?;
            let in_use_by = holder.map(|holder| name(holder.as_ref()));
            Ok(SharedOutlet { place: other.clone(), in_use_by })
        });
        Ok(PowerExplained {
            place: switch.place.clone(),
            device: device.name.clone(),
            driver: device.driver.kind().to_owned(),
            outlet: switch.power.outlet.clone(),
            about: serde_json::to_value(&device.driver).map_err(PowerCommandError::Encode)?,
            declared_in: device.origin.clone(),
            min_interval_ms: ms(device.min_interval),
            timeout_ms: ms(device.timeout),
            settle_ms: ms(device.settle),
            off_ms: ms(switch.off_time()),
            shared_with: shared_with.collect::<Result<_, StoreError>>()?,
            sense: place.second_sense(&device.driver),
            hub: place.hub.clone(),
            hub_neighbours: self.catalogue.rig.hub_neighbours(place),
            lock: places.root().join(format!("{}.power", device.name)),
        })
    }

    /// Tells the power of an emulated board, which has some while a command runs its emulator.
    fn emulated_power(
        &self,
        place: &PlaceName,
        action: PowerAction,
    ) -> Result<EmulatedPowerReply, PowerCommandError> {
        let holder = self.catalogue.places().holder(place)?;
        let in_use_by = holder.map(|holder| name(holder.as_ref()));
        match (action, in_use_by) {
            (PowerAction::On, None) => Err(PowerCommandError::NoEmulator(place.clone())),
            (PowerAction::Off | PowerAction::Cycle, Some(holder)) => {
                Err(PowerCommandError::EmulatorInUse { place: place.clone(), holder })
            }
            (_, in_use_by) => {
                let state = if in_use_by.is_some() { PowerState::On } else { PowerState::Off };
                Ok(EmulatedPowerReply { place: place.clone(), action, state, in_use_by })
            }
        }
    }
}

/// The state that was found or reached, and how it is known.
type SwitchFound = (Option<PowerState>, Option<Confirmation>);

/// Acts on an outlet; gives it back to be asked what sensed it.
async fn act(
    mut power: OutletPower,
    action: PowerAction,
    off_time: Duration,
) -> (OutletPower, Result<SwitchFound, PowerError>) {
    let found = match action {
        PowerAction::Status | PowerAction::Explain => power.read().await.map(|read| (read, None)),
        PowerAction::Verify => power.verify().await.map(|found| known(&found)),
        PowerAction::On => {
            power.switch(PowerState::On).await.map(|how| reached(PowerState::On, how))
        }
        PowerAction::Off => {
            power.switch(PowerState::Off).await.map(|how| reached(PowerState::Off, how))
        }
        PowerAction::Cycle => {
            power.cycle_for(off_time).await.map(|how| reached(PowerState::On, how))
        }
    };
    (power, found)
}

fn reached(state: PowerState, how: Confirmation) -> SwitchFound {
    (Some(state), Some(how))
}

/// Tells the state from what was found, and how it is known.
fn known(found: &Verified) -> SwitchFound {
    let how = match (found.read, found.seen) {
        (_, Some(_)) => Some(Confirmation::Sensed),
        (Some(_), None) => Some(Confirmation::ReadBack),
        (None, None) => None,
    };
    (found.read.or(found.seen), how)
}
