//! What is seen in recorded runs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::*;
use jig_knowledge::embedding::{EmbedError, Embedder, EmbedderName, LoadEmbedder};
use jig_knowledge::observed::{ObservedEnd, ObservedRun};
use jig_knowledge::retrieve::{HitReason, KnowledgeCaller, RetrievalContext};
use jig_knowledge::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

const ID: &str = "20261121-221530-7f3a";
const LOG: &str =
    "test_starts_empty:PASS\ntest_ring.c:31:test_keeps_order:FAIL: Expected 1 Was 2\n";

/// Writes a run as the rig leaves it.
fn recorded(runs: &Path, change: impl Fn(&mut serde_json::Value), events: &[serde_json::Value]) {
    let dir = runs.join(ID);
    fs::create_dir_all(dir.join("consoles/1")).unwrap();
    fs::write(dir.join("children.jsonl"), "").unwrap();
    fs::write(dir.join("consoles/1/uart0.raw"), LOG).unwrap();
    let case = |name: &str, status: &str, message: Option<&str>| {
        json!({ "name": name, "status": status, "message": message, "duration_ms": null,
            "start": 0, "end": 0 })
    };
    let mut record = json!({
        "format": "jig-run", "version": 1, "id": ID, "state": "ended",
        "jig_version": null, "started": "2026-11-21T22:15:30Z", "ended": "2026-11-21T22:15:31Z",
        "duration_ms": 1000, "place": "bench-1", "board": "microbit",
        "plan": { "name": "unit", "origin": "tests/unit.toml" },
        "images": [{ "path": "build/app.elf", "sha256": "ab".repeat(32), "build_id": "c0ffee" }],
        "attempts": [], "exit_code": 1, "host": {},
        "verdict": {
            "kind": "fail", "cause": "test_failed", "summary": "1 of 2 tests failed",
            "evidence": [
                { "file": "consoles/1/uart0.raw", "start": 23, "end": LOG.len(), "note": "" },
                { "file": "../../secret", "start": 0, "end": 6, "note": "" },
                { "file": "consoles/1/uart0.raw", "start": 9, "end": 3, "note": "" },
            ],
            "tests": { "format": "unity", "planned": 2, "ended": true, "remarks": [], "cases": [
                case("test_starts_empty", "pass", None),
                case("test_keeps_order", "fail", Some("test_ring.c:31: Expected 1 Was 2")),
            ] },
        },
    });
    change(&mut record);
    fs::write(dir.join("record.json"), record.to_string()).unwrap();
    let head = json!({ "format": "jig-events", "version": 1 }).to_string();
    let lines = (0..).zip(events).map(|(seq, event)| {
        let mut line = json!({ "seq": seq, "mono_ns": 0, "wall": "2026-11-21T22:15:30Z" });
        let fields = event.as_object().unwrap().clone();
        line.as_object_mut().unwrap().extend(fields);
        line.to_string()
    });
    let lines: Vec<_> = std::iter::once(head).chain(lines).collect();
    fs::write(dir.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
}

fn seen(runs: &Path) -> ObservedRun {
    let RunEntry { dir, record, .. } = RunStore::new(runs).open(ID).unwrap();
    observed_run(&dir, &record.unwrap(), Some(&"nRF51822".to_owned()), &runs.join("repairs"))
}

#[test]
fn a_recorded_failure_is_seen_with_its_evidence_and_nothing_outside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let runs = folder.path().join("runs");
    recorded(&runs, |_| (), &[]);
    let run = seen(&runs);
    assert_eq!((run.end, run.drill, run.in_repair), (ObservedEnd::Failed, false, false));
    assert_eq!(run.passed, ["test_starts_empty"]);
    let image = run.image.unwrap();
    assert_eq!((image.name.as_str(), image.commit), ("app.elf", None));
    let failure = run.failure.unwrap();
    assert_eq!(
        failure.signature,
        "test_failed | test_keeps_order | test_ring.c:#: Expected # Was #"
    );
    assert_eq!(failure.failed, ["test_keeps_order"]);
    assert_eq!(failure.files, ["test_ring.c"]);
    assert_eq!(failure.quotes, [&LOG[23..]]);
    assert_eq!(failure.evidence.len(), 1, "{:?}", failure.evidence);
    assert_eq!((failure.evidence[0].start, failure.evidence[0].end), (23, LOG.len() as u64));
}

#[test]
fn recoveries_and_drills_are_read_from_the_events() {
    let began = json!({ "event": "recovery", "what": "began", "cause": "probe_missing",
        "ladder": [], "timeout_ms": 1 });
    let proof = |step: &str, ok| {
        json!({ "event": "recovery", "what": "proof", "step": step, "ok": ok, "detail": "",
            "took_ms": 1 })
    };
    let folder = tempfile::tempdir().unwrap();
    let events = [began, proof("reset", false), proof("power-cycle", true)];
    recorded(folder.path(), |_| (), &events);
    let run = seen(folder.path());
    let steps: Vec<_> =
        run.recoveries.iter().map(|one| (one.cause.as_str(), one.step.as_str(), one.ok)).collect();
    assert_eq!(steps, [("probe_missing", "reset", false), ("probe_missing", "power-cycle", true)]);
    let injected = json!({ "event": "injected", "fault": "x", "detail": "" });
    recorded(folder.path(), |_| (), &[injected]);
    assert!(seen(folder.path()).drill);
}

#[test]
fn a_failure_of_the_rig_is_one_of_its_place_and_a_pass_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let of = |kind: &str, cause: &str| {
        let change = |record: &mut serde_json::Value| {
            record["verdict"]["kind"] = json!(kind);
            record["verdict"]["cause"] = json!(cause);
            record["plan"]["origin"] = json!(folder.path().join("repairs/r1/plan.toml"));
        };
        recorded(folder.path(), change, &[]);
        seen(folder.path())
    };
    let rig = of("env_error", "probe_missing");
    assert!(rig.in_repair);
    assert_eq!(rig.failure.unwrap().signature, "rig:probe_missing | bench-1");
    for (kind, end) in [("pass", ObservedEnd::Passed), ("flaky", ObservedEnd::Unclear)] {
        let run = of(kind, "passed");
        assert_eq!((run.end, run.failure), (end, None));
    }
}

#[test]
fn a_copy_of_a_run_of_another_rig_and_one_that_goes_on_teach_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = crate::LabConfig {
        state: Some(folder.path().join("state")),
        runs: Some(folder.path().join("runs")),
        ..crate::LabConfig::default()
    };
    let desk = Catalogue::load(&config).unwrap().knowledge();
    let runs = folder.path().join("runs");
    recorded(&runs, |_| (), &[]);
    assert!(desk.observed("last").is_ok());
    fs::remove_file(runs.join(ID).join("children.jsonl")).unwrap();
    assert!(matches!(desk.observed("last"), Err(LearnError::Elsewhere(_))));
    recorded(&runs, |record| record["state"] = json!("running"), &[]);
    assert!(matches!(desk.observed("last"), Err(LearnError::Unended(_))));
    // Neither makes a store, and the backlog passes both over.
    assert_eq!(desk.catch_up(None).unwrap().runs, 0);
    assert!(!folder.path().join("state/knowledge").exists());
}

#[test]
fn what_does_not_answer_is_left_out() {
    let (release, held) = mpsc::channel::<()>();
    let began = Instant::now();
    let late = in_time(Duration::from_millis(20), move || held.recv().is_ok());
    assert_eq!(late, None);
    // It was not waited for: the thread still waits for this.
    assert!(release.send(()).is_ok());
    assert!(began.elapsed() >= Duration::from_millis(20));
    assert_eq!(in_time(Duration::from_secs(60), || 7), Some(7));
}

/// A model that knows one direction.
struct OneDirection;

impl Embedder for OneDirection {
    fn name(&self) -> EmbedderName {
        EmbedderName { name: "one direction".to_owned(), dimension: 2 }
    }

    fn embed(&mut self, _: &str) -> Result<Vec<f32>, EmbedError> {
        Ok(vec![1.0, 0.0])
    }
}

#[test]
fn units_that_are_added_and_edited_get_their_vectors_behind_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let config = crate::LabConfig { state: Some(state.clone()), ..crate::LabConfig::default() };
    let catalogue = Catalogue::load(&config).unwrap();
    let load: LoadEmbedder = Arc::new(|| Ok(Box::new(OneDirection)));
    let door = KnowledgeDoor::with_model(&state, Some(load));
    // Without any knowledge none is begun.
    door.embed_new();
    assert!(!state.join("knowledge").exists());
    let ask = |order| door.carry_out(&catalogue, order, "a test", &mut |_, _| {}).unwrap().reply;
    let vectors = || match ask(KnowledgeOrder::Stats) {
        KnowledgeReply::Stats(stats) => stats.meaning.unwrap().vectors,
        other => panic!("{other:?}"),
    };
    let content = UnitContent { title: "timer overflows".to_owned(), ..UnitContent::default() };
    let draft = Draft {
        id: UnitId::random(),
        content,
        metadata: UnitMetadata::default(),
        at: Timestamp::now(),
        by: "somebody else".to_owned(),
        trigger: CaptureTrigger::Marked,
    };
    let id = draft.id.clone();
    let reply = ask(KnowledgeOrder::Add { draft: Box::new(draft) });
    assert_eq!(vectors(), 0, "the answer waits for no model");
    door.settle(&reply);
    assert_eq!(vectors(), 1);
    // Who has added it is told by the rig, whatever the caller says.
    let shown = match ask(KnowledgeOrder::Show { id: id.clone(), history: false }) {
        KnowledgeReply::Shown(shown) => shown.unit,
        other => panic!("{other:?}"),
    };
    assert_eq!(shown.audit.created_by, "a test");
    let content = UnitContent { title: "timer wraps".to_owned(), ..shown.content };
    let edit = KnowledgeOrder::Edit {
        id: id.clone(),
        version: shown.audit.version,
        content: Box::new(content),
        metadata: Box::new(shown.metadata),
    };
    let reply = ask(edit.clone());
    door.settle(&reply);
    let asked = |order| door.carry_out(&catalogue, order, "a test", &mut |_, _| {});
    assert!(asked(edit).is_err(), "an edit of an older version");
    let context = RetrievalContext {
        timeout: Duration::from_secs(60),
        caller: KnowledgeCaller::Analysis,
        ..RetrievalContext::new("another thing")
    };
    let KnowledgeReply::Found(answer) = ask(KnowledgeOrder::Search { context: Box::new(context) })
    else {
        panic!("no answer")
    };
    let reasons: Vec<_> = answer.hits.iter().map(|hit| hit.reasons.clone()).collect();
    assert_eq!(reasons, [[HitReason::Meaning]], "{answer:?}");
    // A store that is replaced is opened anew.
    fs::remove_dir_all(state.join("knowledge")).unwrap();
    assert!(asked(KnowledgeOrder::Show { id, history: false }).is_err());
    assert_eq!(vectors(), 0);
}
