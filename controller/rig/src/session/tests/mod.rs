//! Runs on a scripted board: attempts, storage that fails, requests that do not fit.

mod preflight;
mod recoveries;

use std::path::Path;
use std::sync::{Arc, Mutex};

use jig_model::protocol::{Host, ProcessLedger};
use jig_model::{Cause, ConsoleName, Fault, RunEvent, RunId, VerdictKind};

use super::{DutSpec, NoLabServices, Observer, RunEnvironment, SessionError, SessionRequest, run};
use crate::attempt::fake::{self, Beat, GREEN, RED, parse, plan, print};
use crate::console::ConsoleHandle;
use crate::store::{RunRecord, RunStore};
use crate::workflow::CancelToken;

/// Spoils a run's directory as soon as it is known.
struct Spoiler(Mutex<Option<fn(&Path)>>);

impl Observer for Spoiler {
    fn began(&self, _run: &RunId, dir: &Path) {
        if let Some(spoil) = self.0.lock().unwrap().take() {
            spoil(dir);
        }
    }
    fn event(&self, _event: &RunEvent) {}
    fn console(&self, _console: &ConsoleName, _handle: &ConsoleHandle) {}
}

const SET: &str = "image_set = \"set\"\nargs = [\"-D\", \"{artifact:log}\"]\n";

async fn made(
    boots: Vec<Vec<Beat>>,
    text: &str,
    repeat: u32,
    spoil: Option<fn(&Path)>,
) -> Result<RunRecord, SessionError> {
    let root = tempfile::tempdir().unwrap();
    let mut board = fake::Bench::new(boots);
    // A board that boots by itself needs no image file.
    board.profile.push_str(SET);
    let spec = DutSpec {
        place: Arc::new(fake::emulated()),
        profile: board.profile(),
        factory: &board,
        outlet: None,
        canary: None,
    };
    let request = SessionRequest {
        plan: parse(text),
        image: None,
        repeat,
        max_recoveries: None,
        asked: None,
    };
    let store = RunStore::new(root.path());
    let host = |_: Arc<dyn ProcessLedger>| Box::new(fake::Bench::new(vec![])) as Box<dyn Host>;
    let environment = RunEnvironment {
        store: &store,
        spare: &[],
        lab: &NoLabServices,
        places: None,
        health: None,
        host: &host,
        image_sets: Path::new("/"),
        version: "1",
        clock: None,
    };
    let spoiler = Arc::new(Spoiler(Mutex::new(spoil)));
    run(spec, request, &environment, spoiler, CancelToken::new()).await
}

const WAIT: &str = "{ power = 'cycle' }, { wait_for_results = true }";

#[tokio::test]
async fn a_run_is_recorded_with_all_attempts() {
    let record = made(vec![vec![print(GREEN)]], &plan(WAIT), 3, None).await.unwrap();
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, record.attempts.len()), (VerdictKind::Pass, 3));
    let record = made(vec![vec![print(RED)]], &plan(WAIT), 2, None).await.unwrap();
    assert_eq!(record.verdict.unwrap().cause, Cause::TestFailed);
}

#[tokio::test]
async fn an_attempt_that_the_rig_spoiled_ends_the_run() {
    let beats = vec![Beat::Event(fake::lost())];
    let record = made(vec![beats], &plan(WAIT), 3, None).await.unwrap();
    assert_eq!(record.attempts.len(), 1);
    assert_eq!(record.verdict.unwrap().cause, Cause::EmulatorKilled);
}

#[tokio::test]
async fn storage_that_fails_under_way_is_the_labs_fault() {
    let in_the_way: fn(&Path) = |dir| {
        let _ = std::fs::remove_dir_all(dir.join("consoles"));
        std::fs::write(dir.join("consoles"), "").unwrap();
    };
    let record = made(vec![vec![print(GREEN)]], &plan(WAIT), 1, Some(in_the_way)).await.unwrap();
    let verdict = record.verdict.unwrap();
    assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, Cause::StorageFailed));
    assert!(verdict.summary.contains("consoles"), "{}", verdict.summary);
}

#[tokio::test]
async fn a_run_whose_folder_is_deleted_keeps_its_verdict_elsewhere() {
    // The second one leaves a file where the folder would be made anew.
    let gone: fn(&Path) = |dir| {
        for file in ["lock", "record.json"] {
            std::fs::remove_file(dir.join(file)).unwrap();
        }
    };
    let blocked: fn(&Path) = |dir| {
        std::fs::rename(dir, dir.with_extension("moved")).unwrap();
        std::fs::write(dir, "").unwrap();
    };
    for (spoil, shown) in [(gone, true), (blocked, false)] {
        let record = made(vec![vec![print(GREEN)]], &plan(WAIT), 1, Some(spoil)).await.unwrap();
        let verdict = record.verdict.unwrap();
        assert_eq!((verdict.kind, verdict.cause), (VerdictKind::EnvError, Cause::StorageFailed));
        let kept = verdict.summary.split_once("the verdict is kept in ").unwrap().1;
        let kept = Path::new(kept.split_once(" (").unwrap().0);
        assert_eq!(kept.starts_with(crate::store::lost_runs()), !shown, "{kept:?}");
        if shown {
            assert_eq!(verdict.notes[0], "the test had shown: passed: 2 tests passed");
        } else {
            let text = std::fs::read_to_string(kept).unwrap();
            assert!(text.contains("storage_failed"), "{text}");
            std::fs::remove_dir_all(kept.parent().unwrap()).unwrap();
        }
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_anything_is_recorded() {
    let text = plan(WAIT).replace("[[stage]]\n", "[requires]\nfeatures = [\"x\"]\n[[stage]]\n");
    let error = made(vec![], &text, 1, None).await.unwrap_err();
    assert!(error.to_string().contains("the board lacks x"), "{error}");
    let error = made(vec![], &plan("{ deploy = true }"), 1, None).await.unwrap_err();
    assert!(error.to_string().contains("--image"), "{error}");
}

#[tokio::test]
async fn a_reset_without_power_is_refused_before_the_run_begins() {
    for actions in [
        "{ reset = true }, { wait_for_results = true }",
        "{ power = 'on' }, { power = 'off' }, { reset = true }, { wait_for_results = true }",
    ] {
        let refused = made(vec![vec![print(GREEN)]], &plan(actions), 1, None).await.unwrap_err();
        assert!(matches!(refused, SessionError::ResetsUnpowered { .. }), "{refused}");
        assert_eq!(refused.fault(), Fault::Profile);
        assert!(refused.to_string().contains("while its power is off"), "{refused}");
    }
    let powered = "{ power = 'on' }, { reset = true }, { wait_for_results = true }";
    let made = made(vec![vec![print(GREEN)], vec![print(GREEN)]], &plan(powered), 1, None).await;
    assert!(made.is_ok(), "{}", made.unwrap_err());
}
