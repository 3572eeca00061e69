//! The tables of transitions, printed for people and programs; all forms come from the tables that run.

use std::fmt::Write as _;

use jig_model::machine::RenderFormat;
use serde_json::{Value, json};

use super::{
    OperatorState, OperatorTrigger, PlannerEvent, PlannerState, operator_table, planner_next,
};

/// Prints the table of a session. A CSV line is `from,event,to,effect`.
pub fn render_operator(format: RenderFormat) -> String {
    let rows: Vec<_> = operator_table::ROWS
        .iter()
        .map(|row| [row.0.as_str(), row.1.as_str(), row.2.as_str(), row.3.as_str()])
        .collect();
    match format {
        RenderFormat::Csv => csv("from,event,to,effect", &rows),
        RenderFormat::Mermaid => mermaid(OperatorState::Idle.as_str(), &rows),
        RenderFormat::Json => json_text(&json!({
            "states": OperatorState::ALL,
            "events": OperatorTrigger::ALL,
            "transitions": rows.iter().map(|[from, event, to, effect]| {
                json!({ "from": from, "event": event, "to": to, "effect": effect })
            }).collect::<Vec<_>>(),
        })),
    }
}

/// Prints the table of the planner. A CSV line is `from,event,to`.
pub fn render_planner(format: RenderFormat) -> String {
    let mut rows = Vec::new();
    for &from in PlannerState::ALL {
        for &event in PlannerEvent::ALL {
            if let Ok(to) = planner_next(from, event) {
                rows.push([from.as_str(), event.as_str(), to.as_str()]);
            }
        }
    }
    match format {
        RenderFormat::Csv => csv("from,event,to", &rows),
        RenderFormat::Mermaid => mermaid(PlannerState::Init.as_str(), &rows),
        RenderFormat::Json => json_text(&json!({
            "states": PlannerState::ALL,
            "events": PlannerEvent::ALL,
            "transitions": rows.iter().map(|[from, event, to]| {
                json!({ "from": from, "event": event, "to": to })
            }).collect::<Vec<_>>(),
        })),
    }
}

fn csv<const N: usize>(head: &str, rows: &[[&str; N]]) -> String {
    let lines = rows.iter().map(|row| row.join(",") + "\n");
    format!("{head}\n{}", lines.collect::<String>())
}

fn mermaid<const N: usize>(first: &str, rows: &[[&str; N]]) -> String {
    let mut text = format!("stateDiagram-v2\n    [*] --> {first}\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {} --> {}: {}", row[0], row[2], row[1]);
    }
    text
}

fn json_text(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::transition;

    fn conformance(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/conformance/");
        std::fs::read_to_string(format!("{folder}{name}")).unwrap()
    }

    #[test]
    fn session_moves_as_each_line_of_its_conformance_file_says_and_in_no_other_way() {
        let file = conformance("operator-transitions.csv");
        let mut legal = 0;
        for &from in OperatorState::ALL {
            for &event in OperatorTrigger::ALL {
                let start = format!("{from},{event},");
                let wanted: Vec<_> = file.lines().filter(|line| line.starts_with(&start)).collect();
                let found = transition(from, event);
                let found = found.map(|(to, effect)| format!("{start}{to},{effect}"));
                match wanted.as_slice() {
                    [] => assert!(found.is_err(), "{found:?} is in no line of the file"),
                    [line] => assert_eq!(found.as_deref(), Ok(*line)),
                    lines => panic!("{lines:?} are one pair of state and event"),
                }
                legal += wanted.len();
            }
        }
        assert_eq!(legal, file.lines().count() - 1, "a line names no state and event");
        assert_eq!(render_operator(RenderFormat::Csv), file);
    }

    #[test]
    fn planner_moves_as_each_line_of_its_conformance_file_says_and_in_no_other_way() {
        let file = conformance("planner-transitions.csv");
        let mut legal = 0;
        for &from in PlannerState::ALL {
            for &event in PlannerEvent::ALL {
                let start = format!("{from},{event},");
                let wanted: Vec<_> = file.lines().filter(|line| line.starts_with(&start)).collect();
                match (wanted.as_slice(), planner_next(from, event)) {
                    ([], found) => assert!(found.is_err(), "{found:?} is in no line of the file"),
                    ([line], found) => {
                        assert_eq!(found.map(|to| format!("{start}{to}")).as_deref(), Ok(*line));
                    }
                    (lines, _) => panic!("{lines:?} are one pair of state and event"),
                }
                legal += wanted.len();
            }
        }
        assert_eq!(legal, file.lines().count() - 1, "a line names no state and event");
    }

    #[test]
    fn all_forms_hold_the_same_transitions() {
        for render in [render_operator, render_planner] {
            let count = render(RenderFormat::Csv).lines().count() - 1;
            assert_eq!(render(RenderFormat::Mermaid).lines().count(), 2 + count);
            let json: Value = serde_json::from_str(&render(RenderFormat::Json)).unwrap();
            assert_eq!(json["transitions"].as_array().unwrap().len(), count);
        }
    }
}
