//! Repair runs that are followed, stopped, answered, forked and driven on by other processes.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, ran, side_by_side, until};

const SCRIPT: &str = "[\"command:script\"]";

/// A patch whose build does not end.
const BUILD_HANGS: &str = "echo '/* the build hangs */' >> src/ring.c";

/// A patch whose firmware does not end.
const TEST_HANGS: &str = "sed -i 's/r->count > 8/r->count > 8 || ({ for (;;) ; 0; })/' src/ring.c";

/// Makes a project whose build hangs where the patch says so.
fn project(workshop: &Workshop) -> RepairProject<'_> {
    let project = RepairProject::new(workshop);
    let path = project.repo.join("Makefile");
    let text = fs::read_to_string(&path).unwrap();
    let hangs = "\tmkdir -p out\n\t! grep -q 'the build hangs' src/ring.c || sleep 1000\n";
    fs::write(&path, text.replace("\tmkdir -p out\n", hangs)).unwrap();
    project.commit("a build that may hang");
    project
}

/// Starts a run, and waits until it is in a state.
fn started(workshop: &Workshop, task: &Path, state: &str) -> Started {
    let run = Started::of(workshop.jig(["--json", "repair"]).arg(task).stdout(piped()));
    reached(workshop, state);
    run
}

fn piped() -> std::process::Stdio {
    std::process::Stdio::piped()
}

fn reached(workshop: &Workshop, state: &str) {
    let begins = format!("{state} begins");
    until("the state", || log(workshop).contains(&begins).then_some(()));
}

/// Returns the journal of the last run; nothing before there is one.
fn log(workshop: &Workshop) -> String {
    match folder(workshop) {
        Some(folder) if folder.join("journal.db").is_file() => {
            workshop.run(["repair", "log", "last"]).out()
        }
        _ => String::new(),
    }
}

fn folder(workshop: &Workshop) -> Option<PathBuf> {
    let mut runs = fs::read_dir(workshop.runs().join("repairs")).ok()?;
    Some(runs.next()?.ok()?.path())
}

fn status(workshop: &Workshop) -> Value {
    workshop.run(["--json", "repair", "status", "last"]).json().unwrap()
}

/// Checks that a run has ended as one that was stopped, and that nothing is left of it.
fn is_stopped(project: &RepairProject<'_>, ran: &Ran, why: &str) {
    assert_eq!(ran.code(), 130, "{why}: {ran}");
    let document = ran.json().unwrap();
    assert_eq!(document["state"], "ABORTED", "{why}: {document:#}");
    assert_eq!(document["why"], why, "{document:#}");
    assert_eq!(document["commit"], Value::Null, "{document:#}");
    is_clean(project);
}

fn is_clean(project: &RepairProject<'_>) {
    let workshop = project.workshop;
    workshop.nothing_lives(DEADLINE).unwrap();
    project.is_untouched();
    assert_eq!(project.branches(), [""; 0]);
    let folder = folder(workshop).unwrap();
    for left in ["tree", "scratch"] {
        assert!(!folder.join(left).exists(), "{left} is left in {}", folder.display());
    }
}

#[test]
fn another_process_stops_a_run_in_a_build_and_in_a_test() {
    side_by_side([("BUILD_RUN", BUILD_HANGS), ("TEST_RUN", TEST_HANGS)], |(state, script)| {
        let workshop = Workshop::new();
        let project = project(&workshop);
        let task = project.task(SCRIPT, Some(script));
        let _slot = Slot::take();
        let run = started(&workshop, &task, state);
        let watch =
            Started::of(workshop.jig(["repair", "watch", "last"]).stdout(piped()).stderr(piped()));
        workshop.run(["repair", "stop", "last", "--why", "seen enough"]).says(0, &["to end"]);
        is_stopped(&project, &run.finish(), "seen enough");
        let watched = watch.finish();
        watched.says(130, &["asked to stop: seen enough", "ABORTED reported"]);
        assert!(watched.out().contains("ABORTED in iteration 1: seen enough"), "{watched}");
        workshop.run(["repair", "stop", "last"]).says(2, &["has ended"]);
        // What has ended stays as it ended.
        let again = workshop.run(["--json", "repair", "resume", "last"]);
        is_stopped(&project, &again, "seen enough");
    });
}

#[test]
fn a_signal_stops_a_run_and_a_fork_goes_on_from_before_it() {
    side_by_side([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP], |signal| {
        let workshop = Workshop::new();
        let project = project(&workshop);
        let task = project.task(SCRIPT, Some(MEND));
        let _slot = Slot::take();
        let run = started(&workshop, &task, "TEST_RUN");
        run.signal(signal);
        is_stopped(&project, &run.finish(), "a signal asked for it");
        let built = log(&workshop)
            .lines()
            .find(|row| row.contains("build_passed"))
            .map(|row| row.split_whitespace().nth(1).unwrap().to_owned());
        let forked =
            workshop.run(["--json", "repair", "fork", &format!("last@{}", built.unwrap())]);
        assert_eq!(forked.code(), 0, "{signal}: {forked}");
        assert_eq!(forked.json().unwrap()["state"], "SUCCESS", "{signal}");
        // Behind the end, and where there is no row, nothing parts, and no run is begun.
        let runs = || fs::read_dir(workshop.runs().join("repairs")).unwrap().count();
        let before = runs();
        let fork = |from: &str| workshop.run(["repair", "fork", from]);
        fork("last").says(2, &["ends the run", "part from a row from 1 to"]);
        fork("last@0").says(2, &["the run has no row 0"]);
        fork("last@9999").says(2, &["the run has no row 9999"]);
        assert_eq!(runs(), before, "{signal}");
        // The image that was built is tested, and nothing is proposed or built once more.
        let log = workshop.run(["repair", "log", "last"]).out();
        assert_eq!(log.matches("patch_valid").count(), 1, "{signal}: {log}");
        assert_eq!(log.matches("build_passed").count(), 1, "{signal}: {log}");
        assert_eq!(project.branches().len(), 1, "{signal}");
        workshop.nothing_lives(DEADLINE).unwrap();
    });
}

#[test]
fn a_patch_that_a_person_refuses_is_not_applied_and_its_reason_reaches_the_agent() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    workshop.write("policy.toml", "version = 1\napprove_patches = true\n");
    // The second proposal is the right one, and is made only by one who has read why.
    let script = format!(
        "if grep -q 'too clever by half' \"$1/attempts.json\"; then {MEND}; else \
         sed -i 's/count > 8/count > 7 + 0/' src/ring.c; fi"
    );
    let task = project.task(SCRIPT, Some(&script));
    let _slot = Slot::take();
    let first = ran(workshop.jig(["--json", "repair"]).arg(&task)).unwrap();
    assert_eq!(first.code(), 4, "{first}");
    workshop.run(["repair", "reject", "last", "--why", "too clever by half"]).says(0, &["refused"]);
    let second = workshop.run(["--json", "repair", "resume", "last"]);
    assert_eq!(second.code(), 4, "{second}");
    let status = status(&workshop);
    assert_eq!(status["iteration"], 2, "{status:#}");
    // An answer is for what waits, and for nothing that waits later.
    assert!(status["waits"].is_string(), "{status:#}");
    let waits = status["waits"].as_str().unwrap();
    workshop.run(["repair", "approve", "last", "--digest", waits]).says(0, &["approved"]);
    let third = workshop.run(["--json", "repair", "resume", "last"]);
    assert_eq!((third.code(), &third.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{third}");
}

#[test]
fn two_runs_on_one_repository_work_side_by_side() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let task = project.task(SCRIPT, Some(MEND));
    let _slot = Slot::take();
    let start = || Started::of(workshop.jig(["--json", "repair"]).arg(&task).stdout(piped()));
    let both = [start(), start()].map(Started::finish);
    for ran in &both {
        assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{ran}");
    }
    assert_eq!(project.branches().len(), 2);
    project.is_untouched();
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn one_process_drives_a_run_and_the_next_one_is_told_which() {
    let workshop = Workshop::new();
    let project = project(&workshop);
    let task = project.task(SCRIPT, Some(BUILD_HANGS));
    let _slot = Slot::take();
    let run = started(&workshop, &task, "BUILD_RUN");
    let rows = log(&workshop).lines().count();
    let folder = folder(&workshop).unwrap();
    let holder = fs::read_to_string(folder.join("driver.lock")).unwrap();
    let said = format!("process {} drives this run", holder.trim());
    workshop.run(["repair", "resume", "last"]).says(2, &[&said, "jig repair watch"]);
    assert!(workshop.processes().iter().any(|(pid, _)| pid.to_string() == holder.trim()));
    assert_eq!(log(&workshop).lines().count(), rows, "the refused process wrote a row");
    workshop.run(["repair", "stop", "last"]).says(0, &["to end"]);
    is_stopped(&project, &run.finish(), "stopped by hand");
}

#[test]
fn a_person_at_a_terminal_answers_while_the_run_waits() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    workshop.write("policy.toml", "version = 1\napprove_patches = true\n");
    let task = project.task(SCRIPT, Some(MEND));
    let _slot = Slot::take();
    let mut jig = workshop.jig(["--json", "repair", "--mode", "interactive"]);
    let run = Started::of(jig.arg(&task).stdout(piped()));
    let waits = until("an approval that is waited for", || {
        log(&workshop).contains("waits for an approval").then(|| status(&workshop))
    });
    let digest = waits["waits"].as_str().unwrap();
    workshop.run(["repair", "approve", "last", "--digest", digest]).says(0, &["approved"]);
    let ran = run.finish();
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{ran}");
}

#[test]
fn a_build_that_is_not_said_is_asked_for_with_the_command_to_type() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let repo = project.repo.to_str().unwrap();
    let args = [
        "repair",
        "--repo",
        repo,
        "--plan",
        "plan.toml",
        "-b",
        "mps2-an385",
        "--goal",
        "it passes",
    ];
    // Two files say how it is built.
    fs::write(project.repo.join("CMakeLists.txt"), "").unwrap();
    workshop.run(args).says(
        2,
        &[
            "what builds the firmware, and the image that it makes, is not said",
            "-b mps2-an385 --goal \"it passes\" --build \"make\" --artifact",
        ],
    );
    let named = workshop.run(args.into_iter().chain(["--build", "ninja -C out"]));
    named.says(2, &["--build \"ninja -C out\" --artifact"]);
}

#[test]
fn what_other_processes_write_loses_the_values_of_the_agents_variables() {
    let workshop = Workshop::new();
    let project = project(&workshop);
    let task = project.task("[\"mcp\", \"command:script\"]", Some(MEND));
    let text = fs::read_to_string(&task).unwrap();
    let text = text.replace("timeout = \"2s\"", "env = [\"FIXER_CODE\"]");
    fs::write(&task, text.replace("a ninth byte", "correct-horse-battery")).unwrap();
    let with = |args: &[&str]| {
        ran(workshop.jig(args.iter().copied()).env("FIXER_CODE", "correct-horse-battery")).unwrap()
    };
    let _slot = Slot::take();
    let mut command = workshop.jig(["repair"]);
    command.arg(&task).env("FIXER_CODE", "correct-horse-battery");
    let run = Started::of(command.stdout(piped()).stderr(piped()));
    until("a run that waits for a patch", || {
        let status = workshop.run(["--json", "repair", "status", "last"]).json().ok()?;
        (status["waits_for"] == "patch").then_some(())
    });
    // What is asked for is not answered while it is looked at.
    run.signal(Signal::SIGKILL);
    run.finish();
    with(&["repair", "reject", "last", "--why", "not correct-horse-battery"]).says(0, &["refused"]);
    with(&["repair", "stop", "last", "--why", "no correct-horse-battery"]).says(0, &["asked"]);
    let log = workshop.run(["--json", "repair", "log", "last"]).out();
    assert!(!log.contains("correct-horse-battery"), "{log}");
    assert_eq!(log.matches("[removed: FIXER_CODE]").count(), 3, "{log}");
}

#[test]
fn make_and_the_only_image_that_it_makes_need_not_be_said() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let repo = project.repo.to_str().unwrap();
    let slot = Slot::take();
    let ran = workshop.run([
        "--json",
        "repair",
        "--repo",
        repo,
        "--plan",
        "plan.toml",
        "--policy",
        "policy.toml",
        "-b",
        "mps2-an385",
    ]);
    drop(slot);
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{ran}");
    assert!(log(&workshop).contains("the image is out/app.elf"), "{}", log(&workshop));
}

#[test]
fn candidates_are_screened_at_an_emulated_place_of_the_same_board() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let task = project.task(SCRIPT, Some(MEND));
    let text = fs::read_to_string(&task).unwrap();
    let on = |place: &str| {
        let board = "board = \"mps2-an385\"\n";
        fs::write(&task, text.replace(board, &format!("{board}screen-on = \"{place}\"\n")))
            .unwrap();
        workshop.run(["repair", task.to_str().unwrap()])
    };
    on("riscv32-virt").says(2, &["riscv32-virt has another board", "of the board mps2-an385"]);
    on("no-such-place").says(2, &["no-such-place"]);
}
