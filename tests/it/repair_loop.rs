//! `jig repair` with scripted agents, real builds and an emulated board.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::remote::{OverSsh, TwoHosts};
use crate::repair_project::{MEND, RING, RepairProject};
use crate::workshop::{Ran, Slot, Started, Workshop, ran, side_by_side, until};

/// Runs `jig --json repair` with a task.
fn repair(project: &RepairProject<'_>, agents: &str, script: Option<&str>) -> Ran {
    let task = project.task(agents, script);
    let _slot = Slot::take();
    ran(project.workshop.jig(["--json", "repair"]).arg(task)).unwrap()
}

const SCRIPT: &str = "[\"command:script\"]";

#[test]
fn a_right_patch_becomes_a_proven_branch_and_nothing_else() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let ran = repair(&project, SCRIPT, Some(MEND));
    assert_eq!(ran.code(), 0, "{ran}");
    let document = ran.json().unwrap();
    assert_eq!(document["state"], "SUCCESS", "{document:#}");
    assert_eq!(document["confidence"], "plausible");
    assert_eq!(document["proof"]["clean_build"], true);
    assert_eq!(document["proof"]["reverted"]["passed"], false);
    assert_eq!(
        (&document["before"]["passed"], &document["after"]["passed"]),
        (&1.into(), &2.into())
    );
    assert_eq!(document["suspects"][0]["rank"], 1, "{document:#}");
    let transitions = document["transitions"].as_array().unwrap();
    for (from, to) in transitions.iter().zip(&transitions[1..]) {
        assert_eq!(from["to"], to["from"], "{document:#}");
    }
    assert_eq!(
        (&transitions[0]["from"], &transitions.last().unwrap()["to"]),
        (&Value::from("INIT"), &Value::from("SUCCESS"))
    );
    assert!(transitions[0]["evidence"][0]["file"].as_str().unwrap().ends_with(".raw"));
    project.is_untouched();
    let run = document["run"].as_str().unwrap();
    assert_eq!(project.branches(), [format!("refs/heads/jig/repair/{run}")]);
    let commit = document["commit"].as_str().unwrap();
    let diff = project.git(&["diff", "--stat", "HEAD", commit]);
    assert!(diff.contains("1 file changed, 1 insertion(+), 1 deletion(-)"), "{diff}");
    // The journal says the same to whoever asks.
    let status = workshop.run(["--json", "repair", "status", "last"]).json().unwrap();
    assert_eq!(
        (&status["state"], &status["exit_code"]),
        (&Value::from("SUCCESS"), &Value::from(0))
    );
    workshop
        .run(["explain", "failure", run])
        .says(2, &["is a repair run", "its runs of the rig are 2", "jig explain failure 2"]);
    let log = workshop.run(["--json", "repair", "log", run]).out();
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().zip(1..).all(|(row, seq)| row["seq"] == seq));
    assert_eq!(rows.last().unwrap()["event"], "reported");
    let (busy, all) = (document["busy_ms"].as_u64(), document["duration_ms"].as_u64());
    assert!(busy > Some(0) && busy <= all, "{document:#}");
    let export =
        |format| workshop.run(["repair", "export", run, "--format", format]).json().unwrap();
    let spans = export("otlp")["resourceSpans"][0]["scopeSpans"][0]["spans"].take();
    let steps = rows.iter().filter(|row| row["kind"] == "outcome").count();
    assert_eq!(spans.as_array().unwrap().len(), steps + 1);
    assert_eq!(spans[0]["status"]["code"], 1);
    let trajectory = export("atif");
    let agent = |step: &&Value| step["source"] == "agent";
    let proposals: Vec<_> = trajectory["steps"].as_array().unwrap().iter().filter(agent).collect();
    assert_eq!(proposals.len(), 1);
    assert_eq!(proposals[0]["message"], "the bound is one too high");
    workshop
        .run(["repair", "approve", run, "--digest", "sha256:00"])
        .says(2, &["waits for no approval"]);
}

#[test]
fn patches_that_do_not_help_or_are_not_allowed_end_without_a_branch() {
    side_by_side(
        [
            ("echo '/* same */' >> src/ring.c", "pass"),
            ("echo 'int broken = ;' >> src/ring.c", "error"),
            ("sed -i 's/return !ring_put/return 1 || !ring_put/' test/test_ring.c", "is protected"),
            (
                "sed -i 's/return 1;/put(\"OK\\\\n\"); return 1;/' src/ring.c",
                "prints a test result",
            ),
            ("true", "changed nothing"),
            ("sleep 1000 & wait", "did not end within 2s"),
        ],
        |(script, words)| {
            let workshop = Workshop::new();
            let project = RepairProject::new(&workshop);
            let ran = repair(&project, SCRIPT, Some(script));
            assert_eq!(ran.code(), 1, "{script}: {ran}");
            assert_eq!(ran.json().unwrap()["state"], "FAILURE", "{script}");
            let log = workshop.run(["repair", "log", "last"]).out();
            assert!(log.contains(words), "{script}: {log}");
            assert_eq!(project.branches(), [""; 0], "{script}");
            project.is_untouched();
            workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
        },
    );
}

#[test]
fn an_agent_is_told_all_errors_of_a_build_once() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let errors = "sed -i 's/count > 8/cuont >= 8/; s/return 0;/return zero;/; s/r->head/r->haed/' \
                  src/ring.c; echo \"// $$\" >> src/ring.c";
    let ran = repair(&project, SCRIPT, Some(errors));
    assert_eq!(ran.code(), 1, "{ran}");
    let document = ran.json().unwrap();
    let transitions = document["transitions"].as_array().unwrap();
    let failed = transitions.iter().find(|one| one["event"] == "build_failed").unwrap();
    let reason = failed["reason"].as_str().unwrap();
    for error in ["cuont", "zero", "haed"] {
        assert!(reason.contains(error), "{error} is not in {reason}");
    }
    let evidence = &failed["evidence"][0];
    let build_log = fs::read_to_string(evidence["file"].as_str().unwrap()).unwrap();
    let at = |end: usize| evidence["bytes"][end].as_u64().unwrap() as usize;
    assert!(build_log[at(0)..at(1)].contains(" error: "), "{evidence}");
    let run = workshop.runs().join("repairs").join(document["run"].as_str().unwrap());
    let bundle = run.join("iteration-2/bundle");
    let text = |file: &str| fs::read_to_string(bundle.join(file)).unwrap();
    let attempts: Vec<Value> = serde_json::from_str(&text("attempts.json")).unwrap();
    assert_eq!(attempts.len(), 1, "{attempts:#?}");
    assert!(text("build.txt").contains("haed"));
    assert!(text("log.txt").contains("test_refuses_when_full"));
    assert!(text("TASK.md").contains("build.txt"));
}

#[test]
fn a_base_that_does_not_build_ends_the_run_with_the_errors() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    fs::write(project.repo.join("src/ring.c"), RING.replace("return 1;", "return 1")).unwrap();
    project.commit("no semicolon");
    workshop.write("policy.toml", "version = 1\nsandbox = false\n");
    let ran = repair(&project, SCRIPT, Some(MEND));
    assert_eq!(ran.code(), 4, "{ran}");
    let document = ran.json().unwrap();
    for said in [&document["why"], &document["look_at"][0]] {
        let said = said.as_str().unwrap();
        assert!(said.contains("does not build") && said.contains(" error: "), "{document:#}");
    }
    assert!(document["look_at"].to_string().contains("sandbox = false"), "{document:#}");
}

#[test]
fn templates_find_a_wrong_bound_without_a_model() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let ran = repair(&project, "[\"templates\"]", None);
    assert_eq!(ran.code(), 0, "{ran}");
    assert_eq!(ran.json().unwrap()["agent"], "templates");
    project.is_untouched();
}

#[test]
fn a_run_waits_for_an_approval_that_is_bound_to_what_waits() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    workshop.write("policy.toml", "version = 1\napprove_patches = true\n");
    let ran = repair(&project, SCRIPT, Some(MEND));
    assert_eq!(ran.code(), 4, "{ran}");
    let status = workshop.run(["--json", "repair", "status", "last"]).json().unwrap();
    assert_eq!(ran.json().unwrap(), status);
    let said = workshop.run(["repair", "status", "last"]).out();
    assert!(
        said.contains("waits for an approval") && said.contains("jig repair approve"),
        "{said}"
    );
    // What is to be approved is shown, also by `watch` where no process drives the run.
    assert!(said.contains("+    if (r->count >= 8)"), "{said}");
    let watched = workshop.run(["repair", "watch", "last"]);
    assert!(watched.code() == 4 && watched.out().contains("jig repair approve"), "{watched}");
    let rows = workshop.run(["--json", "repair", "watch", "last"]).out();
    let first: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!(first["seq"], 1, "{rows}");
    let digest = status["waits"].as_str().unwrap();
    workshop
        .run(["repair", "approve", "last", "--digest", "sha256:00"])
        .says(2, &["does not wait for sha256:00"]);
    workshop.run(["repair", "approve", "last", "--digest", digest]).says(0, &["approved"]);
    let said = workshop.run(["repair", "status", "last"]).out();
    assert!(said.contains("next: jig repair resume") && !said.contains("repair approve"), "{said}");
    let _slot = Slot::take();
    let ran = workshop.run(["--json", "repair", "resume", "last"]);
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &Value::from("SUCCESS")), "{ran}");
}

#[test]
fn an_agent_is_shown_what_repaired_the_same_failure_before() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let first = format!("test ! -e \"$1/similar.json\" || exit 7\n{MEND}");
    assert_eq!(repair(&project, SCRIPT, Some(&first)).code(), 0);
    let second = format!("grep -q 'count >= 8' \"$1/similar.json\" || exit 7\n{MEND}");
    let ran = repair(&project, SCRIPT, Some(&second));
    assert_eq!((ran.code(), &ran.json().unwrap()["iterations"]), (0, &Value::from(1)), "{ran}");
}

#[test]
fn a_fork_has_the_evidence_of_the_rows_that_it_takes_over() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let needs_evidence = format!("test -s \"$1/ranked.json\" || exit 7\n{MEND}");
    let ran = repair(&project, SCRIPT, Some(&needs_evidence));
    assert_eq!(ran.code(), 0, "{ran}");
    let log = workshop.run(["--json", "repair", "log", "last"]).out();
    let rows = log.lines().map(|row| serde_json::from_str::<Value>(row).unwrap());
    let proposes = |row: &Value| row["state"] == "PATCH_GENERATION" && row.get("reason").is_none();
    let behind = rows.filter(proposes).map(|row| row["seq"].as_u64().unwrap()).next().unwrap();
    let _slot = Slot::take();
    let forked = workshop.run(["--json", "repair", "fork", &format!("last@{}", behind - 1)]);
    assert_eq!(forked.code(), 0, "{forked}");
    assert_eq!(forked.json().unwrap()["iterations"], 1, "{forked}");
}

#[test]
fn nothing_is_patched_where_nothing_fails() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    fs::write(project.repo.join("src/ring.c"), RING.replace("> 8", ">= 8")).unwrap();
    project.commit("green");
    let ran = repair(&project, SCRIPT, Some("echo patched >> ../called"));
    assert_eq!(ran.code(), 4, "{ran}");
    let document = ran.json().unwrap();
    assert!(document["why"].as_str().unwrap().contains("pass without a patch"), "{document:#}");
    assert_eq!(document["agent"], Value::Null);
}

/// Returns the folder of the only repair run.
fn folder(workshop: &Workshop) -> Option<PathBuf> {
    let mut runs = fs::read_dir(workshop.runs().join("repairs")).ok()?;
    Some(runs.next()?.ok()?.path())
}

#[test]
fn a_killed_run_goes_on_to_the_same_end() {
    // States in which a build, an agent or a board is at work.
    side_by_side(["BUILD_RUN", "TEST_RUN", "RESULT_ANALYSIS"], |state| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let task = project.task(SCRIPT, Some(MEND));
        let slot = Slot::take();
        let run = Started::of(workshop.jig(["repair"]).arg(task));
        let reached = || {
            folder(&workshop)?.join("journal.db").is_file().then_some(())?;
            let log = workshop.run(["repair", "log", "last"]).out();
            log.contains(&format!("{state} begins")).then_some(())
        };
        until("the state", reached);
        run.signal(Signal::SIGKILL);
        drop(run);
        let ran = workshop.run(["--json", "repair", "resume", "last"]);
        drop(slot);
        assert_eq!(ran.code(), 0, "{state}: {ran}");
        let document = ran.json().unwrap();
        assert_eq!(
            (&document["state"], &document["iterations"]),
            (&Value::from("SUCCESS"), &Value::from(1))
        );
        project.is_untouched();
        workshop.nothing_lives(crate::workshop::DEADLINE).unwrap();
    });
}

#[test]
fn what_cannot_be_repaired_is_said_before_anything_begins() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let task = project.task(SCRIPT, Some(MEND));
    let start = || ran(workshop.jig(["repair"]).arg(&task)).unwrap();
    fs::write(project.repo.join("src/ring.c"), "changed").unwrap();
    start().says(2, &["changes that no commit has: src/ring.c", "commit or stash"]);
    project.git(&["checkout", "--quiet", "."]);
    workshop.write("fw/policy.toml", "version = 1\n");
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, text.replace("file = \"policy", "file = \"fw/policy")).unwrap();
    start().says(2, &["lies in the repository", "keep it beside"]);
    fs::write(&task, text.replace("plan = \"plan", "plan = \"absent")).unwrap();
    start().says(2, &["cannot read plan", "absent.toml"]);
    fs::write(&task, text.replace("repo = \"fw\"", "repo = \".\"")).unwrap();
    start().says(2, &["is no git work tree"]);
    for (folder, bare) in [("unborn", false), ("bare", true)] {
        let mut git = std::process::Command::new("git");
        git.args(["init", "--quiet"]).args(bare.then_some("--bare")).arg(workshop.path(folder));
        assert!(git.status().unwrap().success());
    }
    fs::write(&task, text.replace("repo = \"fw\"", "repo = \"unborn\"")).unwrap();
    start().says(2, &["the repository has no commit yet", "git add --all && git commit"]);
    fs::write(&task, text.replace("repo = \"fw\"", "repo = \"bare\"")).unwrap();
    start().says(2, &["is no git work tree", "must be run in a work tree"]);
    fs::write(&task, text.replace("mps2-an385", "absent")).unwrap();
    start().says(2, &["there is no place \"absent\""]);
    assert!(folder(&workshop).is_none(), "a run was begun");
}

/// A place that the rig of another host has, and this host has not.
const FAR: &str =
    "version = 1\n[[place]]\nname = \"far-board\"\nboard = \"mps2-an385\"\nemulator = {}\n";

/// Repairs the project at a desk with the board of a rig elsewhere; returns the id of the repair run, the runs at the
/// rig, and a task for a board of another name.
fn repaired_there(
    rig: &Workshop,
    desk: &Workshop,
    call: impl Fn(&[&str]) -> std::process::Command,
) -> (String, usize, PathBuf) {
    let project = RepairProject::new(desk);
    let task = project.task(SCRIPT, Some(MEND));
    let text = fs::read_to_string(&task).unwrap();
    let board = text.lines().find(|line| line.starts_with("board = ")).unwrap().to_owned();
    fs::write(&task, text.replace(&board, "board = \"far-board\"")).unwrap();
    let repaired = ran(call(&["--json", "repair"]).arg(&task)).unwrap();
    assert_eq!(repaired.code(), 0, "{repaired}");
    let document = repaired.json().unwrap();
    assert_eq!(document["state"], "SUCCESS", "{document:#}");
    assert_eq!(document["proof"]["reverted"]["passed"], false, "{document:#}");
    project.is_untouched();
    // Every run of a board was at the rig, and is copied here with what it shows.
    let there: Vec<_> = rig.run_dirs();
    assert!(there.len() >= 5, "{there:?}");
    for dir in &there {
        let copy = desk.runs().join(dir.file_name().unwrap());
        assert!(copy.join("record.json").exists() && !copy.join("children.jsonl").exists());
    }
    assert!(!rig.runs().join("repairs").exists(), "the loop is here");
    fs::write(&task, text.replace(&board, "board = \"near-board\"")).unwrap();
    (document["run"].as_str().unwrap().to_owned(), there.len(), task)
}

#[test]
fn a_run_is_driven_here_and_its_board_is_that_of_a_rig_behind_ssh() {
    let hosts = OverSsh::new();
    hosts.rig.write("rig.toml", FAR);
    let _slot = Slot::take();
    let (run, there, task) = repaired_there(&hosts.rig, &hosts.desk, |args| hosts.call(args));
    // A run that goes on finds its rig by itself.
    let fork = hosts.desk.run(["--json", "repair", "fork", &format!("{run}@3")]);
    assert_eq!(fork.json().unwrap()["state"], "SUCCESS", "{fork}");
    assert!(hosts.rig.run_dirs().len() > there);
    let unknown = ran(hosts.call(&["repair"]).arg(&task)).unwrap();
    unknown.says(2, &["near-board"]);
}

#[test]
fn a_run_is_driven_here_and_its_board_is_that_of_another_rig() {
    let hosts = TwoHosts::new();
    // What is known of the place is the rig's: this host has none of its name.
    hosts.rig.write("rig.toml", FAR);
    until("the place", || hosts.run(&["lease", "ls"]).out().contains("far-board").then_some(()));
    let _slot = Slot::take();
    let (run, there, task) = repaired_there(&hosts.rig, &hosts.desk, |args| hosts.call(args));
    // A run that goes on finds its rig by itself.
    let origin =
        fs::read_to_string(hosts.desk.runs().join("repairs").join(&run).join("origin.json"));
    let origin: Value = serde_json::from_str(&origin.unwrap()).unwrap();
    assert_eq!(origin["there"], format!("unix:{}", hosts.socket().display()));
    let fork = hosts.desk.run(["--json", "repair", "fork", &format!("{run}@3")]);
    assert_eq!(fork.json().unwrap()["state"], "SUCCESS", "{fork}");
    assert!(hosts.rig.run_dirs().len() > there);
    // A place that the rig does not have is told in the rig's words.
    let unknown = ran(hosts.call(&["repair"]).arg(&task)).unwrap();
    unknown.says(2, &["near-board"]);
}
