//! Leases: the table by itself, all that may happen to it, and the store between processes.

mod machine;
mod store;
mod table;

use std::collections::BTreeSet;

use jig_model::access::AccessRules;
use jig_model::lease::{LeaseAsk, LeasePolicy, PlaceTraits, RigUser};
use jig_model::profile::Arch;
use jig_model::{Identity, LeaseId, PlaceName};

use super::{Fitness, LeasablePlace};

fn user(identity: &str) -> RigUser {
    let name = identity.parse().unwrap();
    RigUser { identity: Identity { name, ..Identity::default() }, ..RigUser::default() }
}

fn id(name: &str) -> LeaseId {
    name.parse().unwrap()
}

fn name(place: &str) -> PlaceName {
    place.parse().unwrap()
}

fn place(name: &str) -> LeasablePlace {
    let traits = PlaceTraits {
        place: name.parse().unwrap(),
        board: "board".parse().unwrap(),
        arch: Arch::Arm,
        chip: None,
        tags: BTreeSet::new(),
        parts: BTreeSet::new(),
        emulated: false,
    };
    LeasablePlace { traits, fitness: Fitness::Healthy }
}

fn ask(lease: &str, need: &str) -> LeaseAsk {
    LeaseAsk {
        lease: id(lease),
        need: need.parse().unwrap(),
        ttl_ms: Some(60_000),
        class: None,
        comment: None,
        by_id: false,
        kept: false,
    }
}

/// Classes with a difference, so that all rules are reached.
fn policy() -> LeasePolicy {
    let mut policy = LeasePolicy::default();
    policy.classes[1].yields = true;
    policy.classes[0].longest = Some(std::time::Duration::from_secs(3600));
    policy
}
