//! What the rig learns from its runs by itself, and tells of a failure that it sees again.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use rusqlite::Connection;
use serde_json::Value;

use crate::capture_service::CaptureService;
use crate::manifest::elf;
use crate::repair_project::{MEND, RepairProject};
use crate::workshop::{Ran, Slot, Started, Workshop, ran, until};

const STATE: &str = "state";

/// A build of the same firmware: good or bad, in one file.
fn build(workshop: &Workshop, fixture: &str) {
    fs::copy(elf("microbit", fixture), workshop.path("app.elf")).unwrap();
}

fn run(workshop: &Workshop, more: &[&str]) -> Ran {
    let _slot = Slot::take();
    let args = ["--state", STATE, "run", "-b", "microbit", "app.elf"];
    workshop.run(args.iter().chain(more))
}

fn kb(workshop: &Workshop, args: &[&str]) -> Ran {
    workshop.run(["--state", STATE, "kb"].iter().chain(args))
}

/// Returns the units that a search finds, archived ones too.
fn units(workshop: &Workshop, words: &str) -> Vec<Value> {
    let answer = kb(workshop, &["search", "--json", "--all", "--min-confidence", "0", words]);
    answer.says(0, &[]);
    let hits = answer.json().unwrap()["hits"].take();
    hits.as_array().unwrap().iter().map(|hit| hit["unit"].clone()).collect()
}

#[test]
fn a_failure_that_is_fixed_is_learnt_and_told_when_it_is_seen_again() {
    let workshop = Workshop::new();
    build(&workshop, "unity-fail");
    let first = run(&workshop, &[]);
    first.says(1, &["FAIL"]);
    assert!(!first.err().contains("seen before"), "{first}");
    build(&workshop, "unity-pass");
    let passed = run(&workshop, &[]);
    passed.says(0, &["PASS"]);
    assert!(!passed.err().contains("seen before"), "{passed}");

    let found = units(&workshop, "test_keeps_order");
    let [unit] = found.as_slice() else { panic!("{found:#?}") };
    let (id, content) = (unit["id"].as_str().unwrap(), &unit["content"]);
    assert_eq!(content["title"], "test_keeps_order fails: fixed by a newer image");
    assert_eq!(
        (&unit["audit"]["trigger"], &unit["audit"]["count"]),
        (&"success".into(), &1.into())
    );
    assert_eq!(unit["standing"]["status"], "pending");
    assert!(content["symptom"].as_str().unwrap().contains("Expected 1 Was 2"), "{unit:#}");
    // The evidence names bytes of the failed run, by their hash.
    let evidence = &content["evidence"][0];
    let log = workshop.runs().join(evidence["run"].as_str().unwrap());
    let log = fs::read(log.join(evidence["file"].as_str().unwrap())).unwrap();
    let range = |end: &str| evidence[end].as_u64().unwrap() as usize;
    let shown = String::from_utf8_lossy(&log[range("start")..range("end")]).into_owned();
    assert!(shown.contains("test_keeps_order"), "{shown}");

    build(&workshop, "unity-fail");
    let junit = ["--report", "junit=report.xml", "--report", "github=summary.md"];
    let again = run(&workshop, &junit);
    let line = format!("fixed by a newer image (not verified): jig kb show {id}");
    again.says(1, &["FAIL", "seen before: 1 time, last in run", &line]);
    let report = fs::read_to_string(workshop.path("report.xml")).unwrap();
    assert!(report.contains("jig.seen_before"), "{report}");
    let summary = fs::read_to_string(workshop.path("summary.md")).unwrap();
    assert!(summary.contains("- Seen before: 1 time"), "{summary}");
    let shown = workshop.run(["--state", STATE, "runs", "show", "last"]);
    assert!(shown.out().contains(&line), "{shown}");
    // A person confirms it: from then on it is told so.
    kb(&workshop, &["verify", id]).says(0, &[]);
    let shown = workshop.run(["--state", STATE, "--json", "runs", "show", "last"]);
    assert_eq!(shown.json().unwrap()["seen_before"]["units"][0]["status"], "verified", "{shown}");
    // The third failure of a kind is a unit of its own, with its count.
    let repeated = run(&workshop, &[]);
    repeated.says(1, &["seen before: 2 times", "(verified)"]);
    let found = units(&workshop, "test_keeps_order again");
    let repeated = found.iter().find(|unit| unit["audit"]["trigger"] == "repeated_failure");
    assert_eq!(repeated.unwrap()["audit"]["count"], 3, "{found:#?}");
    // A person marks a run: what it shows is there already.
    let added = kb(&workshop, &["add", "--from-run", "last", "--cause", "the head moves twice"]);
    added.says(0, &[]);
    let counted = kb(&workshop, &["show", added.out().trim(), "--json"]).json().unwrap();
    assert_eq!(counted["metadata"]["class"], "test_failed", "{counted:#}");
    // Nothing is learnt twice.
    let all = kb(&workshop, &["capture", "--json"]).json().unwrap();
    assert_eq!((&all["runs"], &all["queued"]), (&0.into(), &0.into()), "{all}");
    kb(&workshop, &["capture", "last"]).says(0, &[]).out();
}

#[test]
fn a_broken_or_busy_store_changes_no_verdict_and_what_it_did_not_take_is_learnt_later() {
    let workshop = Workshop::new();
    let folder = workshop.path(STATE).join("knowledge");
    let path = folder.join("knowledge.db");
    fs::create_dir_all(&folder).unwrap();
    fs::write(&path, b"this is no database".repeat(100)).unwrap();
    build(&workshop, "unity-fail");
    let failed = run(&workshop, &[]);
    failed.says(1, &["FAIL", "knowledge.db"]);
    let told = failed.err();
    let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words}: {told}"));
    assert!(at("cause: test_failed") < at("is learnt from later"), "{told}");
    assert_eq!(fs::read_dir(folder.join("outbox/runs")).unwrap().count(), 1);
    fs::remove_file(&path).unwrap();

    // Another process holds the store: the capture waits in the outbox.
    kb(&workshop, &["stats"]).says(0, &[]);
    let held = Connection::open(&path).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    build(&workshop, "unity-pass");
    run(&workshop, &[]).says(0, &["PASS", "did not answer within"]);
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    let all = kb(&workshop, &["capture", "--json"]).json().unwrap();
    assert_eq!(all["queued"], 2, "{all}");
    // They were learnt from in the order in which they ran.
    assert_eq!(units(&workshop, "test_keeps_order").len(), 1);
    assert_eq!(fs::read_dir(folder.join("outbox/runs")).unwrap().count(), 0);
}

#[test]
fn a_run_whose_process_is_killed_in_the_capture_is_learnt_from_once() {
    let workshop = Workshop::new();
    kb(&workshop, &["stats"]).says(0, &[]);
    build(&workshop, "unity-fail");
    run(&workshop, &[]).says(1, &[]);
    let path = workshop.path(STATE).join("knowledge/knowledge.db");
    let held = Connection::open(&path).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    build(&workshop, "unity-pass");
    let slot = Slot::take();
    let args = ["--state", STATE, "--json", "run", "-b", "microbit", "app.elf"];
    let mut command = workshop.jig(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = Started::of(&mut command);
    // The verdict is out, and the capture waits for the store.
    let mut first = [0; 1];
    started.child().stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    started.signal(Signal::SIGKILL);
    drop(started.finish());
    drop(slot);
    assert_eq!(units_of(&path), 0);
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    // The next run learns from it, too.
    build(&workshop, "unity-fail");
    run(&workshop, &[]).says(1, &["seen before: 1 time"]);
    assert_eq!(units(&workshop, "test_keeps_order").len(), 1);
    let all = kb(&workshop, &["capture", "--json"]).json().unwrap();
    assert_eq!((&all["runs"], &all["queued"]), (&0.into(), &0.into()), "{all}");
}

fn units_of(path: &Path) -> i64 {
    let store = Connection::open(path).unwrap();
    store.query_row("SELECT count(*) FROM unit", [], |row| row.get(0)).unwrap()
}

#[test]
fn steps_of_recovery_are_counted_and_a_drill_is_not() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("mps2-an385", "slow-start");
    let started = |more: &[&str]| {
        let before = workshop.run_dirs().len();
        let mut command =
            workshop.jig(["--state", STATE, "--json", "run", "-b", "mps2-an385", &image]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = Started::of(&mut command);
        until("a board that is on", || {
            let events = workshop.run_dirs().get(before)?.join("events.jsonl");
            fs::read_to_string(events).ok()?.contains("\"event\":\"boot\"").then_some(())
        });
        run
    };
    for _ in 0..2 {
        let run = started(&[]);
        let emulator = until("an emulator", || workshop.emulators().pop());
        kill(emulator, Signal::SIGKILL).unwrap();
        run.finish().says(0, &[]);
    }
    started(&["--inject", "kill-emulator@5ms"]).finish().says(0, &[]);
    let found = units(&workshop, "emulator_killed");
    let [unit] = found.as_slice() else { panic!("{found:#?}") };
    let title = "mps2-an385: restart-emulator recovers from emulator_killed, 2 of 2";
    assert_eq!(unit["content"]["title"], title);
    assert_eq!(
        (&unit["standing"]["status"], &unit["audit"]["count"]),
        (&"verified".into(), &2.into())
    );
}

#[test]
fn a_patch_is_verified_by_its_second_proof_and_agents_are_told_what_is_known() {
    let workshop = Workshop::new();
    let project = RepairProject::new(&workshop);
    let repair = || {
        let task = project.task("[\"command:script\"]", Some(MEND));
        let _slot = Slot::take();
        let ran = ran(workshop.jig(["--state", STATE, "--json", "repair"]).arg(task)).unwrap();
        assert_eq!(ran.code(), 0, "{ran}");
        ran.json().unwrap()
    };
    let patched = || {
        let found = units(&workshop, "repaired in ring.c");
        found.into_iter().find(|unit| unit["content"]["diff"].is_string()).unwrap()
    };
    let first = repair();
    let unit = patched();
    assert_eq!(
        (&unit["standing"]["status"], &unit["standing"]["maturity"]),
        (&"pending".into(), &1.into())
    );
    assert_eq!(unit["metadata"]["signature"], first["failure"], "{unit:#}");
    assert_eq!(unit["content"]["summary"], "the bound is one too high");
    assert_eq!(unit["content"]["summary_by_model"], true);
    // The runs of the loop fail and pass on purpose: they are no units of their own.
    let of_runs = units(&workshop, "fixed by a newer image again and again");
    let tag = |unit: &Value| unit["metadata"]["tags"][0] == "repair";
    assert!(of_runs.iter().all(tag), "{of_runs:#?}");
    let signature = first["failure"].as_str().unwrap();
    let known = ["--title", "the bound of the ring", "--resolution", "look at ring_put"];
    kb(&workshop, &[&["add", "--signature", signature][..], &known].concat()).says(0, &[]);
    let second = repair();
    let folder = workshop.runs().join("repairs").join(second["run"].as_str().unwrap());
    let similar = find(&folder, "similar.json").unwrap();
    let similar: Vec<Value> = serde_json::from_slice(&fs::read(similar).unwrap()).unwrap();
    let told = similar.iter().find(|row| row["title"] == "the bound of the ring");
    assert_eq!(told.unwrap()["standing"], "not verified", "{similar:#?}");
    let again = patched();
    assert_eq!(again["id"], unit["id"]);
    assert_eq!(
        (&again["standing"]["status"], &again["audit"]["count"]),
        (&"verified".into(), &2.into())
    );
    let run = first["run"].as_str().unwrap();
    let known = workshop.run(["--state", STATE, "kb", "capture", run]);
    known.says(0, &[]);
    assert!(known.out().contains("learnt from before"), "{known}");
}

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| match entry.file_type().ok()?.is_dir() {
        true => find(&entry.path(), name),
        false => (entry.file_name() == name).then(|| entry.path()),
    })
}

#[test]
fn nothing_is_learnt_where_the_rig_file_says_so() {
    let workshop = Workshop::new();
    let rig = workshop.write("rig.toml", "version = 1\n[knowledge]\nenabled = false\n");
    build(&workshop, "unity-fail");
    let rig = rig.to_str().unwrap();
    run(&workshop, &["--rig", rig]).says(1, &[]);
    assert!(!workshop.path(STATE).join("knowledge").exists());
}

/// Names the file of an embedding model, for the test that needs one.
const EMBEDDING: &str = "JIG_TEST_EMBEDDING";

/// Returns how many units have a vector, as `jig kb stats` tells.
fn vectors(workshop: &Workshop, model: &str) -> Option<u64> {
    let stats = workshop.run(["kb", "--embedding", model, "stats", "--json"]);
    stats.says(0, &[]);
    stats.json().unwrap()["meaning"]["vectors"].as_u64()
}

/// Lets a build fail, and the next one pass: one unit, in the store that the service has, too.
fn taught(workshop: &Workshop) {
    let _slot = Slot::take();
    for (fixture, code) in [("unity-fail", 1), ("unity-pass", 0)] {
        build(workshop, fixture);
        workshop.run(["run", "-b", "microbit", "app.elf"]).says(code, &[]);
    }
}

#[test]
fn a_service_makes_the_vectors_of_what_runs_have_taught() {
    let workshop = Workshop::new();
    // Without the files of the model the service serves, and units are found by their words.
    let files = "runtime = \"no.so\"\nmodel = \"no.onnx\"\nvocabulary = \"vocab.txt\"\n";
    let broken = workshop.write("broken.toml", files).display().to_string();
    taught(&workshop);
    let service = CaptureService::with(&workshop, |jig| {
        jig.env("JIG_EMBEDDING", &broken);
    });
    until("a warning", || {
        let told = fs::read_to_string(workshop.path("keeper.txt")).unwrap();
        told.contains("new units are found by words only").then_some(())
    });
    let found = workshop.run(["kb", "search", "--json", "test_keeps_order"]);
    assert_eq!(found.says(0, &[]).json().unwrap()["hits"].as_array().unwrap().len(), 1, "{found}");
    service.stop().says(0, &[]);
    let Some(model) = std::env::var_os(EMBEDDING) else {
        eprintln!("no vectors were made: {EMBEDDING} names no embedding.toml");
        return;
    };
    let model = model.into_string().unwrap();
    assert_eq!(vectors(&workshop, &model), Some(0));
    let service = CaptureService::with(&workshop, |jig| {
        jig.env("JIG_EMBEDDING", &model);
    });
    until("the vector of a unit", || (vectors(&workshop, &model) == Some(1)).then_some(()));
    // The third failure of a kind is another unit, which is learnt while the service runs.
    for _ in 0..2 {
        let _slot = Slot::take();
        build(&workshop, "unity-fail");
        workshop.run(["run", "-b", "microbit", "app.elf"]).says(1, &[]);
    }
    until("the vector of a new unit", || (vectors(&workshop, &model) == Some(2)).then_some(()));
    service.stop().says(0, &[]);
}
