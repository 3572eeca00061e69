//! The places that are disturbed when the power of a place is switched.

use serde::Serialize;

use super::PowerDevice;
use crate::rig_file::{Hub, Place, Rig};
use crate::{DeviceName, PlaceName};

/// What a place's power switch takes along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlastRadius {
    /// The device.
    pub device: DeviceName,
    /// Its outlet; empty where it has only one.
    pub outlet: String,
    /// The other places on the same outlet, in the order of the rig.
    pub also: Vec<PlaceName>,
}

impl Rig {
    /// Finds a power device by its name.
    pub fn power_device(&self, name: &DeviceName) -> Option<&PowerDevice> {
        self.power.iter().find(|device| device.name == *name)
    }

    /// Returns what the power switch of a place takes along; nothing for a place without a power
    /// device.
    pub fn blast_radius(&self, place: &Place) -> Option<BlastRadius> {
        let power = place.power.as_ref()?;
        let same = |other: &&Place| {
            other.name != place.name
                && other
                    .power
                    .as_ref()
                    .is_some_and(|p| p.device == power.device && p.outlet == power.outlet)
        };
        Some(BlastRadius {
            device: power.device.clone(),
            outlet: power.outlet.clone(),
            also: self.places.iter().filter(same).map(|other| other.name.clone()).collect(),
        })
    }

    /// Returns the hub of a place, if its power can be switched.
    pub fn hub_of(&self, place: &Place) -> Option<&Hub> {
        let name = place.hub.as_ref()?;
        self.hubs.iter().find(|hub| hub.name == *name)
    }

    /// Returns the other places on the same hub: what a cycle of the hub takes along.
    pub fn hub_neighbours(&self, place: &Place) -> Vec<PlaceName> {
        let Some(hub) = &place.hub else { return Vec::new() };
        let same = |other: &&Place| other.name != place.name && other.hub.as_ref() == Some(hub);
        self.places.iter().filter(same).map(|other| other.name.clone()).collect()
    }
}
