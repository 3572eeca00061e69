//! The rules, and the decision that follows from them: a pure, total function.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::AccessRight;
use crate::identity::{IdentityName, IdentityPattern};
use crate::lease::{PlaceSelector, PlaceTraits};

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleAt {
    /// The rig file or drop-in, as it was found.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
}

impl fmt::Display for RuleAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Gives rights to identities at places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccessRule {
    /// To whom.
    pub identity: Vec<IdentityPattern>,
    /// Which; with none, the rule only says that its identities have no right but by rules.
    pub may: BTreeSet<AccessRight>,
    /// Where: at places that one of these fits; everywhere if there is none.
    pub places: Option<Vec<PlaceSelector>>,
    /// Where it stands.
    pub at: RuleAt,
}

/// What is asked of the rules.
#[derive(Debug, Clone, Copy)]
pub struct AccessQuestion<'q> {
    /// Who asks.
    pub name: &'q IdentityName,
    /// The groups of the user of the rig's host; none for others.
    pub groups: &'q BTreeSet<String>,
    /// What is to be done; nothing if it is a verb that no right is known for.
    pub right: Option<AccessRight>,
    /// Where.
    pub place: &'q PlaceTraits,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessDecision {
    /// It may be done.
    Allowed(AccessBasis),
    /// It may not.
    Denied(AccessDenial),
}

impl AccessDecision {
    /// Tells whether it may be done.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

/// By what something may be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessBasis {
    /// The rig has no rules.
    #[error("the rig file has no access rule")]
    NoRules,
    /// A user of the rig's host whom no rule names.
    #[error("a user of the rig's host, whom no access rule names")]
    LocalUser,
    /// A rule.
    #[error("{0}")]
    Rule(RuleAt),
}

/// Why something may not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenial {
    /// No rule names the identity.
    #[error("no access rule names this identity")]
    NotNamed,
    /// Rules name the identity, and none gives this right there; the one that comes nearest.
    #[error("the access rule of {0} does not give it")]
    NotGiven(RuleAt),
    /// It is a verb that no right is known for.
    #[error("no right is known for this")]
    UnknownVerb,
}

/// The access rules of a rig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AccessRules {
    /// The rules; their order means nothing.
    pub rules: Vec<AccessRule>,
}

impl AccessRules {
    /// Tells whether a rule names a group.
    pub fn name_groups(&self) -> bool {
        let mut patterns = self.rules.iter().flat_map(|rule| &rule.identity);
        patterns.any(|pattern| pattern.group().is_some())
    }

    /// Decides whether something may be done.
    pub fn decide(&self, asked: &AccessQuestion<'_>) -> AccessDecision {
        let Some(right) = asked.right else {
            return AccessDecision::Denied(AccessDenial::UnknownVerb);
        };
        if self.rules.is_empty() {
            return AccessDecision::Allowed(AccessBasis::NoRules);
        }
        let mut nearest: Option<(bool, &RuleAt)> = None;
        let naming = self.rules.iter().filter(|rule| rule.names(asked.name, asked.groups));
        for rule in naming {
            let there = rule.is_for(asked.place);
            if there && rule.may.iter().any(|given| given.brings(right)) {
                return AccessDecision::Allowed(AccessBasis::Rule(rule.at.clone()));
            }
            if nearest.is_none_or(|(is_there, _)| there && !is_there) {
                nearest = Some((there, &rule.at));
            }
        }
        match nearest {
            Some((_, at)) => AccessDecision::Denied(AccessDenial::NotGiven(at.clone())),
            None if asked.name.is_local() => AccessDecision::Allowed(AccessBasis::LocalUser),
            None => AccessDecision::Denied(AccessDenial::NotNamed),
        }
    }
}

impl AccessRule {
    fn names(&self, name: &IdentityName, groups: &BTreeSet<String>) -> bool {
        self.identity.iter().any(|pattern| pattern.fits(name, groups))
    }

    fn is_for(&self, place: &PlaceTraits) -> bool {
        match &self.places {
            None => true,
            Some(selectors) => selectors.iter().any(|selector| selector.fits(place)),
        }
    }
}
