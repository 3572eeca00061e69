//! The table of transitions, printed for people and programs; all forms come from [`transitions`].

use std::fmt::Write as _;

use jig_model::machine::RenderFormat;
use serde_json::json;

use super::state::{RepairEvent, RepairState};
use super::table::transitions;

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
