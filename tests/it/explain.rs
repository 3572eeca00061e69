//! `jig explain` and `jig machine repair`: the rules of the repair loop, asked from outside.

use std::fs;

use crate::workshop::Workshop;

const CONFORMANCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance");

#[test]
fn each_line_is_printed_with_its_answer() {
    let workshop = Workshop::new();
    for (verb, file, lines) in [
        ("convergence", "convergence-decisions.jsonl", 604),
        ("analysis", "convergence-analysis.jsonl", 300),
    ] {
        let path = format!("{CONFORMANCE}/{file}");
        let ran = workshop.run(["explain", verb, &path]);
        ran.says(0, &[]);
        let wanted = fs::read_to_string(&path).unwrap();
        assert_eq!(ran.out().lines().count(), lines);
        for (found, wanted) in ran.out().lines().zip(wanted.lines()) {
            let [found, wanted] = [found, wanted]
                .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            // Figures are compared where the rules are tested.
            for word in ["outcome", "improvement_trend", "is_converged"] {
                assert_eq!(found["expect"][word], wanted["expect"][word], "{wanted}");
            }
        }
    }
}

#[test]
fn a_line_without_an_answer_is_named() {
    let workshop = Workshop::new();
    let path = workshop.path("lines");
    let good = "{\"pass_counts\": [1], \"total_counts\": [2], \"current_iteration\": 1, \
                \"max_iterations\": 9}";
    fs::write(&path, format!("{good}\n\n{{\"pass_counts\": [1]}}\n")).unwrap();
    let ran = workshop.run(["explain".as_ref(), "convergence".as_ref(), path.as_os_str()]);
    ran.says(2, &["lines:3: not an object of the expected form", "jig explain --help"]);
    assert_eq!(ran.out().lines().count(), 1);
    workshop.run(["explain", "analysis", "/nonexistent"]).says(2, &["could not read /nonexistent"]);
}

#[test]
fn the_machine_is_printed_from_its_table() {
    let workshop = Workshop::new();
    let ran = workshop.run(["machine", "repair", "--format", "csv"]);
    ran.says(0, &[]);
    let wanted = fs::read_to_string(format!("{CONFORMANCE}/repair-transitions.csv")).unwrap();
    assert!(wanted.lines().all(|line| ran.out().lines().any(|found| found == line)), "{ran}");
}
