//! A rig that breaks under a test, is recovered, and gives the test its turn back; with real
//! emulators that are really killed, and a power switch that really switches.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, until};

/// Starts a run whose firmware says nothing for more than a second, and waits until it is on.
fn slow_run(workshop: &Workshop, more: &[&str]) -> Started {
    let image = elf("mps2-an385", "slow-start");
    let before = workshop.run_dirs().len();
    let mut command = workshop.jig(["--json", "run", "-b", "mps2-an385", &image]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Started::of(&mut command);
    until("a board that is on", || {
        let dirs = workshop.run_dirs();
        let events = dirs.get(before).map(|dir| dir.join("events.jsonl"))?;
        fs::read_to_string(events).ok()?.contains("\"event\":\"boot\"").then_some(())
    });
    run
}

fn emulator(workshop: &Workshop) -> Pid {
    until("an emulator", || workshop.emulators().pop())
}

fn record(workshop: &Workshop) -> Value {
    let dir = workshop.run_dirs().pop().unwrap();
    serde_json::from_slice(&fs::read(dir.join("record.json")).unwrap()).unwrap()
}

/// Checks that the first attempt was spoiled and made again, and that the run passed.
#[track_caller]
fn recovered(workshop: &Workshop, ran: &Ran, cause: &str, by: &str) {
    ran.says(0, &[]);
    let verdict = &ran.json().unwrap()["verdict"];
    let note = format!("the rig was recovered by {by} after {cause}");
    assert!(verdict["notes"].as_array().unwrap().contains(&note.into()), "{ran}");
    let record = record(workshop);
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!(
        (&attempts[0]["replaced"], &attempts[0]["verdict"]["cause"]),
        (&true.into(), &cause.into())
    );
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_test_whose_emulator_is_killed_has_its_turn_back() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = slow_run(&workshop, &[]);
    kill(emulator(&workshop), Signal::SIGKILL).unwrap();
    recovered(&workshop, &run.finish(), "emulator_killed", "restart-emulator");

    // The recovery is proven by the known-good image, too.
    let run = slow_run(&workshop, &[]);
    kill(emulator(&workshop), Signal::SIGKILL).unwrap();
    recovered(&workshop, &run.finish(), "emulator_killed", "restart-emulator");
    let record = record(&workshop);
    let canaries = record["attempts"].as_array().unwrap().iter();
    let canaries: Vec<_> = canaries.filter(|made| made["purpose"] == "canary").collect();
    assert_eq!(canaries.len(), 1, "{record}");
    assert_eq!(canaries[0]["verdict"]["cause"], "expectations_met");
    let report = workshop.run(["--json", "runs", "show"]);
    report.says(0, &[]);
    // Each of both recoveries is remembered of the place, and that it works.
    let health = workshop.run(["--json", "health", "-b", "mps2-an385"]);
    assert_eq!(health.json().unwrap()["places"][0]["state"], "suspect", "{health}");
    workshop.run(["recover", "-b", "mps2-an385"]).says(0, &["works"]);
    let health = workshop.run(["--json", "health", "-b", "mps2-an385"]);
    assert_eq!(health.json().unwrap()["places"][0]["state"], "healthy", "{health}");
}

#[test]
fn a_test_whose_emulator_stands_still_has_its_turn_back() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = slow_run(&workshop, &["--timeout", "60s"]);
    kill(emulator(&workshop), Signal::SIGSTOP).unwrap();
    recovered(&workshop, &run.finish(), "emulator_stuck", "restart-emulator");
}

#[test]
fn a_failure_is_no_less_one_behind_a_repair() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    // Known to work here.
    workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]).says(0, &[]);
    let failed = workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-fail")]);
    failed.says(1, &["test_failed"]);
    assert_eq!(record(&workshop)["attempts"].as_array().unwrap().len(), 1);
    // Silence may be the rig's; the known-good image shows that it is not.
    let image = elf("microbit", "silent");
    let silent = workshop.run(["run", "-b", "microbit", "--timeout", "1s", &image]);
    silent.says(4, &["no_output", "known-good image", "passed on this place"]);
}

#[test]
fn the_ladder_is_shown_before_it_is_run() {
    let workshop = Workshop::new();
    let ladder = workshop.run(["--json", "recover", "-b", "microbit", "--dry-run"]);
    ladder.says(0, &[]);
    let ladder = ladder.json().unwrap();
    let steps = ladder["ladder"].as_array().unwrap();
    let taken: Vec<_> = steps.iter().filter(|step| step["skip"].is_null()).collect();
    assert_eq!(taken.len(), 2, "{ladder}");
    assert_eq!(
        (&taken[0]["step"], &taken[1]["step"]),
        (&"restart-emulator".into(), &"wait".into())
    );
    let timeout = std::time::Duration::from_millis(ladder["timeout_ms"].as_u64().unwrap());
    assert!(timeout > std::time::Duration::ZERO);
    let shown = workshop.run(["recover", "-b", "microbit", "--dry-run"]).out();
    assert!(shown.starts_with(&format!("recovery steps of microbit, timeout {timeout:?}:\n")));
    assert!(workshop.run_dirs().is_empty(), "nothing was touched");
    let unknown = workshop.run(["recover", "-b", "microbit", "--from", "kick"]);
    unknown.says(2, &["kick"]);
}

/// A switch whose board does not come up at the first power-ons, as one that has latched up:
/// its probe is there only from the fourth.
const PDU: &str = r#"#!/bin/sh
case $1 in
set)
    echo "$3" >> sets
    if [ "$3" = off ]; then
        # In order, because a board's flash outlives its power.
        [ -f pid ] && kill "$(cat pid)" && while [ -S "$SOCKET" ]; do sleep 0.02; done
        rm -f pid
    elif [ "$(grep -c on sets)" -gt 3 ] && [ ! -f pid ]; then
        setsid "$JIG" probe serve -b desk > served 2>&1 &
        echo $! > pid
        until [ -S "$SOCKET" ]; do sleep 0.02; done
    fi ;;
get) echo "state: $(tail -n 1 sets)" ;;
esac
"#;

/// Ends what the switch has started.
struct Switched(PathBuf);

impl Drop for Switched {
    fn drop(&mut self) {
        let pid = fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

#[test]
fn a_board_that_has_latched_up_is_given_power_until_it_comes() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let socket = workshop.path("../home/STATE/jig/places/desk.probe");
    workshop.write(
        "rig.toml",
        format!(
            "version = 1\n\
             [[place]]\nname = \"desk\"\nboard = \"microbit\"\nemulator = {{}}\n\
             [[place]]\nname = \"bench\"\nboard = \"microbit\"\n\
             probe = {{ selector = \"20b7:9db1:unix:{}\" }}\n\
             power = {{ device = \"pdu\", outlet = \"1\", off_time = \"20ms\" }}\n\
             [[power]]\nname = \"pdu\"\nmin_interval = \"0ms\"\ntimeout = \"60s\"\n[power.command]\n\
             set = [\"./pdu\", \"set\", \"{{outlet}}\", \"{{state}}\"]\n\
             status = [\"./pdu\", \"get\", \"{{outlet}}\"]\n",
            socket.display()
        ),
    );
    workshop.write("pdu", PDU);
    fs::set_permissions(workshop.path("pdu"), fs::Permissions::from_mode(0o755)).unwrap();
    workshop.write("sets", "off\n");
    let _switched = Switched(workshop.path("pid"));
    let image = elf("microbit", "rtt-report");
    let mut command = workshop.jig(["--json", "run", "-b", "bench", &image]);
    command.env("JIG", env!("CARGO_BIN_EXE_jig")).env("SOCKET", &socket);
    let ran = crate::workshop::ran(&mut command).unwrap();
    ran.says(0, &["reopen did not help", "the rig works again"]);
    let record = record(&workshop);
    let attempts = record["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["replaced"]), (2, &true.into()), "{record}");
    let sets = fs::read_to_string(workshop.path("sets")).unwrap();
    assert!(sets.ends_with("off\n"), "the board is left without power: {sets}");
    workshop.nothing_lives(DEADLINE).unwrap();
}
