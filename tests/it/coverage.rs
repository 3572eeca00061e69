//! Coverage of a run: which lines of the sources an emulated board executes.

use std::fs;

use serde_json::Value;

use crate::manifest::{elf, entries};
use crate::workshop::{Slot, Workshop, ran, side_by_side};

/// Runs an image of the fixtures with its coverage.
fn covered(board: &str, fixture: &str) -> (Workshop, Value) {
    let workshop = Workshop::new();
    let image = elf(board, fixture);
    let ran = workshop.run(["--json", "run", "-b", board, "--coverage", &image]);
    let document = ran.json().unwrap();
    (workshop, document)
}

fn report(workshop: &Workshop) -> Value {
    let dir = workshop.run_dirs().pop().unwrap();
    serde_json::from_slice(&fs::read(dir.join("coverage.json")).unwrap()).unwrap()
}

fn file<'r>(report: &'r Value, name: &str) -> &'r Value {
    let files = report["files"].as_array().unwrap();
    files.iter().find(|file| file["file"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

fn function<'r>(report: &'r Value, name: &str) -> &'r Value {
    let files = report["files"].as_array().unwrap().iter();
    let mut all = files.flat_map(|file| file["functions"].as_array().unwrap());
    all.find(|function| function["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn executed_lines_and_functions_are_told_on_both_kinds_of_core() {
    for board in ["mps2-an385", "riscv32-virt"] {
        let (workshop, document) = covered(board, "unity-pass");
        assert_eq!(document["verdict"]["kind"], "pass", "{document}");
        let report = report(&workshop);
        assert_eq!(report["complete"], true, "{report}");
        let main = file(&report, "unity-pass/src/main.c");
        assert_eq!(main["lines"], main["executed"], "{main}");
        assert!(main["lines"].as_array().unwrap().len() > 3, "{main}");
        let runtime = file(&report, "support/runtime.c");
        let count = |key: &str| runtime[key].as_array().unwrap().len();
        assert!(count("executed") > 5 && count("executed") < count("lines"), "{runtime}");
        assert_eq!(function(&report, "fixture_main")["executed"], true);
        let told = &document["coverage"];
        assert!(told["lines"].as_u64() > told["executed"].as_u64(), "{told}");
        let dir = workshop.run_dirs().pop().unwrap();
        let lcov = fs::read_to_string(dir.join("coverage.info")).unwrap();
        assert!(lcov.contains("SF:unity-pass/src/main.c\n"), "{lcov}");
        assert_eq!(
            lcov.matches("end_of_record\n").count(),
            report["files"].as_array().unwrap().len()
        );
    }
}

#[test]
fn what_runs_behind_a_fault_is_told_apart() {
    let (workshop, document) = covered("mps2-an385", "fault-banner");
    assert_eq!(document["verdict"]["kind"], "fail", "{document}");
    let report = report(&workshop);
    assert_eq!(function(&report, "fixture_main")["after_fault"], false);
    let files = report["files"].as_array().unwrap().iter();
    let behind = files.flat_map(|file| file["functions"].as_array().unwrap());
    let behind: Vec<_> = behind.filter(|one| one["after_fault"] == true).collect();
    assert!(behind.iter().any(|one| one["executed"] == true), "{report}");
}

#[test]
fn the_table_is_shown_and_nothing_is_measured_unasked() {
    let workshop = Workshop::new();
    let image = elf("mps2-an385", "unity-pass");
    workshop
        .run(["run", "-b", "mps2-an385", "--coverage", &image])
        .says(0, &["share", "unity-pass/src/main.c", "100.0 %", "coverage.info"]);
    let plain = Workshop::new();
    plain.run(["run", "-b", "mps2-an385", &image]).says(0, &[]);
    assert!(!plain.run_dirs().pop().unwrap().join("coverage.json").exists());
}

#[test]
fn what_fails_without_coverage_fails_with_it() {
    let boards = ["mps2-an385", "riscv32-virt"];
    let mut failing = entries();
    failing.retain(|entry| {
        let by_core = ["fault-", "call-", "lockup", "interrupt-"];
        boards.contains(&entry.board.as_str())
            && entry.verdict == "fail"
            && by_core.iter().any(|name| entry.fixture.starts_with(name))
    });
    assert!(failing.len() > 20);
    side_by_side(&failing, |entry| {
        let workshop = Workshop::new();
        let mut jig = workshop.jig(["--json", "test", "-b", &entry.board, "--coverage"]);
        match entry.plan() {
            Some(plan) => jig.arg(plan).arg("--image").arg(entry.elf()),
            None => {
                jig = workshop.jig(["--json", "run", "-b", &entry.board, "--coverage"]);
                jig.args(["--timeout", &format!("{}s", entry.timeout_s)]).arg(entry.elf())
            }
        };
        let slot = Slot::take();
        let document = ran(&mut jig).and_then(|ran| ran.json()).unwrap();
        drop(slot);
        let verdict = &document["verdict"];
        let found = (verdict["kind"].as_str(), verdict["cause"].as_str());
        let expected = (Some(entry.verdict.as_str()), Some(entry.cause.as_str()));
        assert_eq!(found, expected, "{} on {}: {verdict:#}", entry.fixture, entry.board);
    });
}

#[test]
fn where_coverage_is_not_measured_the_command_says_what_to_do() {
    let workshop = Workshop::new();
    let console = "[[place.console]]\nname = \"uart0\"\ntty = \"/dev/ttyUSB7\"\n";
    let rig = format!(
        "version = 1\n[[place]]\nname = \"bench\"\nboard = \"mps2-an385\"\n\
         flasher = {{ command = [\"true\", \"{{image}}\"] }}\n{console}"
    );
    let rig = workshop.write("rig.toml", rig);
    let image = elf("mps2-an385", "unity-pass");
    let rig = rig.to_str().unwrap();
    workshop.run(["--rig", rig, "run", "-b", "bench", "--coverage", &image]).says(
        2,
        &["coverage is not measured on a real board, and bench is one", "or leave out --coverage"],
    );
    assert!(workshop.run_dirs().is_empty());
    Workshop::new()
        .run(["run", "-b", "arm64-uboot", "--coverage"])
        .says(2, &["coverage is not measured at arm64-uboot", "jig boards"]);
}
