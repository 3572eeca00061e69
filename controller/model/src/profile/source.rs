//! Where profiles are found by name.

use super::BoardProfile;
use crate::BoardId;

/// Profiles by name. One that is asked for may be read only then: a rig needs those that its places name.
pub trait ProfileSource {
    /// Finds a profile.
    fn profile(&self, board: &BoardId) -> Option<&BoardProfile>;

    /// Lists the names of all, to suggest one of them.
    fn names(&self) -> Vec<&str>;
}

impl ProfileSource for &[BoardProfile] {
    fn profile(&self, board: &BoardId) -> Option<&BoardProfile> {
        self.iter().find(|profile| profile.id == *board)
    }

    fn names(&self) -> Vec<&str> {
        self.iter().map(|profile| profile.id.as_str()).collect()
    }
}
