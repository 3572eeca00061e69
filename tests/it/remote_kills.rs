//! Callers, the service and workers that are killed at any moment of a run.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::dice::Dice;
use crate::manifest::elf;
use crate::remote::TwoHosts;
use crate::workshop::{Slot, Started, Workshop, until};

/// How often a process is killed. `JIG_TEST_KILLS=200` takes some minutes.
fn kills() -> u64 {
    std::env::var("JIG_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// Longest time before a process is killed: that of a run, and some more.
const LONGEST_MS: u64 = 1500;

fn worker(rig: &Workshop) -> Option<Pid> {
    rig.processes().into_iter().find(|(_, line)| line.contains(" worker --job")).map(|(pid, _)| pid)
}

/// Counts the runs of a rig that claim to be under way.
fn running(rig: &Workshop) -> usize {
    let listed = rig.run(["--json", "runs", "list"]).json().unwrap();
    let runs = listed["runs"].as_array().unwrap();
    runs.iter().filter(|run| run["state"] == "running").count()
}

#[test]
fn no_kill_of_either_side_leaves_a_place_taken_or_makes_a_run_twice() {
    let _slot = Slot::take();
    let mut hosts = TwoHosts::new();
    let (image, mut dice) = (elf("microbit", "unity-pass"), Dice::new());
    let (mut answered, mut struck) = (0, [0_u64; 3]);
    for round in 0..kills() {
        let before = hosts.rig.run_dirs().len();
        let mut command = hosts.call(&["--json", "run", "-b", "microbit", &image]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let caller = Started::of(&mut command);
        // A random moment, which is what the test is about.
        thread::sleep(Duration::from_millis(dice.below(LONGEST_MS)));
        let victim = usize::try_from(dice.below(3)).unwrap();
        match victim {
            0 => caller.signal(Signal::SIGKILL),
            1 => hosts.replace_service(),
            // It may have ended, or not begun.
            _ => {
                let _ = worker(&hosts.rig).map(|pid| kill(pid, Signal::SIGKILL));
            }
        }
        struck[victim] += 1;
        let ended = caller.finish();
        // Of a killed caller nothing is told. A caller that had no connection yet says so, and one whose
        // worker was killed is told: both are the rig's.
        let fine: &[i32] = if victim == 0 { &[-1, 0] } else { &[0, 75] };
        let code = ended.status.code().unwrap_or(-1);
        assert!(fine.contains(&code), "round {round}, victim {victim}: {ended}");
        answered += u64::from(code == 0);
        // The command ends by itself, whatever became of its caller.
        until("the end of the command", || worker(&hosts.rig).is_none().then_some(()));
        let runs = hosts.rig.run_dirs().len() - before;
        assert!(runs <= 1, "round {round}: {runs} runs of one command");
        // The place is free: it is used at once, by its own host.
        hosts.rig.run(["run", "-b", "microbit", &image]).says(0, &["PASS"]);
    }
    eprintln!("{answered} of {} callers got their verdict; struck {struck:?}", kills());
    assert_eq!(running(&hosts.rig), 0, "a run that was killed is told as one under way");
    hosts.rig.run(["audit", "verify"]).says(0, &[]);
    until("the end of all emulators", || hosts.rig.emulators().is_empty().then_some(()));
    let broken = hosts.rig.run_dirs().into_iter().filter(|dir| {
        let record = fs::read(dir.join("record.json")).unwrap_or_default();
        serde_json::from_slice::<Value>(&record).is_err()
    });
    assert_eq!(broken.count(), 0, "a record is damaged");
}
