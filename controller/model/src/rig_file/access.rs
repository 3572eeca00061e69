//! Who may do what at which places: what must hold of the rules as they are written.

use std::collections::BTreeSet;

use super::raw::RawAccess;
use crate::access::{AccessRule, RuleAt};
use crate::document::{Findings, Located};

/// Lowers one rule; nothing only where something was reported.
pub(super) fn lower(
    raw: Located<RawAccess>,
    (origin, text): (&str, &str),
    findings: &Findings,
) -> Option<AccessRule> {
    let at = RuleAt { file: origin.to_owned(), line: line_of(text, raw.span.start) };
    let RawAccess { identity, may, places } = raw.value;
    let identity = identity?;
    if identity.value.is_empty() {
        let help = "name identities: a key such as \"ci\", \"unix:alice\" or \"group:lab\"";
        findings.add("rig::access-identity", identity.at(), "the rule is for no identity", help);
    }
    let identity = identity.value.into_iter().filter_map(|text| {
        let bad = |error: crate::identity::IdentityError| {
            let help =
                "names of keys may end in one `*`, such as \"ci-*\"; \"unix:*\" is each user";
            findings.add("rig::access-identity", text.at(), error.to_string(), help);
        };
        text.value.parse().map_err(bad).ok()
    });
    let identity: Vec<_> = identity.collect();
    if let Some(places) = places.as_ref().filter(|places| places.value.is_empty()) {
        let help = "leave `places` out for each place, or `may = []` for a rule that gives nothing";
        findings.add("rig::access-places", places.at(), "the rule is for no place", help);
    }
    let places = places.map(|list| {
        let selectors = list.value.into_iter().filter_map(|text| {
            let bad = |error: crate::lease::SelectorError| {
                let help = "write a place, a board, or such as \"tag=radio,has=probe\"";
                findings.add("rig::access-places", text.at(), error.to_string(), help);
            };
            text.value.parse().map_err(bad).ok()
        });
        selectors.collect()
    });
    let may: BTreeSet<_> = may?.value.into_iter().map(|right| right.value).collect();
    Some(AccessRule { identity, may, places, at })
}

/// Returns the line of a byte, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
