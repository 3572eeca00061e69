//! The other side: firmware that is broken, on a rig that is well.

use jig_model::{Cause, Fault};
use serde::Deserialize;

use super::journal::Journal;
use super::lab::TrialLab;
use super::table::BrokenFirmware;
use super::trial::{ProgramAnswer, answer, verdict};
use xtask::failure::TaskFailure;

/// An entry of the list of what was built, as far as it matters here.
#[derive(Deserialize)]
struct BuiltFixture {
    fixture: String,
    board: String,
    elf: String,
    plan: Option<String>,
    cause: Cause,
    timeout_s: u32,
    repeat: u32,
}

/// Runs every firmware of the lab's board that the target is to be blamed for.
pub(super) fn all(lab: &TrialLab, journal: &Journal) -> Result<(), TaskFailure> {
    let path = lab.fixtures.join("manifest.json");
    let text = std::fs::read(&path).map_err(TaskFailure::io("read", &path))?;
    let entries: Result<Vec<BuiltFixture>, _> = serde_json::from_slice(&text);
    let entries =
        entries.map_err(|e| TaskFailure::Because(format!("{} is odd: {e}", path.display())))?;
    let broken = |entry: &&BuiltFixture| {
        entry.board == lab.board && entry.cause.fault() == Some(Fault::Target)
    };
    let mut count = 0;
    for entry in entries.iter().filter(broken) {
        count += 1;
        if !journal.knows_firmware(&entry.fixture, &entry.board) {
            journal.add_firmware(run(lab, entry)?)?;
        }
    }
    println!("recovery: {count} broken firmwares on {}", lab.board);
    Ok(())
}

fn run(lab: &TrialLab, entry: &BuiltFixture) -> Result<BrokenFirmware, TaskFailure> {
    let mut command = lab.jig();
    let image = lab.fixtures.join(&entry.elf);
    match &entry.plan {
        Some(plan) => {
            command.args(["--json", "test"]).arg(lab.fixtures.join(plan));
            command.arg("--image").arg(image);
        }
        None => {
            command.args(["--json", "run"]).arg(image);
            command.args(["--timeout", &format!("{}s", entry.timeout_s)]);
        }
    }
    command.args(["-b", &lab.place, "--repeat", &entry.repeat.to_string()]);
    let ProgramAnswer { said, .. } = answer(&mut command)?;
    Ok(BrokenFirmware {
        board: entry.board.clone(),
        fixture: entry.fixture.clone(),
        expected: entry.cause,
        found: verdict(&said).ok(),
    })
}
