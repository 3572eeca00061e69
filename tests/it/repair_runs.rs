//! `jig repair` on the projects of `firmware-fixtures/repair`, with an agent that is a script: what a
//! right, a wrong, a forbidden and no patch lead to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;

use crate::repair_projects::{BOARD, IMAGE, Project, git, project};
use crate::workshop::{DEADLINE, Ran, Slot, Workshop, ran, side_by_side};

/// Writes a task whose only agent is a script that works in its own work tree.
fn task(workshop: &Workshop, project: &Project, script: &str) -> PathBuf {
    let agent = workshop.write("agent.sh", format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let (plan, held_out) = (project.file("plan.toml"), project.file("held-out.toml"));
    workshop.write(
        "task.toml",
        format!(
            r#"version = 1
goal = "the unit tests pass"
repo = "firmware"
board = "{BOARD}"
plan = "{}"
held-out = "{}"
agents = ["command:script"]
[build]
command = ["make", "--silent"]
artifact = "{IMAGE}"
[agent.script]
command = ["{}", "{{bundle}}"]
timeout = "20s"
[limits]
iterations = 2
"#,
            plan.display(),
            held_out.display(),
            agent.display(),
        ),
    )
}

fn branches(repository: &std::path::Path) -> Vec<String> {
    let all = git(repository, &["for-each-ref", "--format=%(refname)"]);
    all.lines().map(str::to_owned).filter(|name| name != "refs/heads/main").collect()
}

/// Runs the loop on a project. Whatever it comes to, the user's checkout stays as it is.
fn repaired(workshop: &Workshop, project: &Project, script: &str) -> (Ran, Value, Vec<String>) {
    let repository = project.assemble(workshop, "firmware");
    let task = task(workshop, project, script);
    let slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    drop(slot);
    let document = ran.json().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(git(&repository, &["status", "--porcelain"]), "", "{ran}");
    let trees = git(&repository, &["worktree", "list", "--porcelain"]);
    assert_eq!(trees.matches("worktree ").count(), 1, "{trees}");
    workshop.nothing_lives(DEADLINE).unwrap();
    let left = branches(&repository);
    (ran, document, left)
}

fn apply(project: &Project, patch: &str) -> String {
    format!("git apply '{}'", project.file(patch).display())
}

#[test]
fn a_right_patch_is_proven_by_the_held_out_plan() {
    // A failed test, a hang, a fault and a reset by the watchdog.
    side_by_side(["ring-wrap", "missing-volatile", "unaligned", "watchdog-not-fed"], |name| {
        let (workshop, project) = (Workshop::new(), project(name));
        let (ran, document, branches) = repaired(&workshop, &project, &apply(&project, "fix.diff"));
        assert_eq!(ran.code(), 0, "{name}: {ran}");
        assert_eq!(document["state"], "SUCCESS", "{name}: {document:#}");
        assert_eq!(document["confidence"], "held-out", "{name}: {document:#}");
        assert_eq!(document["agent"], "command:script", "{name}: {document:#}");
        let branch = format!("refs/heads/jig/repair/{}", document["run"].as_str().unwrap());
        assert_eq!(branches, [branch], "{name}");
        let commit = document["commit"].as_str().unwrap();
        let diff = git(&workshop.path("firmware"), &["diff", "--abbrev=7", "HEAD", commit]);
        assert_eq!(diff, fs::read_to_string(project.file("fix.diff")).unwrap(), "{name}");
    });
}

#[test]
fn no_other_patch_is_a_repair() {
    let project_and =
        |name, script: &str, code, words| (project(name), script.to_owned(), code, words);
    let patched = |name, patch, words| {
        let project = project(name);
        let script = apply(&project, patch);
        (project, script, 1, words)
    };
    let many_lines = "for i in $(seq 300); do echo \"/* $i */\" >> src/ring.c; done";
    side_by_side(
        [
            patched("ring-wrap", "wrong.diff", "the held-out plan fails"),
            patched("forbidden-test", "fix.diff", "belongs to a test and is protected"),
            patched("forbidden-linker", "fix.diff", "belongs to a linker script and is protected"),
            project_and("ring-wrap", many_lines, 1, "changed lines: 300, and 200 are allowed"),
            project_and("ring-wrap", "true", 1, "it changed nothing"),
            project_and("already-green", "echo >> src/bits.c", 4, "pass without a patch"),
            project_and("flaky", "echo >> src/noise.c", 4, "without a patch"),
        ],
        |(project, script, code, words)| {
            let name = &project.name;
            let workshop = Workshop::new();
            let (ran, document, branches) = repaired(&workshop, &project, &script);
            assert_eq!(ran.code(), code, "{name}, {script}: {ran}");
            assert_eq!(document["state"], "FAILURE", "{name}, {script}: {document:#}");
            assert_eq!(document["commit"], Value::Null, "{name}, {script}");
            assert_eq!(branches, [""; 0], "{name}, {script}");
            let log = workshop.run(["repair", "log", "last"]).out();
            assert!(log.contains(words), "{name}, {script}: {words:?} is not in {log}");
            // Where nothing fails for certain, no agent is asked.
            assert_eq!(log.contains("PATCH_GENERATION"), code == 1, "{name}, {script}: {log}");
        },
    );
}

#[test]
fn an_agent_that_does_not_end_is_ended() {
    let (workshop, project) = (Workshop::new(), project("ring-wrap"));
    let (script, short) = ("sleep 1000 & wait", "timeout = \"1s\"");
    project.assemble(&workshop, "firmware");
    let task = task(&workshop, &project, script);
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, text.replace("timeout = \"20s\"", short)).unwrap();
    let slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    drop(slot);
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (1, &Value::from("FAILURE")), "{ran}");
    let log = workshop.run(["repair", "log", "last"]).out();
    assert!(log.contains("did not end within 1s"), "{log}");
    workshop.nothing_lives(DEADLINE).unwrap();
}
