//! However a run ends, nothing of it is left: no emulator, no half-written record, no unclear
//! message.
//!
//! Killing happens at moments that are thrown; the seed is printed, and `JIG_TEST_SEED`
//! throws the same moments again.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jig_model::{Cause, VerdictKind};
use jig_rig::store::{RunRecord, RunState};
use nix::sys::signal::{Signal, kill};

use crate::dice::Dice;
use crate::fixtures::set_limit;
use crate::manifest::{elf, entry};
use crate::workshop::{Ran, Slot, Started, Workshop, name_of, ran, until};

/// How long an emulator may live on after its jig was killed: milliseconds in truth, but a
/// busy machine lets it wait to die. One that was forgotten runs on for far longer.
const GONE: Duration = Duration::from_secs(30);

/// How many kills have to land while jig is alive.
const KILLS: usize = 50;

/// A firmware that never ends by itself, on a board that is quick to start.
fn endless() -> Vec<String> {
    let image = elf("microbit", "hang-in-test");
    let run =
        ["run", "-b", "microbit", image.as_str(), "--timeout", "100s", "--max-recoveries", "0"];
    run.map(String::from).to_vec()
}

/// Runs of several kinds: a short one, a talkative one, one with a plan, one of many attempts.
fn jobs() -> Vec<Vec<String>> {
    let run = |board: &str, fixture: &str, more: &[&str]| -> Vec<String> {
        let image = elf(board, fixture);
        let head = ["run", "-b", board, &image];
        head.iter().chain(more).map(|&arg| arg.to_owned()).collect()
    };
    let plan = entry("mps2-an385", "shell").plan().unwrap().display().to_string();
    let image = elf("mps2-an385", "shell");
    let test = ["test", "-b", "mps2-an385", &plan, "--image", &image].map(String::from);
    vec![
        run("microbit", "unity-pass", &[]),
        run("lm3s6965evb", "output-flood", &["--timeout", "60s"]),
        run("lm3s6965evb", "flaky", &["--repeat", "4"]),
        test.to_vec(),
    ]
}

/// Reads the records of all runs; each must be whole.
fn records(workshop: &Workshop) -> Vec<RunRecord> {
    let read = |dir: &Path| {
        RunRecord::read(&dir.join("record.json"))
            .unwrap_or_else(|error| panic!("the record of {} is no record: {error}", dir.display()))
    };
    workshop.run_dirs().iter().map(|dir| read(dir)).collect()
}

fn only_record(workshop: &Workshop) -> RunRecord {
    let mut records = records(workshop);
    assert_eq!(records.len(), 1, "one run was made");
    records.remove(0)
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// Starts an endless run and waits until its firmware has printed.
fn under_way(workshop: &Workshop) -> Started {
    let run = Started::of(quiet(&mut workshop.jig(endless())));
    until("the first console output", || {
        let dir = workshop.run_dirs().pop()?;
        let log = fs::metadata(dir.join("consoles/1/uart0.raw")).ok()?;
        (log.len() > 0).then_some(())
    });
    run
}

fn emulator(workshop: &Workshop) -> nix::unistd::Pid {
    let all = workshop.emulators();
    assert_eq!(all.len(), 1, "one emulator runs: {:?}", workshop.processes());
    all[0]
}

#[test]
fn killed_at_any_moment() {
    let _slot = Slot::take();
    let (workshop, mut dice) = (Workshop::new(), Dice::new());
    // A flood of 2 MiB would take most of the test's time.
    set_limit(&workshop, "lm3s6965evb", "flood = \"128K\"");
    // How long each kind of run takes tells which moments there are.
    let mut jobs: Vec<_> = jobs()
        .into_iter()
        .map(|job| {
            let began = Instant::now();
            ran(&mut workshop.jig(&job)).unwrap();
            (job, began.elapsed())
        })
        .collect();
    let mut landed = 0;
    for throw in 0..KILLS * 4 {
        let kinds = jobs.len();
        let (job, takes) = &mut jobs[throw % kinds];
        let mut command = workshop.jig(&*job);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // This is no wait for anything: the moment is what is thrown.
        let moment = Duration::from_micros(dice.below((takes.as_micros() as u64).max(1)));
        std::thread::sleep(moment);
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.signal() == Some(Signal::SIGKILL as i32) {
            landed += 1;
        } else {
            // It was quicker than the first time, when the machine may have been busier.
            *takes = moment;
        }
        if let Err(left) = workshop.nothing_lives(GONE) {
            panic!("killed {moment:?} into {job:?}: {left}");
        }
        records(&workshop);
        if landed == KILLS {
            break;
        }
    }
    assert_eq!(landed, KILLS, "kills that met a living jig");

    let before: Vec<_> =
        records(&workshop).into_iter().filter(|r| r.state == RunState::Running).collect();
    let next = workshop.run(&jobs[0].0);
    next.says(0, &[]);
    for run in &before {
        next.says(0, &[run.id.as_str(), "abandoned"]);
    }
    for record in records(&workshop) {
        let verdict =
            record.verdict.as_ref().unwrap_or_else(|| panic!("{} has no verdict", record.id));
        assert_eq!(
            record.state == RunState::Abandoned,
            verdict.cause == Cause::Abandoned,
            "{}",
            record.id
        );
        assert_ne!(record.state, RunState::Running, "{}", record.id);
    }
    let hidden: Vec<_> = fs::read_dir(workshop.runs())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| name_of(path).starts_with('.'))
        .collect();
    assert!(hidden.is_empty(), "the sweep left {hidden:?}");
}

#[test]
fn the_next_start_tells_of_a_killed_run() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = under_way(&workshop);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.finish().status.signal(), Some(9));
    workshop.nothing_lives(GONE).unwrap();
    let killed = only_record(&workshop);
    assert_eq!(killed.state, RunState::Running, "nobody could write that it is not");

    let next = workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]);
    next.says(0, &[killed.id.as_str(), "was killed before it ended", "abandoned"]);
    let swept = &records(&workshop)[0];
    assert_eq!(swept.id, killed.id);
    assert_eq!(swept.state, RunState::Abandoned);
    assert_eq!(swept.verdict.as_ref().unwrap().cause, Cause::Abandoned);
    assert_eq!(swept.exit_code, Some(130));
    // And only once.
    let third = workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]);
    assert!(!third.err().contains(killed.id.as_str()), "told twice: {third}");
}

#[test]
fn asked_to_stop() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let _slot = Slot::take();
        let workshop = Workshop::new();
        let run = under_way(&workshop);
        run.signal(signal);
        let ran = run.finish();
        ran.says(130, &[]);
        workshop.nothing_lives(GONE).unwrap();
        let record = only_record(&workshop);
        let verdict = record.verdict.unwrap();
        assert_eq!(
            (record.state, verdict.kind),
            (RunState::Ended, VerdictKind::Cancelled),
            "{signal}"
        );
        assert_eq!(record.exit_code, Some(130));
    }
}

#[test]
fn asked_to_stop_twice() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = under_way(&workshop);
    run.signal(Signal::SIGINT);
    run.signal(Signal::SIGINT);
    run.finish().says(130, &[]);
    workshop.nothing_lives(GONE).unwrap();
    // The first may have been enough, or the second came before the record was written;
    // then the next start says so.
    let state = only_record(&workshop).state;
    assert!(matches!(state, RunState::Ended | RunState::Running), "{state:?}");
    workshop.run(["run", "-b", "microbit", &elf("microbit", "unity-pass")]).says(0, &[]);
    let verdict = records(&workshop)[0].verdict.clone().unwrap();
    assert_eq!(verdict.kind, VerdictKind::Cancelled);
}

#[test]
fn the_emulator_is_killed() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = under_way(&workshop);
    kill(emulator(&workshop), Signal::SIGKILL).unwrap();
    let ran = run.finish();
    blames_the_rig(&workshop, &ran, Cause::EmulatorKilled);
}

#[test]
fn the_emulator_is_stopped() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let run = under_way(&workshop);
    let since = Instant::now();
    kill(emulator(&workshop), Signal::SIGSTOP).unwrap();
    let ran = run.finish();
    let took = since.elapsed();
    blames_the_rig(&workshop, &ran, Cause::EmulatorStuck);
    // One second between two questions and five for an answer, far from the plan's end.
    assert!(took < Duration::from_secs(60), "it took {took:?} to notice");
}

fn blames_the_rig(workshop: &Workshop, ran: &Ran, cause: Cause) {
    ran.says(75, &[cause.as_str()]);
    workshop.nothing_lives(GONE).unwrap();
    let record = only_record(workshop);
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, cause), "{ran}");
    assert_eq!((record.state, record.exit_code), (RunState::Ended, Some(75)));
}

#[test]
fn a_runs_folder_that_cannot_be_written() {
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let file = workshop.write("file", "not a folder");
    // The kernel lets no user make a folder in sysfs, the superuser included.
    for runs in [file.join("runs"), "/sys/jig-runs".into()] {
        let runs = runs.display().to_string();
        let ran = workshop.run(["run", "-b", "microbit", &image, "--runs", &runs]);
        ran.says(75, &[&runs]);
        assert!(ran.stdout.is_empty(), "nothing ran: {ran}");
    }
}

/// Runs jig where no file can grow beyond a limit: to a program this is what a full disk is,
/// and unlike a mounted one it needs no rights.
fn with_file_limit(workshop: &Workshop, kib: u32, args: &[String]) -> Ran {
    let jig = workshop.jig(args);
    let mut shell = Command::new("sh");
    // POSIX counts in blocks of 512 bytes.
    let script = format!("ulimit -f {}; exec \"$@\"", kib * 2);
    shell.args(["-c", &script, "sh"]).arg(jig.get_program()).args(jig.get_args());
    shell.env_clear().envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(jig.get_current_dir().unwrap()).stdin(Stdio::null());
    ran(&mut shell).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn the_disk_is_full_while_the_target_prints() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("riscv32-virt", "output-flood");
    let args = ["run", "-b", "riscv32-virt", &image, "--timeout", "120s"].map(String::from);
    let since = Instant::now();
    let ran = with_file_limit(&workshop, 256, &args);
    let took = since.elapsed();
    blames_the_rig(&workshop, &ran, Cause::StorageFailed);
    assert!(took < Duration::from_secs(60), "nobody waits on, but it took {took:?}");
}

#[test]
fn the_disk_is_full_from_the_beginning() {
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let args = ["run", "-b", "microbit", &image].map(String::from);
    let ran = with_file_limit(&workshop, 1, &args);
    ran.says(75, &["could not write", "ulimit -f unlimited"]);
    workshop.nothing_lives(GONE).unwrap();
}
