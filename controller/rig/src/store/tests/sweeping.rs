//! What is left of killed jigs, with real processes.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child as Process, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use jig_model::protocol::ProcessLedger as _;

use super::*;
use crate::store::process::start_ticks;

/// Starts a process that would outlive any test, as the leader of its own group.
fn sleeper() -> Process {
    Command::new("/bin/sleep").arg("600").stdin(Stdio::null()).process_group(0).spawn().unwrap()
}

fn pid(process: &Process) -> i32 {
    i32::try_from(process.id()).unwrap()
}

#[test]
fn exactly_the_recorded_process_is_killed() {
    let (_folder, store) = store();
    let (mut ours, mut stranger, mut reaped) = (sleeper(), sleeper(), sleeper());
    let run = begin(&store, "2026-11-21T22:15:30Z");
    let id = run.id().clone();
    run.children().started(pid(&ours), "emulator");
    // The same pid with another start time: it was given to another process since.
    run.children().add(stranger.id(), start_ticks(stranger.id()).unwrap() - 1, "old tool").unwrap();
    run.children().started(pid(&reaped), "tool");
    run.children().ended(pid(&reaped));

    assert!(store.sweep(now()).unwrap().is_empty(), "a live run is not touched");
    assert!(ours.try_wait().unwrap().is_none());
    drop(run);

    let swept = store.sweep(now()).unwrap();
    let [Swept { id: found, outcome: SweptOutcome::Abandoned(record) }] = &swept[..] else {
        panic!("{swept:?}")
    };
    assert_eq!(*found, id);
    assert_eq!(record.killed.iter().map(|c| c.pid).collect::<Vec<_>>(), [ours.id()]);
    assert_eq!(record.remarks, Vec::<String>::new());
    assert_eq!(ours.wait().unwrap().signal(), Some(9));
    for survivor in [&mut stranger, &mut reaped] {
        assert!(survivor.try_wait().unwrap().is_none());
        survivor.kill().unwrap();
        survivor.wait().unwrap();
    }
}

#[test]
fn the_group_of_a_leader_that_has_ended_is_killed_and_no_other() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    // Each leader ends at once, and its child lives on in its group.
    let orphan = |mark: bool| {
        let mut leader = Command::new("/bin/sh");
        leader.args(["-c", "sleep 600 >/dev/null & echo $!"]).process_group(0).env_clear();
        if mark {
            leader.env(jig_model::protocol::CHILD_MARK, "1");
        }
        let mut leader = leader.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let ticks = start_ticks(leader.id()).unwrap();
        run.children().add(leader.id(), ticks, "flasher").unwrap();
        let said = std::io::read_to_string(leader.stdout.take().unwrap()).unwrap();
        leader.wait().unwrap();
        let pid: u32 = said.trim().parse().unwrap();
        (pid, start_ticks(pid).unwrap())
    };
    let (ours, stranger) = (orphan(true), orphan(false));
    drop(run);
    assert_eq!(store.sweep(now()).unwrap().len(), 1);
    let lives = |(pid, ticks)| crate::store::process::lives(pid, ticks);
    assert!(!lives(ours), "it lives on");
    assert!(lives(stranger), "it is nobody's child");
    let pid = nix::unistd::Pid::from_raw(stranger.0.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[test]
fn a_process_of_another_boot_is_a_stranger() {
    let (_folder, store) = store();
    let mut stranger = sleeper();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    run.children().started(pid(&stranger), "tool");
    let path = run.dir().children_path();
    let boot = crate::store::process::boot_id().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(&boot));
    fs::write(&path, text.replace(&boot, "another-boot")).unwrap();
    drop(run);
    assert_eq!(store.sweep(now()).unwrap().len(), 1);
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn sweeps_at_once_share_the_work() {
    let (_folder, store) = store();
    for n in 0..20 {
        drop(begin(&store, &format!("2026-11-21T22:15:{n:02}Z")));
    }
    let store = &store;
    let mut ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| store.sweep(now()).unwrap())).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).map(|s| s.id).collect()
    });
    ids.sort();
    assert_eq!(ids.len(), 20);
    ids.dedup();
    assert_eq!(ids.len(), 20);
    assert!(store.list().unwrap().iter().all(|entry| {
        entry.record.as_ref().is_ok_and(|record| record.state == RunState::Abandoned)
    }));
}

#[test]
fn a_sweep_never_takes_a_run_that_begins_or_ends() {
    let (_folder, store) = store();
    let (store, done) = (&store, &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let sweeper = scope.spawn(move || {
            let mut swept = Vec::new();
            while !done.load(Ordering::Acquire) {
                swept.extend(store.sweep(now()).unwrap());
            }
            swept
        });
        for n in 0..200 {
            let run = begin(store, "2026-11-21T22:15:30Z");
            run.events().append(&note(&n.to_string())).unwrap();
            run.finish(passed()).unwrap();
        }
        done.store(true, Ordering::Release);
        let swept = sweeper.join().unwrap();
        assert!(swept.is_empty(), "{swept:?}");
    });
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), 200);
    for entry in listed {
        assert_eq!(entry.record.unwrap().state, RunState::Ended);
    }
}

#[test]
fn remains_of_begins_and_prunes_go_and_living_ones_stay() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    let hidden = |name: &str| store.root().join(name);
    // Killed before and after the lock was there; a prune killed half-way.
    fs::create_dir(hidden(".new-20261121-221531-0000")).unwrap();
    fs::create_dir(hidden(".new-20261121-221532-0000")).unwrap();
    fs::write(hidden(".new-20261121-221532-0000/lock"), "").unwrap();
    fs::create_dir_all(hidden(".old-20261121-221533-0000/reports")).unwrap();
    // Another program's.
    fs::create_dir(hidden("notes")).unwrap();
    fs::write(hidden("20261121-221534-0000"), "a file").unwrap();
    assert!(store.sweep(now()).unwrap().is_empty());
    let mut names: Vec<_> = fs::read_dir(store.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [run.id().as_str(), "20261121-221534-0000", "notes"]);
}

#[test]
fn an_ended_run_with_its_lock_left_is_only_tidied() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    let dir = run.dir().clone();
    let record = run.finish(passed()).unwrap();
    fs::write(dir.lock_path(), "").unwrap();
    assert!(store.sweep(now()).unwrap().is_empty());
    assert!(!dir.lock_path().exists());
    assert_eq!(dir.record().unwrap(), record);
}
