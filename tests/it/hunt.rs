//! What stands still under a test, with real emulators that are really stopped: a healthy
//! firmware keeps its time, and a broken one keeps its blame.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// Runs a firmware with a time-out of two seconds, and stops its emulator for that long, which
/// is too short for it to count as dead.
fn stopped_for_two_seconds(workshop: &Workshop, fixture: &str) -> Ran {
    let image = elf("mps2-an385", fixture);
    let mut command = workshop.jig(["--json", "run", "-b", "mps2-an385", "--timeout", "2s"]);
    command.arg(&image).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Started::of(&mut command);
    // Deployed, powered, waited for: before the last begins, its time does not run.
    until("a wait for results", || {
        let events = workshop.run_dirs().first()?.join("events.jsonl");
        let begun = fs::read_to_string(events).ok()?.matches("\"action_started\"").count();
        (begun >= 3).then_some(())
    });
    let emulator: Pid = until("an emulator", || workshop.emulators().pop());
    kill(emulator, Signal::SIGSTOP).unwrap();
    // Not a wait for something: this is how long the fault lasts.
    std::thread::sleep(Duration::from_secs(2));
    // One that was stuck too long for a busy Jig is gone, and its test is made again.
    let _ = kill(emulator, Signal::SIGCONT);
    run.finish()
}

fn attempts(workshop: &Workshop) -> Vec<(bool, String)> {
    let dir = workshop.run_dirs().pop().unwrap();
    let record = fs::read(dir.join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let of_test = |made: &&Value| made["purpose"].is_null();
    let attempts = record["attempts"].as_array().unwrap().iter().filter(of_test).map(|made| {
        let cause = made["verdict"]["cause"].as_str().unwrap().to_owned();
        (made["replaced"] == true, cause)
    });
    attempts.collect()
}

#[test]
fn a_stop_costs_a_healthy_firmware_nothing_and_excuses_no_broken_one() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    // It is silent for most of its time-out.
    stopped_for_two_seconds(&workshop, "slow-start").says(0, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();

    let workshop = Workshop::new();
    let ran = stopped_for_two_seconds(&workshop, "hang-in-test");
    ran.says(1, &[]);
    assert_eq!(ran.json().unwrap()["verdict"]["cause"], "hang", "{ran}");
    let attempts = attempts(&workshop);
    assert_eq!(attempts.last().unwrap(), &(false, "hang".to_owned()), "{ran}");
    // The stop put the first one in doubt: the effect of the clock's leap on it is unknown.
    assert_eq!(attempts[0], (true, "emulator_stuck".to_owned()), "{ran}");
    workshop.nothing_lives(DEADLINE).unwrap();
}
