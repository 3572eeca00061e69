//! A rig with injected faults: which side is blamed, and whether the rig recovers.

use std::fs;

use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{Ran, Slot, Workshop, ran, side_by_side};

const BOARD: &str = "mps2-an385";
/// A place whose emulated board is deployed by its virtual probe.
const DESK: &str = "desk";

struct Bench {
    workshop: Workshop,
    place: &'static str,
    image: String,
}

impl Bench {
    fn new(place: &'static str, fixture: &str) -> Self {
        let workshop = Workshop::new();
        let board = if place == DESK { "microbit" } else { place };
        if place == DESK {
            let rig = "version = 1\n[[place]]\nname = \"desk\"\nboard = \"microbit\"\n\
                       [place.emulator]\ndeploy = \"probe\"\n";
            workshop.write("rig.toml", rig);
        }
        Self { workshop, place, image: elf(board, fixture) }
    }

    fn run(&self, faults: &[&str]) -> Ran {
        let _slot = Slot::take();
        let mut command = self.workshop.jig(["--json", "run", "-b", self.place, &self.image]);
        command.args(["--timeout", "60s"]);
        for fault in faults {
            command.args(["--inject", fault]);
        }
        ran(&mut command).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Returns the injected faults in the events of the last run.
    fn strikes(&self) -> Vec<String> {
        let run = self.workshop.run_dirs().pop().unwrap();
        let text = fs::read_to_string(run.join("events.jsonl")).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let strikes = events.filter(|event| event["event"] == "injected");
        strikes.map(|event| event["fault"].as_str().unwrap().to_owned()).collect()
    }
}

/// Runs with a fault in each attempt, so that no recovery helps; returns the cause.
fn cause(place: &'static str, fault: &str) -> (i32, String) {
    let bench = Bench::new(place, "unity-pass");
    let every = format!("{fault},every");
    let ran = bench.run(&[&every]);
    let document = ran.json().unwrap();
    assert!(bench.strikes().contains(&every), "{fault} has not struck: {ran}");
    let notes = document["verdict"]["notes"].as_array().unwrap();
    let told = |note: &Value| note.as_str().unwrap().starts_with("injected ");
    assert!(notes.iter().any(told), "the verdict does not tell of {fault}: {ran}");
    (ran.code(), document["verdict"]["cause"].as_str().unwrap().to_owned())
}

#[test]
fn a_rig_that_fails_each_time_is_blamed_and_never_the_firmware() {
    // Most of a recovery is waiting.
    side_by_side(
        [
            (BOARD, "kill-emulator@0s", "emulator_killed"),
            (BOARD, "cut-console@0s", "console_lost"),
            (BOARD, "outlet-swapped@0s", "power_mismatch"),
            (BOARD, "power-mismatch@0s", "power_mismatch"),
            (DESK, "stop-emulator@0s", "emulator_stuck"),
            (DESK, "lose-probe@50%", "probe_lost"),
            (DESK, "silence-chip@0%", "target_unresponsive"),
        ],
        |(place, fault, wanted)| {
            let found = cause(place, fault);
            assert_eq!(found, (75, wanted.to_owned()), "{fault} on {place}");
        },
    );
}

#[test]
fn a_rig_that_fails_once_is_recovered_and_the_test_runs_again() {
    for (place, fault) in
        [(BOARD, "kill-emulator@0s"), (DESK, "overrun-console=64@0s"), (DESK, "stale-image@0%")]
    {
        let bench = Bench::new(place, "unity-pass");
        let ran = bench.run(&[fault]);
        let document = ran.json().unwrap();
        assert_eq!(
            (ran.code(), &document["verdict"]["cause"]),
            (0, &Value::from("passed")),
            "{ran}"
        );
        assert_eq!(bench.strikes(), [fault]);
        let notes = document["verdict"]["notes"].to_string();
        let told = notes.contains("injected") && notes.contains("recovered by");
        assert!(told, "{notes}");
    }
}

#[test]
fn garbage_on_the_transport_is_no_ones_failed_test() {
    let bench = Bench::new(BOARD, "unity-exit");
    let ran = bench.run(&["garble-console=500ms@0s,every"]);
    let document = ran.json().unwrap();
    let found = (ran.code(), &document["verdict"]["cause"]);
    assert_eq!(found, (4, &Value::from("output_lost")), "{ran}");
    // What the target itself says wrong counts, on a transport that is whole.
    let bench = Bench::new(BOARD, "unity-fail");
    let document = bench.run(&["delay-console=50ms"]).json().unwrap();
    assert_eq!(document["verdict"]["cause"], "test_failed");
}

#[test]
fn an_old_image_that_stayed_is_found_by_what_the_board_holds() {
    // One prints a build id, and one nothing that tells it from the other.
    for (new, old) in [("build-id", "build-id-wrong"), ("unity-fail", "unity-pass")] {
        let bench = Bench::new(BOARD, new);
        let old = elf(BOARD, old);
        let ran = bench.run(&[&format!("stale-image={old}@0%,every")]);
        let document = ran.json().unwrap();
        let found = (ran.code(), &document["verdict"]["cause"]);
        assert_eq!(found, (75, &Value::from("wrong_image")), "{ran}");
    }
}

#[test]
fn a_host_without_room_is_the_labs_fault_and_so_is_one_without_handles() {
    side_by_side(["disk-full=1h@0s", "no-handles=1h@0s"], |fault| {
        let bench = Bench::new(BOARD, "unity-pass");
        let ran = bench.run(&[fault]);
        assert_eq!(ran.code(), 75, "{fault}: {ran}");
        bench.workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
    });
}

#[test]
fn a_host_without_room_for_a_second_costs_no_run() {
    // From before the board prints, and from behind its last byte, when the record is written.
    side_by_side(["disk-full=1s@0s", "disk-full=1s@120ms"], |fault| {
        let bench = Bench::new(BOARD, "unity-pass");
        let ran = bench.run(&[fault]);
        assert_eq!(ran.code(), 0, "{fault}: {ran}");
    });
}

#[test]
fn a_host_that_stands_still_or_jumps_in_time_spoils_nothing() {
    let bench = Bench::new(BOARD, "unity-pass");
    let ran = bench.run(&["pause-host=200ms@0s", "clock-jump=-1h@0s", "kill-emulator@1h"]);
    ran.says(0, &["--inject kill-emulator@3600s has not struck"]);
    assert_eq!(bench.strikes().len(), 2);
    bench.workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
}

#[test]
fn the_faults_are_listed_and_mistakes_pointed_at() {
    let workshop = Workshop::new();
    let listed = workshop.run(["inject", "--list", "--json"]).json().unwrap();
    let faults = listed["faults"].as_array().unwrap();
    assert!(faults.iter().any(|fault| fault["name"] == "kill-emulator"));
    assert!(faults.iter().all(|fault| fault["meaning"].as_str().is_some_and(|m| !m.is_empty())));
    workshop
        .run(["run", "-b", "x", "--inject", "kil-emulator@2s"])
        .says(2, &["^^^^^^^^^^^^", "did you mean `kill-emulator`?", "jig inject --list"]);
}
