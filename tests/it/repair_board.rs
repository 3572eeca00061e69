//! `jig repair` on a real board, for which one behind the virtual probe of another process stands:
//! nothing is flashed that a person has not approved.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::probe_runs::Served;
use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{Ran, Workshop, ran};

/// The firmware prints by semihosting: the board has no serial line.
const PUT: &str = "void put(const char *text)\n{\n    register unsigned call __asm(\"r0\") = 4;\n    \
    register const char *words __asm(\"r1\") = text;\n    \
    __asm volatile(\"bkpt 0xab\" : \"+r\"(call) : \"r\"(words) : \"memory\");\n}\n";

/// Makes the project one of the served board.
fn project(workshop: &Workshop) -> RepairProject<'_> {
    let project = RepairProject::new(workshop);
    let edit = |file: &str, change: &dyn Fn(String) -> String| {
        let path = project.repo.join(file);
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    };
    edit("src/start.c", &|text| {
        let (before, rest) = text.split_once("#define UART").unwrap();
        let (_, after) = rest.split_once("void *memset").unwrap();
        format!("{before}{PUT}void *memset{after}")
    });
    edit("Makefile", &|text| text.replace("cortex-m3", "cortex-m0"));
    edit("link.ld", &|text| {
        let text = text.replace("0x20010000", "0x20004000");
        text.replacen("4M", "256K", 1).replacen("4M", "16K", 1)
    });
    project.commit("semihosting");
    let plan = workshop.path("plan.toml");
    let text = fs::read_to_string(&plan).unwrap();
    let waits = "wait_for_results = true, console = \"semihosting\"";
    fs::write(plan, text.replace("wait_for_results = true", waits)).unwrap();
    project
}

/// A place of the same board that is emulated.
const EMULATOR: &str = "\n[[place]]\nname = \"emulator\"\nboard = \"microbit\"\n[place.emulator]\n";

/// Runs the task on the board until it waits for the approval to flash it.
fn waiting(project: &RepairProject<'_>) -> Value {
    let workshop = project.workshop;
    let task = project.task("[\"command:script\"]", Some(MEND));
    let text = fs::read_to_string(&task).unwrap();
    fs::write(&task, text.replace("mps2-an385", "bench")).unwrap();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    assert_eq!(ran.code(), 4, "{ran}{}", workshop.run(["repair", "log", "last"]));
    let status = ran.json().unwrap();
    assert_eq!(status["state"], "TEST_SETUP", "{status:#}");
    status
}

fn images_flashed(workshop: &Workshop) -> Vec<String> {
    images_at(workshop, "bench")
}

/// Lists the images of the runs at a place, in no order.
fn images_at(workshop: &Workshop, place: &str) -> Vec<String> {
    let images = workshop.run_dirs().into_iter().filter_map(|run| {
        let record = fs::read_to_string(run.join("record.json")).ok()?;
        let record: Value = serde_json::from_str(&record).unwrap();
        (record["place"] == place).then(|| record["images"][0]["sha256"].to_string())
    });
    images.collect()
}

fn resume(workshop: &Workshop) -> Ran {
    workshop.run(["--json", "repair", "resume", "last"])
}

#[test]
fn a_real_board_is_flashed_with_a_patch_once_a_person_approves() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let project = project(&workshop);
    let status = waiting(&project);
    let base = images_flashed(&workshop);
    let said = workshop.run(["repair", "status", "last"]).out();
    assert!(said.contains("jig repair approve"), "{said}");
    // Nobody has answered, or somebody has answered something else.
    assert_eq!(resume(&workshop).code(), 4);
    let digest = status["waits"].as_str().unwrap();
    let other = digest.replace(['0', '1', '2', '3'], "4");
    workshop.run(["repair", "approve", "last", "--digest", &other]).says(2, &["does not wait for"]);
    assert_eq!(images_flashed(&workshop), base, "the board was flashed without an approval");
    workshop.run(["repair", "approve", "last", "--digest", digest]).says(0, &["approved"]);
    let ran = resume(&workshop);
    let log = workshop.run(["repair", "log", "last"]).out();
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{ran}{log}");
    assert_eq!(project.branches().len(), 1);
    // Every time that the board was flashed is in the journal: base, candidate, base.
    let log = workshop.run(["--json", "repair", "log", "last"]).out();
    assert_eq!(log.matches("\"fact\":\"flashed\"").count(), 3 + 3 + 1, "{log}");
    project.is_untouched();
}

#[test]
fn a_real_board_keeps_its_firmware_where_a_person_refuses() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let project = project(&workshop);
    waiting(&project);
    let base = images_flashed(&workshop);
    workshop.run(["repair", "reject", "last", "--why", "not on this board"]).says(0, &["refused"]);
    let ran = resume(&workshop);
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (4, &"ABORTED".into()), "{ran}");
    assert!(ran.out().contains("not on this board"), "{ran}");
    assert_eq!(images_flashed(&workshop), base);
    assert_eq!(project.branches(), [""; 0]);
    project.is_untouched();
}

#[test]
fn candidates_are_tried_on_an_emulator_and_the_one_that_passes_is_flashed() {
    let workshop = Workshop::new();
    let _served = Served::start(&workshop, "microbit");
    let rig = fs::read_to_string(workshop.path("rig.toml")).unwrap();
    workshop.write("rig.toml", rig + EMULATOR);
    let project = project(&workshop);
    let policy = "version = 1\napprove_templates = false\napprove_flash = false\n";
    workshop.write("policy.toml", policy);
    let task = project.task("[\"templates\"]", None);
    let text = fs::read_to_string(&task).unwrap();
    let places = "board = \"bench\"\nscreen-on = \"emulator\"";
    fs::write(&task, text.replace("board = \"mps2-an385\"", places)).unwrap();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    let log = workshop.run(["--json", "repair", "log", "last"]).out();
    assert_eq!((ran.code(), &ran.json().unwrap()["state"]), (0, &"SUCCESS".into()), "{ran}{log}");
    let distinct = |place: &str| BTreeSet::from_iter(images_at(&workshop, place));
    let (flashed, tried) = (distinct("bench"), distinct("emulator"));
    // The base, and what passed on the emulator.
    assert_eq!(flashed.len(), 2, "{flashed:?} {log}");
    assert_eq!(flashed.intersection(&tried).count(), 1, "{flashed:?} {tried:?}");
    assert!(tried.len() > 1, "a single candidate was tried: {log}");
    // Nothing of the emulator is counted: base, candidate, base.
    assert_eq!(log.matches("\"fact\":\"flashed\"").count(), 3 + 3 + 1, "{log}");
    project.is_untouched();
}
