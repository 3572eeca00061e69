//! The power of a place while a run has it.

use std::time::Duration;

use jig_drivers::power::open_outlet;
use jig_model::PlaceName;
use jig_model::power::Confirmation;
use jig_model::rig_file::Hub;
use jig_rig::session::HubError;

use crate::Lab;

/// What switches the power of a place in a run.
pub(crate) struct OutletInRun {
    /// How long a power cycle may take.
    pub(crate) takes: Duration,
    /// The other places that lose their power with this one: a run holds them, too.
    pub(crate) also: Vec<PlaceName>,
}

impl Lab {
    /// Finds what switches a place in a run, if anything does.
    pub(crate) fn outlet_in_run(&self, place: &PlaceName) -> Option<OutletInRun> {
        let place = self.catalogue.rig.place(place.as_str()).ok()?;
        let switch = self.switch_of(place).ok()?;
        Some(OutletInRun {
            takes: switch.power.cycle_timeout(&switch.device),
            also: switch.shared_with,
        })
    }

    /// Takes the power of a hub and gives it back; says how that was confirmed.
    ///
    /// # Errors
    /// What the device said.
    pub(crate) async fn cycle_power_of_hub(&self, hub: &Hub) -> Result<String, HubError> {
        let power = open_outlet(&hub.power, &self.catalogue.rig.power, &self.power_context());
        let mut power = power.map_err(|error| HubError::Failed(error.into()))?;
        let off_time = power.off_time();
        let how = power.cycle_for(off_time).await;
        let how = how.map_err(|error| HubError::Failed(error.into()))?;
        let how = confirmation_words(how, power.sense());
        Ok(format!("the power of hub {} was cycled, off for {off_time:?}, {how}", hub.name))
    }
}

/// Says how it is known that an outlet did as it was told; `sense` is what else was asked.
pub fn confirmation_words(how: Confirmation, sense: Option<String>) -> String {
    let known = match how {
        Confirmation::Sensed => {
            return format!("sensed by {}", sense.unwrap_or_default());
        }
        Confirmation::Accepted => "it cannot be asked whether it did",
        Confirmation::ReadBack => "read back",
    };
    sense.map_or_else(|| known.to_owned(), |mute| format!("{known}, {mute} cannot tell"))
}
