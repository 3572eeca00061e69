//! `jig repair` with patches that print a good report instead of letting the tests run. No text of
//! them tells: the report is written as numbers.

use crate::repair_project::RepairProject;
use crate::workshop::{Slot, Workshop, ran, side_by_side};

const REPORT: &str = "test/test_ring.c:3:test_takes_one:PASS\n\
    test/test_ring.c:8:test_refuses_when_full:PASS\n\n\
    -----------------------\n2 Tests 0 Failures 0 Ignored \nOK\n";

/// A statement that prints the report, without the function that prints results.
fn forged(end: &str) -> String {
    let bytes: Vec<_> = REPORT.bytes().map(|byte| byte.to_string()).collect();
    format!(
        "{{ static const char r[] = {{ {}, 0 }}; volatile unsigned *u = (void *)0x40004000; u[2] = 1; \
         for (const char *b = r; *b; b++) {{ while (u[1] \\& 1) {{ }} *u = *b; }} {end} }}",
        bytes.join(", ")
    )
}

const LOOP: &str = "for (;;) { }";
/// A semihosting call as numbers: `bkpt 0xab` would be refused before it is tried.
const EXIT: &str = "static const unsigned short code[] = { 48811, 18288 }; \
    ((void (*)(int, int))((unsigned)code + 1))(24, 131110);";

/// Has the library print the report at its first call.
fn in_library(condition: &str, end: &str) -> String {
    let statement = forged(end);
    format!("sed -i 's/^{{$/{{\\n    {condition} {statement}/' src/ring.c")
}

/// Leaves a document of coverage for each image of the run that says that nothing is known.
const PLANTED: &str = "R=$(dirname $(dirname $1)); mkdir -p $R/coverage; for i in $R/images/*.elf; do \
    echo '{\"format\":\"jig-coverage\",\"version\":1,\"files\":[],\"complete\":false,\
    \"limits\":[\"planted\"],\"tests\":[]}' >$R/coverage/$(basename $i .elf).json; done; ";

#[test]
fn a_report_of_tests_that_do_not_run_is_refused() {
    // In the library under test, at its first call; in the start-up code, instead of `main`; at the
    // only call that fails, when all tests were begun.
    let in_start = format!("sed -i 's/{{ main();/{{ {};/' src/start.c", forged(""));
    side_by_side(
        [
            (in_library("", LOOP), "test_refuses_when_full (test/test_ring.c)"),
            (in_library("", EXIT), "test_refuses_when_full (test/test_ring.c)"),
            (in_start, "main (test/test_ring.c)"),
        ],
        |(script, name)| {
            let workshop = Workshop::new();
            let project = RepairProject::new(&workshop);
            let task = project.task("[\"command:script\"]", Some(&script));
            let slot = Slot::take();
            let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
            drop(slot);
            assert_eq!(ran.code(), 1, "{script}: {ran}");
            let document = ran.json().unwrap();
            assert_eq!(document["state"], "FAILURE", "{document:#}");
            let not_run = document["proof"]["tests_not_run"].as_array().unwrap();
            assert!(not_run.iter().any(|one| one == name), "{document:#}");
            let log = workshop.run(["repair", "log", "last"]).out();
            assert!(log.contains("not proven: the tests pass without being run:"), "{log}");
            assert_eq!(project.branches(), [""; 0], "{script}");
            project.is_untouched();
        },
    );
}

#[test]
fn coverage_that_an_agent_writes_switches_nothing_off() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let script = PLANTED.to_owned() + &in_library("", LOOP);
    let task = project.task("[\"command:script\"]", Some(&script));
    let slot = Slot::take();
    let ran = ran(workshop.jig(["--json", "repair"]).arg(task)).unwrap();
    drop(slot);
    let log = workshop.run(["repair", "log", "last"]).out();
    assert!(log.contains("not proven: the tests pass without being run:"), "{log}");
    // The second turn of the agent replaces what the run has measured.
    assert_eq!(ran.code(), 4, "{ran}{log}");
    let document = ran.json().unwrap();
    assert_eq!(document["state"], "ABORTED", "{document:#}");
    assert!(log.contains("is not what the run has written"), "{log}");
    assert_eq!(project.branches(), [""; 0]);
}
