//! Holding every place that loses its power together with one.

use std::time::Duration;

use jig_model::PlaceName;
use jig_model::command::{CommandEvent, EventSink};
use jig_rig::store::{PlaceLock, PlaceLockError};

use super::{PlaceSwitch, SwitchError};
use crate::Lab;
use crate::hold::{hold, name};

impl Lab {
    /// Holds a place and those on the same outlet, each within `wait`. With `force` the others
    /// are disturbed if they are in use, which an event tells.
    ///
    /// # Errors
    /// Another process has one of them.
    pub(crate) async fn hold_switched(
        &self,
        switch: &PlaceSwitch,
        wait: Duration,
        force: bool,
        events: &dyn EventSink,
    ) -> Result<Vec<PlaceLock>, SwitchError> {
        let mut held = Vec::new();
        // In one order for all, so that no two wait for each other.
        let mut names: Vec<&PlaceName> = switch.shared_with.iter().chain([&switch.place]).collect();
        names.sort();
        for other in names {
            match hold(&self.catalogue, other, wait, events).await {
                Ok(lock) => held.push(lock),
                Err(error) if *other == switch.place => return Err(error.into()),
                Err(PlaceLockError::Held { place, holder }) if force => {
                    let holder = name(holder.as_deref());
                    events.event(CommandEvent::Disturbing { place, holder });
                }
                Err(error) => {
                    let (switch, place) = (Box::new(switch.clone()), other.clone());
                    return Err(SwitchError::Disturbs { switch, place, error });
                }
            }
        }
        Ok(held)
    }
}
