//! Tests of the run store as a whole.

mod flash;
mod folder;
mod killing;
mod life;
mod places;
mod sweeping;
mod torn;

use std::path::Path;
use std::sync::Arc;

use jig_model::{Cause, RunEvent, Verdict};
use tempfile::TempDir;

use super::*;

/// A store in memory where there is such a folder: these tests flush often.
fn store() -> (TempDir, RunStore) {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    let store = RunStore::new(folder.path().join("runs"));
    (folder, store)
}

fn at(text: &str) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(text.parse().unwrap()))
}

fn new_run() -> NewRun {
    NewRun {
        identity: Some(jig_model::Identity::default()),
        jig_version: "0.1.0".into(),
        place: Some("bench-1".parse().unwrap()),
        board: Some("board-a".parse().unwrap()),
        plan: Some(PlanRecord { name: "smoke".into(), origin: "smoke.toml".into() }),
        images: vec![ImageRecord {
            path: "out/app.elf".into(),
            sha256: "00ff".into(),
            build_id: None,
        }],
        host: [("kernel".to_owned(), "6.1".to_owned())].into(),
        asked: None,
    }
}

fn begin(store: &RunStore, wall: &str) -> LiveRun {
    store.begin(new_run(), at(wall)).unwrap()
}

fn note(text: &str) -> RunEvent {
    RunEvent::Note { text: text.to_owned() }
}

fn passed() -> Verdict {
    Verdict::of(Cause::Passed, "3 of 3 passed")
}

fn now() -> jiff::Timestamp {
    "2026-12-01T00:00:00Z".parse().unwrap()
}
