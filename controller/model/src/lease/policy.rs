//! The rules of a rig for leases: who goes first, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RigUser;
use crate::ClassName;
use crate::identity::IdentityPattern;

/// Users who are treated alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseClass {
    /// Its name.
    pub name: ClassName,
    /// Higher ones go first.
    pub priority: i32,
    /// Identities that belong to it.
    pub members: Vec<IdentityPattern>,
    /// Whether a lease of it may be ended for one of a higher class while no command runs under it.
    pub yields: bool,
    /// How long a lease may last in all, unless a process keeps it.
    pub longest: Option<Duration>,
}

/// The rules of a rig.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeasePolicy {
    /// How long a lease lasts if its user does not say.
    pub ttl: Duration,
    /// Waiting for this long is worth one step of priority.
    pub ageing: Duration,
    /// The classes; the first one is that of users who are in none.
    pub classes: Vec<LeaseClass>,
}

impl Default for LeasePolicy {
    /// Engineers go before CI: a person at a terminal waits for one board, a pipeline for many. With
    /// a step of ten priorities and an ageing of a minute, a pipeline waits for ten minutes at most
    /// behind engineers who came after it.
    fn default() -> Self {
        let class = |name: &str, priority| LeaseClass {
            name: ClassName::made(name.to_owned()),
            priority,
            members: Vec::new(),
            yields: false,
            longest: None,
        };
        let engineer = class("engineer", 10);
        let members = ["ci", "ci-*"].into_iter().filter_map(|member| member.parse().ok()).collect();
        let ci = LeaseClass { members, ..class("ci", 0) };
        Self {
            ttl: Duration::from_secs(30 * 60),
            ageing: Duration::from_secs(60),
            classes: vec![engineer, ci],
        }
    }
}

impl LeasePolicy {
    /// Returns the class of a user.
    pub fn class_of(&self, user: &RigUser) -> Option<&LeaseClass> {
        let means = |member: &IdentityPattern| member.fits(&user.identity.name, &user.groups);
        let has = |class: &&LeaseClass| class.members.iter().any(means);
        self.classes.iter().find(has).or(self.classes.first())
    }

    /// Tells whether a class has a group among its members.
    pub fn names_groups(&self) -> bool {
        let mut members = self.classes.iter().flat_map(|class| &class.members);
        members.any(|member| member.group().is_some())
    }

    /// Finds a class by its name.
    pub fn class(&self, name: &ClassName) -> Option<&LeaseClass> {
        self.classes.iter().find(|class| class.name == *name)
    }
}
