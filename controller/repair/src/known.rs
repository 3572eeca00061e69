//! What the lab knows of a failure: evidence for agents, never an instruction and never a proof.
//!
//! Owns the seam to whatever keeps knowledge, and the bounds of what an agent gets of it. A unit that
//! proposes a patch goes the way of every patch: policy, build, board, proof.

use jig_model::PlaceName;
use jig_model::protocol::BoxFuture;
use serde::Serialize;

/// Units that are given to an agent.
const UNITS: usize = 3;

/// Longest text of a unit, and of one that addresses an agent, in bytes.
const TEXT: usize = 600;
const SUSPICIOUS: usize = 120;

/// Longest patch of a unit, in bytes.
const PATCH: usize = 4 << 10;

/// A failure of which is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureAsked {
    /// Where it was seen.
    pub place: PlaceName,
    /// Its signature.
    pub signature: String,
    /// The line that shows it best.
    pub line: Option<String>,
    /// Files that are suspected, the most suspect first.
    pub files: Vec<String>,
}

/// What is known: a row of `similar.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KnownUnit {
    /// The unit, by which `jig kb show` shows it.
    pub unit: String,
    /// Whether it is proven: `verified`, `not verified`, `rejected`.
    pub standing: &'static str,
    /// How often it was seen.
    pub seen: u64,
    /// Whether its text addresses an agent: then it is shortened.
    pub addresses_agent: bool,
    /// What it is about.
    pub title: String,
    /// Why it happened.
    pub root_cause: String,
    /// What helped.
    pub resolution: String,
    /// The change that helped.
    pub patch: String,
}

/// Keeps knowledge. It answers within a limit of time, and with nothing where it fails.
pub trait KnownFailures: Send + Sync {
    /// Returns what is known of a failure, the best first.
    fn known(&self, asked: FailureAsked) -> BoxFuture<'_, Vec<KnownUnit>>;
}

/// Knows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NothingKnown;

impl KnownFailures for NothingKnown {
    fn known(&self, _: FailureAsked) -> BoxFuture<'_, Vec<KnownUnit>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Bounds what an agent gets. A unit that comes from a repair run whose patch is given already is left
/// out.
pub(crate) fn for_agent(units: Vec<KnownUnit>, given: &[String]) -> Vec<KnownUnit> {
    let is_given =
        |unit: &KnownUnit| given.iter().any(|run| unit.resolution.contains(run.as_str()));
    let units = units.into_iter().filter(|unit| !is_given(unit)).take(UNITS);
    units
        .map(|mut unit| {
            let most = if unit.addresses_agent { SUSPICIOUS } else { TEXT };
            for text in [&mut unit.title, &mut unit.root_cause, &mut unit.resolution] {
                text.truncate(text.floor_char_boundary(most));
            }
            let patch = if unit.addresses_agent { 0 } else { PATCH };
            unit.patch.truncate(unit.patch.floor_char_boundary(patch));
            unit
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(name: &str, addresses_agent: bool) -> KnownUnit {
        KnownUnit {
            unit: name.to_owned(),
            standing: "not verified",
            seen: 1,
            addresses_agent,
            title: "é".repeat(1000),
            root_cause: String::new(),
            resolution: format!("repair run {name}"),
            patch: "+ x\n".repeat(10_000),
        }
    }

    #[test]
    fn what_an_agent_gets_has_bounds() {
        let all = vec![unit("a", false), unit("b", true), unit("c", false), unit("d", false)];
        let given = for_agent(all, &["run c".to_owned()]);
        let names: Vec<_> = given.iter().map(|unit| unit.unit.as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
        assert!(given[0].title.len() <= TEXT && given[0].patch.len() <= PATCH);
        assert!(given[1].title.len() <= SUSPICIOUS && given[1].patch.is_empty());
    }
}
