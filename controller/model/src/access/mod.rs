//! Access to places: who may do what where, by the rules of the rig file.
//!
//! # Design
//! *Rules give, none takes.* So their order means nothing, and a rule for one identity never changes
//! what another may do.
//!
//! *Deny by default, once there are rules.* A rig without rules is open, as it was before there were
//! any. With the first rule, an identity that is no user of the rig's host has only what rules give it.
//! A user of the host, who can edit the rig file, has every right until a rule names that user; then
//! only what rules give.
//!
//! *A right brings others along.* Each one brings `see`; `administer` brings all.

mod need;
mod right;
mod rules;
#[cfg(test)]
mod tests;

pub use right::{AccessRight, NoAccessRight};
pub use rules::{
    AccessBasis, AccessDecision, AccessDenial, AccessQuestion, AccessRule, AccessRules, RuleAt,
};
