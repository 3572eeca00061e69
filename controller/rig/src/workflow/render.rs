//! The table, printed for people and programs.
//!
//! Owns the text of `csv`, `mermaid` and `json`; all three come from [`TRANSITIONS`], so
//! none can drift from what runs.

use std::fmt::Write as _;

use jig_model::machine::RenderFormat;
use serde::Serialize;

use super::state::{Event, Owner, State};
use super::table::{TRANSITIONS, Transition};

#[derive(Serialize)]
struct TransitionRow {
    from: State,
    event: Event,
    to: State,
    owner: Owner,
}

#[derive(Serialize)]
struct TransitionTable<'a> {
    states: &'a [State],
    events: &'a [Event],
    owners: &'a [Owner],
    transitions: Vec<TransitionRow>,
}

/// Prints the table; the text ends with a line end.
pub fn render(format: RenderFormat) -> String {
    match format {
        RenderFormat::Mermaid => mermaid(),
        RenderFormat::Csv => csv(),
        RenderFormat::Json => json(),
    }
}

fn csv() -> String {
    let mut text = String::from("from,event,to,owner\n");
    for Transition { from, event, to, owner } in TRANSITIONS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{from},{event},{to},{owner}");
    }
    text
}

fn mermaid() -> String {
    let mut text = format!("stateDiagram-v2\n    [*] --> {}\n", State::Idle);
    for Transition { from, event, to, owner } in TRANSITIONS {
        let _ = writeln!(text, "    {from} --> {to} : {event} ({owner})");
    }
    text
}

fn json() -> String {
    let transitions = TRANSITIONS
        .iter()
        .map(|&Transition { from, event, to, owner }| TransitionRow { from, event, to, owner })
        .collect();
    let table =
        TransitionTable { states: State::ALL, events: Event::ALL, owners: Owner::ALL, transitions };
    // Plain enums and lists always serialise.
    let mut text = serde_json::to_string_pretty(&table).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_equals_the_conformance_file_byte_by_byte() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/conformance/workflow-transitions.csv"
        );
        assert_eq!(render(RenderFormat::Csv), std::fs::read_to_string(path).unwrap());
    }

    #[test]
    fn mermaid_holds_every_move_once() {
        let text = render(RenderFormat::Mermaid);
        let mut lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["stateDiagram-v2", "    [*] --> idle"]);
        assert_eq!(lines[2], "    idle --> stage_running : START_WORKFLOW (planning)");
        assert_eq!(lines.len(), 2 + TRANSITIONS.len());
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 2 + TRANSITIONS.len());
    }

    #[test]
    fn json_says_the_same_as_csv() {
        let table: serde_json::Value = serde_json::from_str(&render(RenderFormat::Json)).unwrap();
        assert_eq!(table["states"].as_array().unwrap().len(), 14);
        let rows = table["transitions"].as_array().unwrap().iter().map(|row| {
            ["from", "event", "to", "owner"].map(|k| row[k].as_str().unwrap()).join(",")
        });
        let text: Vec<_> = rows.collect();
        let csv = render(RenderFormat::Csv);
        assert_eq!(text, csv.lines().skip(1).collect::<Vec<_>>());
    }
}
