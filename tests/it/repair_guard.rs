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
