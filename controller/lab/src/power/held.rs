//! The power of a place while its board is held.

use jig_model::protocol::PowerState;
use jig_model::rig_file::Place;

use super::SwitchError;
use crate::Lab;

impl Lab {
    /// Switches the outlet of a place on, if it has one that is not known to be on; returns whether
    /// it did. The caller holds the place and those on the same outlet.
    ///
    /// # Errors
    /// The outlet did not do as asked.
    pub(crate) async fn give_power(&self, place: &Place) -> Result<bool, SwitchError> {
        let Some(mut power) = self.sensed_outlet(place)? else { return Ok(false) };
        let switch = self.switch_of(place)?;
        let failed = |error| switch.failed(error);
        if power.read().await.map_err(failed)? == Some(PowerState::On) {
            return Ok(false);
        }
        power.switch(PowerState::On).await.map_err(failed)?;
        Ok(true)
    }

    /// Switches the outlet of a place off, if it has one.
    ///
    /// # Errors
    /// The outlet did not do as asked.
    pub(crate) async fn take_power(&self, place: &Place) -> Result<(), SwitchError> {
        let Some(mut power) = self.sensed_outlet(place)? else { return Ok(()) };
        let switch = self.switch_of(place)?;
        power.switch(PowerState::Off).await.map_err(|error| switch.failed(error))?;
        Ok(())
    }
}
