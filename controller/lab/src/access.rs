//! Access to the places of this host: the rules of the rig file, put to the user of the catalogue.

use std::collections::BTreeSet;

use jig_model::access::{AccessBasis, AccessDecision, AccessDenial, AccessQuestion, AccessRight};
use jig_model::command::Command;
use jig_model::document::did_you_mean;
use jig_model::lease::PlaceTraits;
use jig_model::rig_file::{Place, UnknownPlace};
use jig_model::{Fault, IdentityName, PlaceName};

use crate::Catalogue;

/// Says what a user may not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The user has not the right that is needed at a place.
    #[error("{name} has no right to {right} place {place}: {why}")]
    Denied {
        /// The user.
        name: IdentityName,
        /// The right.
        right: AccessRight,
        /// The place.
        place: PlaceName,
        /// Why not.
        why: AccessDenial,
    },
    /// The user has the right that is needed at none of the places that would do.
    #[error("{name} has no right to {right} any place that would do: {need}")]
    DeniedAll {
        /// The user.
        name: IdentityName,
        /// The right.
        right: AccessRight,
        /// Which places would do.
        need: String,
    },
    /// The user has not the right at each place of the rig.
    #[error("{name} has no right to {right} all places, which {call} needs: {why}")]
    DeniedEverywhere {
        /// The user.
        name: IdentityName,
        /// The right.
        right: AccessRight,
        /// What needs it.
        call: String,
        /// Why not.
        why: AccessDenial,
    },
    /// A rig with access rules answers such a call only to a user whom they do not limit.
    #[error("{name} has no right to call {call}: {why}")]
    DeniedCall {
        /// The user.
        name: IdentityName,
        /// The call. May hold any text.
        call: String,
        /// Why not.
        why: AccessDenial,
    },
    /// The place is not there, as far as the user may know.
    #[error("{0}")]
    Hidden(UnknownPlace),
}

impl AccessError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Denied { .. }
            | Self::DeniedAll { .. }
            | Self::DeniedEverywhere { .. }
            | Self::DeniedCall { .. }
            | Self::Hidden(_) => Fault::Usage,
        }
    }
}

impl Catalogue {
    /// Decides whether the user may do something at a place of the rig.
    pub fn decide(&self, right: Option<AccessRight>, place: &Place) -> AccessDecision {
        self.decide_for(&self.user().identity.name, &self.user().groups, right, place)
    }

    /// Decides whether an identity may do something at a place of the rig.
    pub fn decide_for(
        &self,
        name: &IdentityName,
        groups: &BTreeSet<String>,
        right: Option<AccessRight>,
        place: &Place,
    ) -> AccessDecision {
        match self.traits(place) {
            Some(place) => {
                self.rig.access.decide(&AccessQuestion { name, groups, right, place: &place })
            }
            // A place has a board, or the rig file would have been refused.
            None => AccessDecision::Denied(AccessDenial::UnknownVerb),
        }
    }

    /// Tells whether the user has a right at a place.
    pub fn may(&self, right: AccessRight, place: &PlaceName) -> bool {
        let place = self.rig.place(place.as_str());
        place.is_ok_and(|place| self.decide(Some(right), place).is_allowed())
    }

    /// Lists the places that the user may see.
    pub fn visible_places(&self) -> impl Iterator<Item = &Place> {
        let see = |place: &&Place| self.decide(Some(AccessRight::See), place).is_allowed();
        self.rig.places.iter().filter(see)
    }

    /// Tells whether the rules limit the user nowhere: there are none, or none names this user of the
    /// rig's host.
    pub fn is_unlimited(&self) -> bool {
        let decided = |place| self.decide(Some(AccessRight::Administer), place);
        let open = |basis| matches!(basis, AccessBasis::NoRules | AccessBasis::LocalUser);
        match self.rig.places.first().map(decided) {
            None => true,
            Some(AccessDecision::Allowed(basis)) => open(basis),
            Some(AccessDecision::Denied(_)) => false,
        }
    }

    /// Finds a place that the user may see.
    pub(crate) fn visible_place(&self, name: &PlaceName) -> Result<&Place, UnknownPlace> {
        let found = self.rig.place(name.as_str());
        let seen = |place: &&Place| self.decide(Some(AccessRight::See), place).is_allowed();
        found.ok().filter(seen).ok_or_else(|| {
            // What is like it is told of places that the user sees, so a hidden one is as one that is
            // not there.
            let known: Vec<&str> = self.visible_places().map(|place| place.name.as_str()).collect();
            let help = did_you_mean(name.as_str(), known.iter().copied());
            UnknownPlace { name: name.as_str().chars().take(64).collect(), help }
        })
    }

    /// Tells by what the user may carry out a command; nothing if there is no such place, which the
    /// command says itself.
    ///
    /// # Errors
    /// The user may not.
    pub fn authorise(&self, command: &Command) -> Result<Option<AccessBasis>, AccessError> {
        self.authorise_at(command.access_right(), command.place())
    }

    /// Tells by what the user has a right at a place; nothing if there is no such place.
    ///
    /// # Errors
    /// The user has not.
    pub fn authorise_at(
        &self,
        right: AccessRight,
        name: &PlaceName,
    ) -> Result<Option<AccessBasis>, AccessError> {
        let Ok(place) = self.rig.place(name.as_str()) else { return Ok(None) };
        match self.decide(Some(right), place) {
            AccessDecision::Allowed(basis) => Ok(Some(basis)),
            AccessDecision::Denied(why) => match self.visible_place(name) {
                Ok(_) => {
                    let (user, place) = (self.user().identity.name.clone(), name.clone());
                    Err(AccessError::Denied { name: user, right, place, why })
                }
                Err(hidden) => Err(AccessError::Hidden(hidden)),
            },
        }
    }

    /// Tells by what the user has a right at every place of the rig, seen or not; a refusal is noted in
    /// the audit log. `call` says what for.
    ///
    /// # Errors
    /// The user has not.
    pub fn authorise_everywhere(
        &self,
        right: AccessRight,
        call: &str,
    ) -> Result<String, AccessError> {
        let mut basis = "there is no place".to_owned();
        let mut denied =
            (self.rig.places.is_empty() && !self.is_unlimited()).then_some(AccessDenial::NotNamed);
        for place in &self.rig.places {
            match self.decide(Some(right), place) {
                AccessDecision::Allowed(by) => basis = by.to_string(),
                AccessDecision::Denied(why) => denied = Some(why),
            }
        }
        let Some(why) = denied else { return Ok(basis) };
        let name = self.user().identity.name.clone();
        let error = AccessError::DeniedEverywhere { name, right, call: call.into(), why };
        self.note_refused_call(call, right, error.to_string());
        Err(error)
    }

    /// Returns what a place is selected by.
    pub(crate) fn traits(&self, place: &Place) -> Option<PlaceTraits> {
        let profile = self.profiles.get(&place.board)?;
        let emulated = place.is_emulated();
        let parts = [
            ("probe", place.has_probe()),
            ("power", emulated || place.power.is_some()),
            ("console", emulated || !place.consoles.is_empty()),
            ("network", place.network.tcp.is_some() || place.network.ssh.is_some()),
            ("canary", place.canary.is_some()),
        ];
        let chip = place.probe.as_ref().and_then(|probe| probe.chip.clone());
        Some(PlaceTraits {
            place: place.name.clone(),
            board: place.board.clone(),
            arch: profile.arch,
            chip: chip.or_else(|| profile.chip.clone()),
            tags: place.tags.clone(),
            parts: parts.into_iter().filter(|(_, has)| *has).map(|(part, _)| part).collect(),
            emulated,
        })
    }
}
