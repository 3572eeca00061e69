//! The top of the ladder with real processes: waiting, moving to another place, leaving service
//! and coming back to it.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::capture_service::CaptureService;
use crate::manifest::elf;
use crate::served::Served;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// Writes a rig of boards behind probes, each of them an emulated one that the test may serve:
/// board `bench-1` is served as place `desk-1`. They are recovered by these steps alone.
pub(crate) fn rig(workshop: &Workshop, boards: u32, ladder: &str, more: &str) {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("board-profiles");
    let profile = fs::read_to_string(profiles.join("microbit.toml")).unwrap();
    fs::create_dir(workshop.path("board-profiles")).unwrap();
    workshop.write(
        "board-profiles/microbit.toml",
        format!("{profile}\n[recovery]\nladder = {ladder}\n"),
    );
    let state = workshop.path("../home/STATE/jig/places");
    let place = |number: u32| {
        format!(
            "[[place]]\nname = \"desk-{number}\"\nboard = \"microbit\"\nemulator = {{}}\n\
             [[place]]\nname = \"bench-{number}\"\nboard = \"microbit\"\n{more}\
             probe = {{ selector = \"20b7:9db1:unix:{}\" }}\n",
            state.join(format!("desk-{number}.probe")).display()
        )
    };
    let places: String = (1..=boards).map(place).collect();
    workshop.write("rig.toml", format!("version = 1\n{places}"));
}

pub(crate) fn health(workshop: &Workshop, place: &str) -> Value {
    let ran = workshop.run(["--json", "health", "-b", place, "--history", "100"]);
    ran.json().unwrap()["places"][0].clone()
}

/// Returns the notes of a run's verdict.
fn notes(ran: &Ran) -> String {
    ran.json().unwrap()["verdict"]["notes"].to_string()
}

#[test]
fn a_place_comes_back_by_itself_once_its_known_good_image_passes() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "rtt-report");
    rig(
        &workshop,
        1,
        "['reopen', 'out-of-service']",
        &format!("canary = {{ image = '{image}' }}\n"),
    );
    // No process serves the board.
    let run = || workshop.run(["--json", "run", "-b", "bench-1", &image]);
    let first = run();
    first.says(75, &["out of service"]);
    assert_eq!(first.json().unwrap()["verdict"]["cause"], "probe_missing", "{first}");
    let refused = workshop.run(["run", "-b", "bench-1", &image]);
    refused.says(75, &["place bench-1 is out of service since", "jig recover -b bench-1"]);
    let service = CaptureService::with(&workshop, |command| {
        command.args(["--check-every", "100ms"]);
    });
    // It is asked for a proof again and again, and has none.
    until("a proof that fails", || (workshop.run_dirs().len() > 1).then_some(()));
    assert_eq!(health(&workshop, "bench-1")["state"], "quarantined");

    let served = Served::start(&workshop, "desk-1", &[]);
    let back = until("the return", || {
        let now = health(&workshop, "bench-1");
        (now["state"] == "healthy").then_some(now)
    });
    assert_eq!(back["why"], "3 passes in a row", "{back}");
    let past = back["history"].as_array().unwrap();
    let entered = past.iter().rposition(|one| one["state"] == "healthy").unwrap();
    assert_eq!(past[entered]["event"]["kind"], "canary", "{back}");
    let proofs = past[entered..].iter().filter(|one| one["event"]["kind"] == "canary");
    let passed: Vec<_> = proofs.map(|one| one["event"]["what"]["passed"] == true).collect();
    assert_eq!(passed[..3], [true; 3], "{back}");
    service.stop().says(0, &[]);
    run().says(0, &[]);
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_run_moves_to_a_place_that_works_and_to_no_other() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    rig(&workshop, 3, "['reopen', 'fail-over']", "");
    // Only the third is there. Of the second it is known.
    let served = Served::start(&workshop, "desk-3", &[]);
    for _ in 0..2 {
        workshop.run(["health", "-b", "bench-2", "--check"]).says(75, &[]);
    }
    let ran = workshop.run(["--json", "run", "-b", "bench-1", &elf("microbit", "rtt-report")]);
    ran.says(0, &["reopen did not help"]);
    assert!(
        notes(&ran).contains("the rig was recovered by fail-over after probe_missing"),
        "{ran}"
    );
    assert_eq!(ran.json().unwrap()["place"], "bench-3", "{ran}");
    // A recovery is of the place that was named.
    let recover = workshop.run(["recover", "-b", "bench-1"]);
    recover.says(75, &["reopen did not help"]);
    assert!(!recover.err().contains("fail-over"), "{recover}");
    let left = health(&workshop, "bench-1");
    assert_eq!((&left["state"], &left["figures"]["runs"]), (&"unhealthy".into(), &0.into()));
    let moved = health(&workshop, "bench-3");
    assert_eq!((&moved["state"], &moved["figures"]["passed"]), (&"healthy".into(), &1.into()));
    drop(served);
    // Nothing is left to move to.
    for _ in 0..2 {
        workshop.run(["health", "-b", "bench-3", "--check"]).says(75, &[]);
    }
    let ran = workshop.run(["--json", "run", "-b", "bench-1", &elf("microbit", "rtt-report")]);
    ran.says(75, &["place bench-2 is unhealthy: ", "place bench-3 is unhealthy: "]);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn places_on_one_outlet_stand_in_for_each_other() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let outlet = "power = { device = \"pdu\", outlet = \"1\", off_time = \"1ms\", \
                  sense = \"none\" }\n";
    rig(&workshop, 2, "['reopen', 'fail-over']", outlet);
    let rig = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    let device = "[[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\n[power.command]\nset = [\"true\", \"{state}\"]\n";
    workshop.write("rig.toml", rig + device);
    let served = Served::start(&workshop, "desk-2", &[]);
    let ran = workshop.run(["--json", "run", "-b", "bench-1", &elf("microbit", "rtt-report")]);
    ran.says(0, &["the run moved from place bench-1 to bench-2"]);
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn what_comes_back_by_itself_is_waited_for() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    rig(&workshop, 1, "['wait']", "");
    let image = elf("microbit", "rtt-report");
    let mut command = workshop.jig(["--json", "run", "-b", "bench-1", &image]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Started::of(&mut command);
    until("the wait", || {
        let events = workshop.run_dirs().first()?.join("events.jsonl");
        fs::read_to_string(events).ok()?.contains("\"step\":\"wait\"").then_some(())
    });
    let served = Served::start(&workshop, "desk-1", &[]);
    let ran = run.finish();
    ran.says(0, &["wait helped"]);
    assert!(notes(&ran).contains("the rig was recovered by wait after probe_missing"), "{ran}");
    drop(served);
    workshop.nothing_lives(DEADLINE).unwrap();
}
