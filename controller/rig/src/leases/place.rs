//! What is known of a place before it is leased.

use jig_model::PlaceName;
use jig_model::lease::PlaceTraits;

/// How well a place would do; lower ones are given first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fitness {
    /// Nothing is known against it.
    Healthy,
    /// Something has failed there.
    Suspect,
    /// It is out of service, and not given.
    OutOfService,
}

/// A place of the rig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasablePlace {
    /// What it is selected by.
    pub traits: PlaceTraits,
    /// How well it would do.
    pub fitness: Fitness,
}

impl LeasablePlace {
    pub(super) fn name(&self) -> &PlaceName {
        &self.traits.place
    }

    pub(super) fn is_usable(&self) -> bool {
        self.fitness != Fitness::OutOfService
    }
}
