//! `jig repair` with agents that change what decides, and not what is wrong.

use std::fs;

use serde_json::Value;

use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{Ran, Slot, Workshop, ran, side_by_side};

const SCRIPT: &str = "[\"command:script\"]";

/// Runs `jig --json repair` with a script as the only agent.
fn repair(project: &RepairProject<'_>, script: &str) -> Ran {
    let task = project.task(SCRIPT, Some(script));
    let _slot = Slot::take();
    ran(project.workshop.jig(["--json", "repair"]).arg(task)).unwrap()
}

fn log(workshop: &Workshop) -> String {
    workshop.run(["repair", "log", "last"]).out()
}

/// Gives a file of the project another name, also in its build.
fn moved(project: &RepairProject<'_>, from: &str, to: &str) {
    fs::rename(project.repo.join(from), project.repo.join(to)).unwrap();
    let makefile = project.repo.join("Makefile");
    if let Ok(text) = fs::read_to_string(&makefile) {
        fs::write(makefile, text.replace(from, to)).unwrap();
    }
    project.commit("moved");
}

#[test]
fn a_test_is_known_by_what_it_defines_and_a_build_file_in_any_case() {
    side_by_side(
        [
            (
                ("test/test_ring.c", "src/bounds.c"),
                "sed -i 's/return !ring_put/return 1 || !ring_put/' src/bounds.c".to_owned(),
                "src/bounds.c defines the test test_",
            ),
            (
                ("Makefile", "makefile"),
                format!("{MEND}; sed -i 's/ -O1 / -O1 -DX /' makefile"),
                "makefile belongs to the build and is protected",
            ),
        ],
        |((from, to), script, words)| {
            let workshop = Workshop::new();
            let project = RepairProject::new(&workshop);
            moved(&project, from, to);
            let ran = repair(&project, &script);
            assert_eq!((ran.code(), project.branches()), (1, vec![]), "{ran}");
            assert_eq!(ran.json().unwrap()["state"], "FAILURE");
            let log = log(&workshop);
            assert!(log.contains(words), "{words:?} is not in {log}");
        },
    );
}

#[test]
fn a_run_whose_own_copies_are_changed_ends() {
    // The held-out plan never passes, and each patch waits for an approval.
    let held_out = r#"version = 1
name = "held-out"
goal = "what is never printed"
timeout = "20s"
[[stage]]
name = "unit"
[[stage.step]]
name = "run"
goal = "what is never printed"
actions = [{ deploy = true }, { power = "cycle" }, { expect = "never printed", timeout = "1s" }]
"#;
    let plan = "cp $run/plan.toml $run/held-out.toml";
    let policy = "echo 'version = 1' > $run/policy.toml";
    side_by_side([("held-out.toml", plan), ("policy.toml", policy)], |(file, change)| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        workshop.write("held-out.toml", held_out);
        workshop.write("policy.toml", "version = 1\napprove_patches = true\n");
        let with_held_out = |script: &str| {
            let task = project.task(SCRIPT, Some(script));
            let text = fs::read_to_string(&task).unwrap();
            let text = text.replace("\nagents", "\nheld-out = \"held-out.toml\"\nagents");
            fs::write(&task, text).unwrap();
            let _slot = Slot::take();
            ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap()
        };
        // By an agent, in its turn.
        let ran = with_held_out(&format!("run=$(dirname $(dirname $1)); {change}; {MEND}"));
        let document = ran.json().unwrap();
        assert_eq!((ran.code(), &document["state"]), (4, &Value::from("ABORTED")), "{ran}");
        let why = document["why"].as_str().unwrap();
        assert!(why.ends_with(&format!("{file} is not what the run was begun with")), "{why}");
        // While the run waits.
        let ran = with_held_out(MEND);
        assert_eq!(ran.code(), 4, "{ran}");
        let status = workshop.run(["--json", "repair", "status", "last"]).json().unwrap();
        let digest = status["waits"].as_str().unwrap();
        workshop.run(["repair", "approve", "last", "--digest", digest]).says(0, &[]);
        let run = fs::read_dir(workshop.runs().join("repairs")).unwrap();
        let run = run.map(|entry| entry.unwrap().path()).max().unwrap();
        let change = format!("run={}; {change}", run.display());
        let done = std::process::Command::new("sh").args(["-c", &change]).status().unwrap();
        assert!(done.success());
        workshop
            .run(["repair", "resume", "last"])
            .says(75, &[file, "is not what the run was begun with"]);
        assert_eq!(project.branches(), [""; 0]);
    });
}

#[test]
fn a_program_that_edits_the_checkout_of_the_user_is_named() {
    let edit = |then: &str| format!("echo '// edited' >> $CHECKOUT/src/ring.h; {then}{MEND}");
    let commit = "git -C $CHECKOUT -c user.name=A -c user.email=a@localhost commit --all -qm x; ";
    side_by_side([("", "src/ring.h"), (commit, "branch.oid")], |(then, words)| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let checkout = project.repo.display().to_string();
        // The second question finds the checkout as the first one has left it.
        let script = format!(
            "[ -e $CHECKOUT/../asked ] && exit 1; touch $CHECKOUT/../asked; {}",
            edit(then)
        );
        let ran = repair(&project, &script.replace("$CHECKOUT", &checkout));
        assert_eq!((ran.code(), project.branches()), (1, vec![]), "{ran}");
        let log = log(&workshop);
        let changed = "command:script: the checkout of the user was changed while it ran: ";
        let why = log.split(changed).nth(1);
        assert!(why.is_some_and(|why| why.starts_with(words)), "{log}");
        let report = fs::read_dir(workshop.runs().join("repairs")).unwrap();
        let report = report.map(|entry| entry.unwrap().path().join("report.md")).next().unwrap();
        let report = fs::read_to_string(report).unwrap();
        assert!(report.contains(changed), "{report}");
    });
}

#[test]
fn a_compiler_that_vanishes_behind_the_baseline_is_no_fault_of_the_patch() {
    use std::os::unix::fs::symlink;
    side_by_side(["make", "arm-none-eabi-gcc"], |gone| {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let tools = workshop.path("tools");
        fs::create_dir(&tools).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let search = |name: &str| {
            std::env::split_paths(&path).map(|folder| folder.join(name)).find(|at| at.is_file())
        };
        let names = ["make", "arm-none-eabi-gcc", "git", "sh", "mkdir", "sed", "rm"];
        let emulators = ["qemu-system-arm", "env", "cat"];
        for name in names.iter().chain(&emulators) {
            symlink(search(name).unwrap(), tools.join(name)).unwrap();
        }
        let script = format!("rm -f {}; {MEND}", tools.join(gone).display());
        let task = project.task(SCRIPT, Some(&script));
        let slot = Slot::take();
        let ran = ran(workshop.jig(["--json", "repair"]).arg(task).env("PATH", &tools)).unwrap();
        drop(slot);
        assert_eq!((ran.code(), project.branches()), (75, vec![]), "{ran}");
        let document = ran.json().unwrap();
        assert_eq!(document["iterations"], 1, "{document:#}");
        let why = document["why"].as_str().unwrap();
        assert!(why.contains(gone) && why.contains("any more"), "{why}");
        project.is_untouched();
    });
}

#[test]
fn a_patch_that_does_not_build_costs_one_iteration() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let script = format!(
        "if [ -e {0} ]; then {MEND}; else echo 'int bad = ;' >> src/ring.c; touch {0}; fi",
        workshop.path("asked").display()
    );
    let ran = repair(&project, &script);
    assert_eq!(ran.code(), 0, "{ran}");
    let document = ran.json().unwrap();
    assert_eq!((&document["state"], &document["iterations"]), (&"SUCCESS".into(), &2.into()));
}

#[test]
fn the_plan_of_a_task_does_not_change_where_it_lies_in_the_repository() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    fs::rename(workshop.path("plan.toml"), project.repo.join("plan.toml")).unwrap();
    project.commit("plan");
    let script = format!("{MEND}; sed -i s/30s/60s/ plan.toml");
    let task = project.task(SCRIPT, Some(&script));
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, text.replace("\"plan.toml\"", "\"fw/plan.toml\"")).unwrap();
    let slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    drop(slot);
    assert_eq!((ran.code(), project.branches()), (1, vec![]), "{ran}");
    let (log, words) = (log(&workshop), "plan.toml belongs to the task of this run");
    assert!(log.contains(words), "{log}");
}

#[test]
fn a_patch_of_the_path_by_which_results_are_printed_waits_for_a_person() {
    // What begins like the report of the failed test is printed like that of a passed one.
    let script = r#"sed -i 's/^    UART\[2\] = 1;/    UART[2] = 1;\n    static const char good[] = { 48, 32, 70, 0 };\n    (void)good;/' src/start.c"#;
    for mode in ["ci", "auto"] {
        let workshop = Workshop::new();
        let project = RepairProject::new(&workshop);
        let task = project.task(SCRIPT, Some(&format!("{MEND}; {script}")));
        let slot = Slot::take();
        let ran = ran(workshop.jig(["--json", "repair", "--mode", mode]).arg(task)).unwrap();
        drop(slot);
        assert_eq!((ran.code(), project.branches()), (4, vec![]), "{ran}");
        let log = log(&workshop);
        let words = "the patch waits for an approval";
        assert!(log.contains(words), "{log}");
        assert!(log.contains("src/start.c: changes put, by which results are printed"), "{log}");
    }
}
