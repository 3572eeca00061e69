//! What a plan depends on: the boards of the rig and its runs, as tools tell of them. Pure.
//!
//! Reads the results of tools with tolerance: a field that is missing is unknown, and an unknown board is
//! treated as a real one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jig_model::document::nearest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::BoardNature;

/// Most boards and runs that are kept: what is beyond is not planned with.
const MAX_BOARDS: usize = 500;
const MAX_RUNS: usize = 100;

/// Longest text of a field that is kept.
const MAX_FIELD: usize = 300;

/// What is known when a plan is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionContext {
    /// The moment.
    pub now: Timestamp,
    /// The places, by their names.
    pub boards: BTreeMap<String, KnownBoard>,
    /// Runs, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<KnownRun>,
}

/// A place of the rig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownBoard {
    /// The kind of its board.
    pub kind: String,
    /// What is to be known of its dangers.
    pub nature: BoardNature,
    /// Its health, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Who uses it; hostile text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<String>,
}

/// A run of the rig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownRun {
    /// Its id.
    pub id: String,
    /// Where it ran.
    pub place: String,
    /// The kind of board.
    pub kind: String,
    /// The name of its plan, and where that came from.
    pub plan: String,
    /// The same.
    pub plan_origin: String,
    /// What it amounts to; empty where it has no verdict.
    pub verdict: String,
    /// Why; empty as that.
    pub cause: String,
    /// The same in words; hostile text.
    pub summary: String,
    /// When it began, as RFC 3339.
    pub started: String,
}

fn field(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
    text.chars().take(MAX_FIELD).collect()
}

impl SessionContext {
    /// Reads the places out of what the tool `boards` says.
    pub fn learn_boards(&mut self, data: &Value) {
        let places = data.get("places").and_then(Value::as_array).into_iter().flatten();
        let mut outlets: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for place in places.take(MAX_BOARDS) {
            let name = field(place, "name");
            if name.is_empty() {
                continue;
            }
            let how = place.get("how").unwrap_or(&Value::Null);
            if let Some(device) = how.pointer("/power/device").and_then(Value::as_str) {
                let outlet = how.pointer("/power/outlet").map(ToString::to_string);
                let outlet = format!("{device} {}", outlet.unwrap_or_default());
                outlets.entry(outlet).or_default().push(name.clone());
            }
            let emulated = how.get("emulator").is_some_and(|part| !part.is_null());
            let health = Some(field(place, "health")).filter(|health| !health.is_empty());
            let board = KnownBoard {
                kind: field(place, "board"),
                nature: BoardNature { emulated, shares_outlet: false },
                health,
                used_by: None,
            };
            self.boards.insert(name, board);
        }
        for sharing in outlets.into_values().filter(|places| places.len() > 1) {
            for name in sharing {
                if let Some(board) = self.boards.get_mut(&name) {
                    board.nature.shares_outlet = true;
                }
            }
        }
    }

    /// Reads who uses the places out of what the tool `places` says.
    pub fn learn_users(&mut self, data: &Value) {
        let places = data.get("places").and_then(Value::as_array).into_iter().flatten();
        for place in places.take(MAX_BOARDS) {
            let Some(board) = self.boards.get_mut(&field(place, "place")) else { continue };
            let user = field(place, "in_use_by");
            let owner = place.get("lease").map(|lease| field(lease, "owner")).unwrap_or_default();
            board.used_by = [user, owner].into_iter().find(|user| !user.is_empty());
        }
    }

    /// Reads runs out of what the tool `runs_list` says.
    pub fn learn_runs(&mut self, data: &Value) {
        let runs = data.get("runs").and_then(Value::as_array).into_iter().flatten();
        let read = |run: &Value| {
            let plan = run.get("plan").unwrap_or(&Value::Null);
            KnownRun {
                id: field(run, "id"),
                place: field(run, "place"),
                kind: field(run, "board"),
                plan: field(plan, "name"),
                plan_origin: field(plan, "origin"),
                verdict: field(run, "verdict"),
                cause: field(run, "cause"),
                summary: field(run, "summary"),
                started: field(run, "started"),
            }
        };
        self.runs = runs.take(MAX_RUNS).map(read).filter(|run| !run.id.is_empty()).collect();
    }

    /// Returns what is to be known of the dangers of each place.
    pub fn natures(&self) -> BTreeMap<String, BoardNature> {
        self.boards.iter().map(|(name, board)| (name.clone(), board.nature)).collect()
    }

    /// Lists the places that a name stands for: the place of that name, else all of that kind. Capitals count only
    /// where the rig has names that differ in nothing else.
    pub fn places_of(&self, name: &str) -> Vec<&str> {
        if let Some((exact, _)) = self.boards.get_key_value(name) {
            return vec![exact];
        }
        let all = || self.boards.iter().map(|(place, board)| (place.as_str(), board));
        let places = |is: &dyn Fn(&str, &KnownBoard) -> bool| -> Vec<&str> {
            all().filter(|(place, board)| is(place, board)).map(|(place, _)| place).collect()
        };
        let of_kind = places(&|_, board| board.kind == name);
        let written_otherwise = places(&|place, _| place.eq_ignore_ascii_case(name));
        if of_kind.is_empty() && written_otherwise.len() == 1 {
            return written_otherwise;
        }
        match of_kind.is_empty() {
            true => places(&|_, board| board.kind.eq_ignore_ascii_case(name)),
            false => of_kind,
        }
    }

    /// Tells whether a word of a request may be meant as the name of a board that the rig does not have: it is
    /// written like one, or like one of the rig's.
    pub fn may_name_board(&self, word: &str) -> bool {
        let letters = word.contains(|c: char| c.is_ascii_alphabetic());
        let marks = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | ':');
        let kinds = self.boards.values().map(|board| board.kind.as_str());
        let names = self.boards.keys().map(String::as_str).chain(kinds);
        letters && word.contains(marks) || nearest(word, names).is_some()
    }

    /// Tells whether nobody uses a place, and its health does not forbid its use.
    pub fn is_free(&self, place: &str) -> bool {
        self.boards.get(place).is_some_and(|board| {
            let ill = matches!(board.health.as_deref(), Some("unhealthy" | "quarantined"));
            board.used_by.is_none() && !ill
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn boards_users_and_outlets_are_read() {
        let mut context = SessionContext::default();
        context.learn_boards(&json!({ "places": [
            { "name": "microbit", "board": "microbit", "how": { "emulator": { "args": [] } } },
            { "name": "b1", "board": "nrf52", "how": { "power": { "device": "pdu", "outlet": "3" } },
              "health": "healthy" },
            { "name": "b2", "board": "nrf52", "how": { "power": { "device": "pdu", "outlet": "3" } },
              "health": "quarantined" },
            { "name": "b3", "board": "nrf52", "how": { "emulator": null } },
            { "board": "without a name" }, 7,
        ] }));
        context.learn_users(&json!({ "places": [
            { "place": "b3", "in_use_by": "jig test of eve" }, { "place": "unknown", "in_use_by": "x" },
        ] }));
        let nature = |place: &str| context.boards[place].nature;
        assert!(nature("microbit").emulated && !nature("b1").emulated && !nature("b3").emulated);
        assert!(
            nature("b1").shares_outlet && nature("b2").shares_outlet && !nature("b3").shares_outlet
        );
        assert_eq!(context.places_of("nrf52"), ["b1", "b2", "b3"]);
        assert_eq!(context.places_of("microbit"), ["microbit"]);
        let free: Vec<_> = context.boards.keys().filter(|place| context.is_free(place)).collect();
        assert_eq!(free, ["b1", "microbit"]);
    }

    #[test]
    fn runs_are_read_and_cut() {
        let mut context = SessionContext::default();
        let long = "x".repeat(10_000);
        context.learn_runs(&json!({ "runs": [
            { "id": "r1", "plan": { "name": "smoke", "origin": "t/smoke.toml" }, "verdict": "fail",
              "summary": long },
            { "id": "r2", "plan": null, "verdict": null }, null,
        ] }));
        assert_eq!(context.runs.len(), 2);
        assert_eq!(context.runs[0].plan, "smoke");
        assert_eq!(context.runs[0].summary.len(), MAX_FIELD);
        assert_eq!(context.runs[1].verdict, "");
    }
}
