//! The journal of the repair loop: transitions that are written, and a run that is read again.

use std::process::Command;

use serde::Deserialize;

use super::BenchOptions;
use super::sample::{BenchRow, Goal, Samples};
use super::setting::BenchSetting;
use xtask::failure::TaskFailure;
use xtask::process;

/// Rows of a run that is resumed.
const ROWS: u64 = 10_000;

/// What the measuring program tells.
#[derive(Deserialize)]
struct JournalTimes {
    bare_transitions: Vec<f64>,
    transitions: Vec<f64>,
    rows: u64,
    bare_read: Vec<f64>,
    resumed: Vec<f64>,
}

/// Measures transitions with full sync, and the time until a long run can go on.
pub(super) fn measure(
    setting: &BenchSetting,
    options: &BenchOptions,
) -> Result<Vec<BenchRow>, TaskFailure> {
    let mut command = Command::new(setting.program("examples/journal"));
    command.arg(setting.scratch.join("journals"));
    command.args([options.rounds.to_string(), ROWS.to_string()]);
    let text = process::capture(&mut command)?;
    let found: JournalTimes = serde_json::from_slice(&text)
        .map_err(|error| TaskFailure::Because(format!("the measuring program said {error}")))?;
    Ok(vec![
        BenchRow {
            what: "transitions of a repair run, each two rows with one full sync".to_owned(),
            unit: "/s",
            floor_is: "two bare SQLite inserts in a transaction with full sync".to_owned(),
            floor: Samples(found.bare_transitions),
            ours: Samples(found.transitions),
            goal: Goal::Share { least: 0.5 },
        },
        BenchRow {
            floor_is: "the bodies read by bare SQLite".to_owned(),
            floor: Samples(found.bare_read),
            ..BenchRow::alone(
                &format!("resuming a repair run of {} rows", found.rows),
                "ms",
                found.resumed,
                100.0,
            )
        },
    ])
}
