//! What an identity may do at places, and by which rule.

use std::collections::BTreeSet;

use jig_model::access::{AccessDecision, AccessRight};
use jig_model::{IdentityName, PlaceName};
use jig_rig::identity::groups_of;
use serde::{Deserialize, Serialize};

use crate::{Catalogue, CatalogueError};

/// What an identity may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessList {
    /// The identity.
    pub identity: IdentityName,
    /// Its groups at the rig's host.
    pub groups: BTreeSet<String>,
    /// A decision for each place and right that was asked for.
    pub decisions: Vec<ListedAccess>,
}

/// A decision of the rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedAccess {
    /// Where.
    pub place: PlaceName,
    /// What.
    pub right: AccessRight,
    /// Whether it is given.
    pub allowed: bool,
    /// By which rule, or why not.
    pub why: String,
    /// The same, shortened where the file of the rule lies below the folder of the process that looked.
    pub near: String,
}

impl AccessList {
    /// Puts the rules to an identity, the user if none is named, at the places that the user sees.
    pub(super) fn of(
        catalogue: &Catalogue,
        identity: Option<&IdentityName>,
        place: Option<&PlaceName>,
        right: Option<AccessRight>,
    ) -> Result<Self, CatalogueError> {
        let identity = identity.unwrap_or(&catalogue.user().identity.name).clone();
        let groups = groups_of(&identity);
        let places = match place {
            Some(place) => vec![catalogue.place(place)?.0],
            None => catalogue.visible_places().cloned().collect(),
        };
        let rights = right.map_or_else(|| AccessRight::ALL.to_vec(), |right| vec![right]);
        let asked = places.iter().flat_map(|at| rights.iter().map(move |right| (at, *right)));
        let decided = asked.map(|(place, right)| {
            let decision = catalogue.decide_for(&identity, &groups, Some(right), place);
            let (allowed, why) = match decision {
                AccessDecision::Allowed(basis) => (true, basis.to_string()),
                AccessDecision::Denied(denial) => (false, denial.to_string()),
            };
            let near = catalogue.near(&why).to_owned();
            ListedAccess { place: place.name.clone(), right, allowed, why, near }
        });
        let decisions = decided.collect();
        Ok(Self { identity, groups, decisions })
    }
}
