//! kill -9 of a real process that writes runs.
//!
//! The victim is this test program itself, started again for one ignored test.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_model::protocol::ProcessLedger as _;

use super::*;

const FOLDER: &str = "JIG_TEST_VICTIM_RUNS";

fn victim(name: &str, store: &RunStore) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("store::tests::killing::{name}")])
        .env(FOLDER, store.root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for a thing, not for a time; fails after far longer than it can take.
pub(super) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} within 30 s");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
#[ignore = "a victim, started by the tests below"]
fn makes_one_run_after_the_other() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let store = RunStore::new(folder);
    loop {
        let mut run = store.begin(new_run(), Arc::new(SystemClock::new())).unwrap();
        for n in 0..5 {
            run.events().append(&note(&"x".repeat(n * 1000))).unwrap();
            run.update(|record| record.duration_ms = Some(n as u64)).unwrap();
        }
        run.finish(passed()).unwrap();
    }
}

#[test]
#[ignore = "a victim, started by the tests below"]
fn makes_a_run_with_a_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let run = RunStore::new(folder).begin(new_run(), Arc::new(SystemClock::new())).unwrap();
    let mut command = Command::new("/bin/sleep");
    let mut child = command.arg("600").stdin(Stdio::null()).process_group(0).spawn().unwrap();
    run.children().started(i32::try_from(child.id()).unwrap(), "emulator");
    while run.events().append(&note("still here")).is_ok() {}
    // Only if the test is gone and took the folder with it.
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_kill_at_any_moment_leaves_whole_runs_only() {
    let mut abandoned = 0;
    for round in 0..50_u64 {
        let (_folder, store) = store();
        let mut process = victim("makes_one_run_after_the_other", &store);
        wait_for("run", || store.dirs().unwrap().pop());
        // From here on any moment will do; these are spread over about two runs.
        std::thread::sleep(Duration::from_micros(round * 37));
        process.kill().unwrap();
        process.wait().unwrap();

        abandoned += store.sweep(now()).unwrap().len();
        assert!(store.sweep(now()).unwrap().is_empty(), "round {round}");
        for entry in fs::read_dir(store.root()).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with('.'), "round {round}: {name} is left");
        }
        for entry in store.list().unwrap() {
            let record = entry.record.as_ref().unwrap();
            let abandoned = record.state == RunState::Abandoned;
            assert!(abandoned || record.state == RunState::Ended, "round {round}");
            assert!(record.place.is_some() && !entry.live, "round {round}");
            // A kill can cut a write that crosses a page; the sweep cuts off what is torn.
            let mut remarks = record.swept.iter().flat_map(|swept| &swept.remarks);
            assert!(
                remarks.all(|remark| remark.contains("unfinished")),
                "round {round}: {record:?}"
            );
            let events: Vec<_> = entry.dir.events().unwrap().map(Result::unwrap).collect();
            assert!(events.iter().all(|item| matches!(item, EventItem::Event(_))));
            assert!(abandoned || events.len() == 5, "round {round}");
        }
    }
    assert!(abandoned > 0, "no kill hit a run: this test showed nothing");
}

#[test]
fn a_killed_jigs_child_is_killed_by_the_next_start() {
    let (_folder, store) = store();
    let mut process = victim("makes_a_run_with_a_child", &store);
    let dir = wait_for("event", || {
        let dir = store.list().unwrap().pop()?.dir;
        let mut events = dir.events().ok()?;
        matches!(events.next(), Some(Ok(EventItem::Event(_)))).then_some(dir)
    });
    process.kill().unwrap();
    process.wait().unwrap();
    let children = crate::store::children::recorded(&dir.children_path()).unwrap();
    let [child] = &children[..] else { panic!("{children:?}") };
    assert!(crate::store::process::lives(child.pid, child.start_ticks));

    let swept = store.sweep(now()).unwrap();
    let [Swept { outcome: SweptOutcome::Abandoned(record), .. }] = &swept[..] else {
        panic!("{swept:?}")
    };
    assert_eq!(record.killed, children);
    assert!(!crate::store::process::lives(child.pid, child.start_ticks));
}
