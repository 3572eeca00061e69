//! The table of moves, printed for people and programs, all forms from [`MOVES`].

use std::fmt::Write as _;

use serde_json::json;

use super::table::{HealthMove, MOVES, Streak};
use super::{HealthState, Signal};
use jig_model::machine::RenderFormat;

/// Prints the table; the text ends with a line end. A pair of state and signal that it does not
/// hold changes nothing.
pub fn render(format: RenderFormat) -> String {
    match format {
        RenderFormat::Mermaid => mermaid(),
        RenderFormat::Csv => csv(),
        RenderFormat::Json => json(),
    }
}

/// Splits a move into its arrows: where it leads at first, and where in the end.
fn arrows(one: &HealthMove) -> impl Iterator<Item = (HealthState, &'static str)> {
    let counted = match one.streak {
        Streak::Pass => "enough passes in a row",
        Streak::Failure => "enough failures in a row",
        Streak::Restart => "enough in a row",
    };
    let first = (one.to, if one.enough.is_some() { "not enough yet" } else { "" });
    std::iter::once(first).chain(one.enough.map(|state| (state, counted)))
}

fn mermaid() -> String {
    let mut text = format!("stateDiagram-v2\n    [*] --> {}\n", HealthState::Healthy);
    for one in MOVES {
        for (to, when) in arrows(one) {
            let HealthMove { from, signal, .. } = one;
            let when = if when.is_empty() { String::new() } else { format!(" ({when})") };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "    {from} --> {to} : {signal}{when}");
        }
    }
    text
}

fn csv() -> String {
    let mut text = String::from("from,signal,to,when\n");
    for one in MOVES {
        for (to, when) in arrows(one) {
            let _ = writeln!(text, "{},{},{to},{when}", one.from, one.signal);
        }
    }
    text
}

fn json() -> String {
    let transitions: Vec<_> = MOVES
        .iter()
        .flat_map(|one| {
            arrows(one).map(|(to, when)| {
                json!({ "from": one.from, "signal": one.signal, "to": to, "when": when })
            })
        })
        .collect();
    let table = json!({
        "states": HealthState::ALL, "signals": Signal::ALL, "transitions": transitions,
    });
    let mut text = serde_json::to_string_pretty(&table).unwrap_or_default();
    text.push('\n');
    text
}
