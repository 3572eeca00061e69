//! Place locks between threads and processes.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jig_model::PlaceName;

use super::killing::wait_for;
use crate::store::{Holder, PlaceLockError, Places};

const FOLDER: &str = "JIG_TEST_VICTIM_PLACES";

fn place() -> PlaceName {
    "bench-1".parse().unwrap()
}

fn places() -> (tempfile::TempDir, Places) {
    let state = tempfile::tempdir().unwrap();
    let places = Places::new(state.path());
    (state, places)
}

/// Returns the holder of the place, if it is held and the holder is known.
fn holder(places: &Places) -> Option<Holder> {
    places.holder(&place()).unwrap().flatten()
}

#[test]
#[ignore = "a victim, started by the tests below"]
fn holds_a_place() {
    let Some(state) = std::env::var_os(FOLDER) else { return };
    let mut lock = Places::new(state.as_ref()).try_lock(&place()).unwrap();
    lock.serves(Some("1209:4a49:x"));
    // Until its parent ends it, or is gone and with it the other end of this pipe.
    let _ = std::io::Read::read(&mut std::io::stdin(), &mut [0]);
}

fn victim(state: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "store::tests::places::holds_a_place"])
        .env(FOLDER, state)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_place_has_one_user_who_is_named() {
    let (_state, places) = places();
    assert_eq!(places.holder(&place()).unwrap(), None);
    let mut lock = places.try_lock(&place()).unwrap();
    lock.serves(Some("1209:4a49:x"));
    let error = places.try_lock(&place()).unwrap_err();
    let PlaceLockError::Held { holder: Some(named), .. } = &error else { panic!("{error}") };
    assert_eq!((named.pid, named.selector.as_deref()), (std::process::id(), Some("1209:4a49:x")));
    let text = error.to_string();
    let wanted = format!("(pid {}, since ", std::process::id());
    assert!(text.starts_with("place bench-1 is in use by jig_rig-"), "{text}");
    assert!(text.contains(&wanted) && text.ends_with(", serves probe 1209:4a49:x)"), "{text}");
    assert_eq!(holder(&places).as_ref(), Some(&**named));
    // Another place is another lock.
    drop(places.try_lock(&"bench-2".parse().unwrap()).unwrap());
    drop(lock);
    assert_eq!(places.holder(&place()).unwrap(), None);
    drop(places.try_lock(&place()).unwrap());
}

#[test]
fn a_killed_holder_holds_nothing() {
    let (state, places) = places();
    let mut process = victim(state.path());
    let seen = wait_for("holder", || holder(&places).filter(|seen| seen.selector.is_some()));
    assert_eq!(seen.pid, process.id());
    assert!(places.try_lock(&place()).is_err());
    process.kill().unwrap();
    process.wait().unwrap();
    // Its record is still in the file, and is not believed.
    let left = std::fs::read_to_string(places.root().join("bench-1.lock")).unwrap();
    assert!(left.contains(&seen.pid.to_string()), "{left}");
    assert_eq!(places.holder(&place()).unwrap(), None);
    drop(places.try_lock(&place()).unwrap());
}

#[test]
fn a_holder_that_carries_out_a_job_is_named_by_it() {
    let (_state, places) = places();
    let _lock = places.try_lock(&place()).unwrap();
    let mut holder = places.holder(&place()).unwrap().unwrap().unwrap();
    for (command, what) in [
        (
            "jig --state /var/lib/x worker --job /var/lib/x/jobs/2611-7f",
            "a command of a service, job 2611-7f (pid ",
        ),
        ("jig run -b bench-1", "jig run -b bench-1 (pid "),
        ("jig worker --job", "jig worker --job (pid "),
        ("jig worker --job /", "jig worker --job / (pid "),
    ] {
        holder.command = command.split(' ').map(str::to_owned).collect();
        assert!(holder.to_string().starts_with(what), "{holder}");
    }
}

#[test]
fn records_that_are_late_or_nonsense_name_nobody() {
    let (_state, places) = places();
    let lock = places.try_lock(&place()).unwrap();
    let path = places.root().join("bench-1.lock");
    let me = std::fs::read_to_string(&path).unwrap();
    let stale = me.replace("\"start_ticks\":", "\"start_ticks\":9");
    for record in ["", "{", "\0\0", stale.as_str(), &"x".repeat(1 << 20)] {
        std::fs::write(&path, record).unwrap();
        assert_eq!(places.holder(&place()).unwrap(), Some(None), "{record:.20}");
        let error = places.try_lock(&place()).unwrap_err().to_string();
        assert_eq!(error, "place bench-1 is in use by another process");
    }
    drop(lock);
}

#[tokio::test]
async fn a_waiter_is_told_who_holds_the_place_and_gets_it_next() {
    let (state, places) = places();
    let mut process = victim(state.path());
    let pid = process.id();
    wait_for("holder", || holder(&places).filter(|seen| seen.selector.is_some()));
    let mut told = Vec::new();
    let late = places.lock_within(&place(), Duration::ZERO, |_| told.push(0)).await;
    assert!(matches!(late, Err(PlaceLockError::Held { holder: Some(_), .. })));
    assert_eq!(told, [0; 0]);
    let hour = Duration::from_secs(3600);
    let wanted = place();
    let lock = places.lock_within(&wanted, hour, |holder| {
        told.push(holder.map_or(0, |holder| holder.pid));
        process.kill().unwrap();
    });
    let lock = lock.await.unwrap();
    process.wait().unwrap();
    // It may be seen again without its record, while it dies.
    assert_eq!(told[0], pid);
    assert_eq!(lock.place(), &place());
}

#[tokio::test]
async fn a_waiter_that_goes_away_leaves_nothing() {
    let (_state, places) = places();
    let lock = places.try_lock(&place()).unwrap();
    let hour = Duration::from_secs(3600);
    {
        let mut told = 0;
        let wanted = place();
        let mut waits = Box::pin(places.lock_within(&wanted, hour, |_| told += 1));
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        assert!(waits.as_mut().poll(&mut context).is_pending());
        drop(waits);
        assert_eq!(told, 1);
    }
    drop(lock);
    drop(places.try_lock(&place()).unwrap());
}

#[test]
fn many_users_never_meet() {
    let (_state, places) = places();
    let inside = AtomicU32::new(0);
    let rounds = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let lock = wait_for("turn", || places.try_lock(&place()).ok());
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    rounds.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    drop(lock);
                }
            });
        }
    });
    assert_eq!(rounds.load(Ordering::SeqCst), 200);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let state = tempfile::tempdir().unwrap();
    std::fs::write(state.path().join("places"), "a file").unwrap();
    let error = Places::new(state.path()).try_lock(&place()).unwrap_err();
    assert!(error.to_string().contains("places"), "{error}");
}
