//! Who goes first where several users want a place: what must hold of it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::raw::{RawLeaseClass, RawLeases};
use crate::ClassName;
use crate::document::{Findings, Located};
use crate::lease::{LeaseClass, LeasePolicy};

/// A shorter lease ends while its user types; a longer one is a place of its own.
const TIME: RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(365 * 86_400);

/// Ageing by the second is first come, first served; by the year it is none.
const AGEING: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(365 * 86_400);

/// Priorities that people can compare.
const PRIORITY: RangeInclusive<i32> = -1000..=1000;

/// Most classes of a rig.
const MOST_CLASSES: usize = 64;

/// Lowers the table; what is missing is as [`LeasePolicy::default`] says.
pub(super) fn lower(raw: RawLeases, findings: &Findings) -> LeasePolicy {
    let usual = LeasePolicy::default();
    let ttl = time(raw.ttl, "ttl", &TIME, findings).unwrap_or(usual.ttl);
    let ageing = time(raw.ageing, "ageing", &AGEING, findings).unwrap_or(usual.ageing);
    let Some(list) = raw.class else { return LeasePolicy { ttl, ageing, ..usual } };
    if list.value.is_empty() || list.value.len() > MOST_CLASSES {
        let help = format!("give 1 to {MOST_CLASSES} classes, or none for the usual ones");
        findings.add("rig::lease-classes", list.at(), "so many classes cannot be", help);
    }
    let mut known = BTreeSet::new();
    let classes = list.value.into_iter();
    let classes = classes.filter_map(|class| lower_class(class.value, &mut known, findings));
    LeasePolicy { ttl, ageing, classes: classes.collect() }
}

fn lower_class(
    raw: RawLeaseClass,
    known: &mut BTreeSet<ClassName>,
    findings: &Findings,
) -> Option<LeaseClass> {
    let name = raw.name?;
    if !known.insert(name.value.clone()) {
        let message = format!("class {:?} is declared twice", name.value.as_str());
        findings.add("rig::lease-class-twice", name.at(), message, "rename or remove one of them");
    }
    if let Some(priority) = raw.priority.as_ref().filter(|at| !PRIORITY.contains(&at.value)) {
        let help = format!("use {} to {}", PRIORITY.start(), PRIORITY.end());
        findings.add("rig::lease-priority", priority.at(), "no priority is that high or low", help);
    }
    let members = raw.members.map(|list| list.value).unwrap_or_default();
    let members = members.into_iter().filter_map(|member| {
        let bad = |error: crate::identity::IdentityError| {
            let help = "write a name, or the start of names with one `*` behind it";
            findings.add("rig::lease-member", member.at(), error.to_string(), help);
        };
        member.value.parse().map_err(bad).ok()
    });
    let members = members.collect();
    Some(LeaseClass {
        name: name.value,
        priority: raw.priority.map_or(0, |priority| priority.value),
        members,
        yields: raw.yields.is_some_and(|yields| yields.value),
        longest: time(raw.longest, "longest", &TIME, findings),
    })
}

fn time(
    time: Option<Located<Duration>>,
    name: &str,
    range: &RangeInclusive<Duration>,
    findings: &Findings,
) -> Option<Duration> {
    let time = time?;
    if !range.contains(&time.value) {
        let message = format!("`{name}` cannot be that short or long");
        let help = format!("use \"{}s\" to \"365d\"", range.start().as_secs());
        findings.add("rig::lease-time", time.at(), message, help);
    }
    Some(time.value)
}
