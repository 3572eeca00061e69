//! What is learnt from runs, recoveries and repairs by itself: what must hold of it.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::raw::RawKnowledge;
use crate::document::{Findings, Located};

/// A failure that was seen once has not repeated; more than a thousand would never be reached.
const REPEATS: RangeInclusive<u32> = 2..=1000;

/// Below a hundred a lab would forget within a day; a million units take some gigabytes.
const UNITS: RangeInclusive<u32> = 100..=1_000_000;

/// How much is learnt without being asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnowledgeSettings {
    /// Whether anything is learnt or looked up by itself.
    pub enabled: bool,
    /// A failure that was seen this often becomes a unit.
    pub repeats: u32,
    /// So many fixes of one class of failure on one kind of board become a unit of their own.
    pub threshold: u32,
    /// No unit is made by itself where there are this many.
    pub most_units: u32,
}

impl Default for KnowledgeSettings {
    fn default() -> Self {
        // The third failure of a kind is no coincidence; ten similar fixes are a pattern. Units made
        // by themselves have some 4 KB: 20,000 of them stay below 200 MB with their index.
        Self { enabled: true, repeats: 3, threshold: 10, most_units: 20_000 }
    }
}

/// Lowers the table; what is missing is as [`KnowledgeSettings::default`] says.
pub(super) fn lower(raw: RawKnowledge, findings: &Findings) -> KnowledgeSettings {
    let usual = KnowledgeSettings::default();
    let number = |value: Option<Located<u32>>, name: &str, range: RangeInclusive<u32>, usual| {
        let Some(value) = value else { return usual };
        if !range.contains(&value.value) {
            let message = format!("`{name}` cannot be {}", value.value);
            let help = format!("use {} to {}, or remove the line", range.start(), range.end());
            findings.add("rig::knowledge-number", value.at(), message, help);
        }
        value.value
    };
    KnowledgeSettings {
        enabled: raw.enabled.map_or(usual.enabled, |enabled| enabled.value),
        repeats: number(raw.repeats, "repeats", REPEATS, usual.repeats),
        threshold: number(raw.threshold, "threshold", REPEATS, usual.threshold),
        most_units: number(raw.most_units, "most_units", UNITS, usual.most_units),
    }
}
