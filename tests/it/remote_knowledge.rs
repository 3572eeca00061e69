//! What another rig has learnt, asked from here: the same output and exit codes as at its host.

use std::fs;

use serde_json::Value;

use crate::manifest::elf;
use crate::remote::{OverSsh, TwoHosts};
use crate::workshop::{Ran, Slot, Workshop, ran};

const TITLE: &str = "uart FIFO is stuck after sleep";

/// Calls `jig kb` at the desk; all that it changes is at the rig.
fn goes_through(rig: &Workshop, desk: impl Fn(&[&str]) -> Ran) {
    let text =
        ["--symptom", "no byte after wake-up", "--resolution", "clear the flag; then enable"];
    let added = desk(&[&["kb", "add", "--title", TITLE, "--tag", "uart"][..], &text].concat());
    let unit = added.says(0, &[]).out().trim().to_owned();
    let here = |args: &[&str]| rig.run(args);
    for verb in [
        &["kb", "show", &unit][..],
        &["kb", "show", &unit, "--history"],
        &["--json", "kb", "show", &unit, "--history"],
        &["kb", "search", "uart", "sleep"],
        &["kb", "search", "--context", "--", "uart sleep"],
        &["kb", "stats"],
        &["--json", "kb", "stats"],
        &["kb", "show", "k-000000000000"],
        &["kb", "export"],
    ] {
        let (there, at_host) = (desk(verb), here(verb));
        assert_eq!(there.code(), at_host.code(), "{there}");
        assert_eq!(there.out(), at_host.out(), "{there}");
    }
    let found = |ran: Ran| {
        let answer = ran.says(0, &[]).json().unwrap();
        let hits = answer["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| (hit["unit"]["id"].clone(), hit["score"].clone())).collect::<Vec<_>>()
    };
    let search = ["--json", "kb", "search", "uart"];
    assert_eq!(found(desk(&search)), found(here(&search)));
    desk(&["kb", "verify", &unit, "--for", "uart"]).says(0, &[]);
    assert!(here(&["kb", "show", &unit]).out().contains("verified"));
    desk(&["kb", "edit", &unit, "--title", "uart FIFO"]).says(0, &[]);
    assert!(here(&["kb", "show", &unit]).out().contains("uart FIFO\n"));
    desk(&["kb", "edit", &unit, "--title", "x", "--if-version", "1"]).says(2, &[&unit]);
    let other = desk(&["kb", "add", "--title", "another one"]);
    let other = other.says(0, &[]).out().trim().to_owned();
    desk(&["kb", "link", &unit, &other, "--kind", "contradicts"]).says(0, &[]);
    assert!(here(&["kb", "show", &unit]).out().contains("contradicts"));
    desk(&["kb", "archive", &other]).says(0, &[]);
    desk(&["kb", "restore", &other]).says(0, &[]);
    desk(&["kb", "reject", &other]).says(0, &[]);
    desk(&["kb", "reindex"]).says(0, &[]);
    desk(&["kb", "fit"]).says(0, &[]);
    let told: Value = here(&["--json", "kb", "stats"]).json().unwrap();
    assert_eq!((&told["store"]["units"], &told["store"]["feedback"]), (&2.into(), &1.into()));
}

#[test]
fn knowledge_of_another_rig_is_asked_and_changed_by_a_socket() {
    let hosts = TwoHosts::new();
    goes_through(&hosts.rig, |args| hosts.run(args));
    // A repair run is here.
    hosts.run(&["kb", "capture", "r20260101"]).says(2, &["leave out --rig"]);
    assert!(!hosts.desk.path("../home/STATE/jig/knowledge").exists());
}

#[test]
fn knowledge_of_another_rig_is_asked_and_changed_over_ssh() {
    let hosts = OverSsh::new();
    goes_through(&hosts.rig, |args| ran(&mut hosts.call(args)).unwrap());
    assert!(!hosts.desk.path("../home/STATE/jig/knowledge").exists());
}

#[test]
fn a_run_at_another_rig_is_learnt_from_there_and_units_travel_both_ways() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("microbit", "unity-fail");
    hosts.run(&["run", "-b", "microbit", &image]).says(1, &[]);
    let unit = hosts.run(&["kb", "add", "--title", TITLE, "--from-run", "last"]);
    let unit = unit.says(0, &[]).out().trim().to_owned();
    let shown = hosts.run(&["kb", "show", &unit]);
    assert!(shown.out().contains("board      microbit"), "{shown}");
    hosts.run(&["kb", "capture", "last"]).says(0, &[]);
    hosts.run(&["kb", "capture"]).says(0, &[]);
    // Out of that rig into the knowledge of this host, and back into a third one.
    hosts.run(&["kb", "export", "units.jsonl"]).says(0, &["exported to units.jsonl: 1"]);
    let lines = fs::read_to_string(hosts.desk.path("units.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 1);
    hosts.desk.run(["kb", "import", "units.jsonl"]).says(0, &[]);
    assert!(hosts.desk.run(["kb", "show", &unit]).out().contains(TITLE));
    // What cannot be a line is told by its number, whichever part of the file it is in.
    let long = "x".repeat((1 << 20) + 1);
    let text = format!("{{}}\n{lines}\n{long}\nwhat?\n");
    hosts.desk.write("bad.jsonl", [text.as_bytes(), b"\xff\n"].concat());
    let there = hosts.run(&["kb", "import", "bad.jsonl"]);
    there.says(2, &["bad.jsonl:1", "bad.jsonl:4", "longer than", "bad.jsonl:5", "bad.jsonl:6"]);
    assert!(there.out().contains("0 new, 0 repeats, 1 known, 4 not imported"), "{there}");
}
