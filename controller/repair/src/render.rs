//! The table of transitions of a run, printed for people and programs; all forms come from
//! the table that runs.

use std::fmt::Write as _;

use jig_model::machine::RenderFormat;
use serde_json::json;

use crate::machine::{RepairEvent, RepairState, condition, next};

struct RepairTransition {
    from: RepairState,
    event: RepairEvent,
    to: RepairState,
    when: String,
}

/// Lists every transition: those of each state alone, then those that it has as any other.
fn transitions() -> Vec<RepairTransition> {
    let mut all = Vec::new();
    for &from in RepairState::ALL {
        for &event in RepairEvent::ALL {
            let Ok(to) = next(from, event) else { continue };
            let when = match (condition(from, event), event) {
                (Some(when), _) => when.to_owned(),
                (None, RepairEvent::TimedOut) => format!("timeout of {from}"),
                (None, RepairEvent::UnhandledError) => format!("exception in {from}"),
                (None, _) => "external abort".to_owned(),
            };
            all.push(RepairTransition { from, event, to, when });
        }
    }
    all
}

/// Prints the table; the text ends with a line end.
///
/// A CSV line is `from,to,"when"`; its first is that of the start. The JSON form adds the event of
/// each transition and the parts of each state.
pub fn render(format: RenderFormat) -> String {
    match format {
        RenderFormat::Mermaid => mermaid(),
        RenderFormat::Csv => csv(),
        RenderFormat::Json => json(),
    }
}

fn csv() -> String {
    let mut text = format!("from,to,when\nstart,{},\"\"\n", RepairState::Idle);
    for one in transitions() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{},{},\"{}\"", one.from, one.to, one.when);
    }
    text
}

fn mermaid() -> String {
    let mut text = format!("stateDiagram-v2\n    [*] --> {}\n", RepairState::Idle);
    for one in transitions() {
        let colon = if one.when.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "    {} --> {}{colon}{}", one.from, one.to, one.when);
    }
    text
}

fn json() -> String {
    let transitions: Vec<_> = transitions()
        .into_iter()
        .map(|one| json!({ "from": one.from, "event": one.event, "to": one.to, "when": one.when }))
        .collect();
    let sub_states: serde_json::Map<_, _> = RepairState::ALL
        .iter()
        .filter(|state| !state.sub_states().is_empty())
        .map(|state| (state.to_string(), json!(state.sub_states())))
        .collect();
    let table = json!({
        "states": RepairState::ALL,
        "sub_states": sub_states,
        "events": RepairEvent::ALL,
        "transitions": transitions,
    });
    let mut text = serde_json::to_string_pretty(&table).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_holds_every_line_of_the_conformance_file() {
        let path =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/repair-transitions.csv");
        let wanted = std::fs::read_to_string(path).unwrap();
        let printed = render(RenderFormat::Csv);
        assert_eq!(wanted.lines().count(), 33);
        for line in wanted.lines() {
            assert!(printed.lines().any(|found| found == line), "{line}");
        }
    }

    #[test]
    fn all_forms_hold_the_same_transitions() {
        let count = transitions().len();
        assert_eq!(render(RenderFormat::Csv).lines().count(), 2 + count);
        let mermaid = render(RenderFormat::Mermaid);
        assert_eq!(mermaid.lines().count(), 2 + count);
        assert!(mermaid.contains("\n    CONVERGENCE_CHECK --> SUCCESS: converged\n"));
        assert!(mermaid.contains("\n    SUCCESS --> IDLE\n"));
        let json: serde_json::Value = serde_json::from_str(&render(RenderFormat::Json)).unwrap();
        assert_eq!(json["transitions"].as_array().unwrap().len(), count);
        assert_eq!(json["states"].as_array().unwrap().len(), 16);
        assert_eq!(json["sub_states"]["TEST_SETUP"][2], "HEALTH_CHECK");
    }
}
