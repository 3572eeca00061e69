//! The store: what is kept, by many processes, and what damages it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jig_model::{Cause, Fault, PlaceName, VerdictKind};

use super::*;
use crate::database::DatabaseError;
use crate::health::{HealthPolicy, HealthState, HealthStore, HealthSubject, PlaceHealth, Proof};

fn place(name: &str) -> PlaceName {
    name.parse().unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Opens a file by SQLite itself, as another program would.
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

#[test]
fn what_is_noted_is_there_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = HealthStore::path_in(&dir.path().join("not/yet"));
    let (one, other) = (place("bench-1"), place("bench-2"));
    let store = HealthStore::open(&path).unwrap();
    assert_eq!(store.of(&one).unwrap(), PlaceHealth::unknown_to_anybody());
    let noted = store.note(&one, at(1), &checked(false)).unwrap();
    assert_eq!((noted.state, noted.since), (HealthState::Suspect, Some(at(1))));
    // A second process would see it while this one goes on.
    let again = HealthStore::open(&path).unwrap();
    assert_eq!(again.of(&one).unwrap(), noted);
    again.note(&one, at(2), &canary(true)).unwrap();
    assert_eq!(store.of(&one).unwrap().passes_needed, 1);
    drop((store, again));
    let store = HealthStore::open(&path).unwrap();
    assert_eq!(store.of(&one).unwrap().passes_needed, 1);
    assert_eq!(store.of(&other).unwrap().state, HealthState::Healthy);
    let history = store.history(&one, 10).unwrap();
    let seen: Vec<_> = history.iter().map(|e| (e.at, e.state, e.event.clone())).collect();
    let suspect = HealthState::Suspect;
    assert_eq!(seen, [(at(2), suspect, canary(true)), (at(1), suspect, checked(false))]);
    assert_eq!(store.history(&one, 1).unwrap(), history[..1]);
    assert_eq!(store.history(&other, 10).unwrap(), []);
}

#[test]
fn a_place_may_have_a_policy_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let checks = HealthPolicy { proof: Proof::Checks, ..HealthPolicy::default() };
    let store = HealthStore::open(&dir.path().join("health.db")).unwrap();
    let one = place("bench-1");
    store.note(&one, at(0), &quarantined()).unwrap();
    assert_eq!(store.note(&one, at(1), &checked(true)).unwrap().passes_needed, 3);
    assert_eq!(
        store.note_by(&checks.into(), &one, at(1), &checked(true)).unwrap().passes_needed,
        2
    );
    let strict = HealthPolicy { passes_out_of_quarantine: 9, ..checks };
    let store = store.about([(one.clone(), strict.into())]);
    assert_eq!(store.of(&one).unwrap().passes_needed, 8);
    // Of another place nothing is said.
    let other = place("bench-2");
    store.note(&other, at(2), &quarantined()).unwrap();
    assert_eq!(store.of(&other).unwrap().passes_needed, 3);
}

#[test]
fn health_is_that_of_devices_and_not_of_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    let one = place("bench-1");
    let of = |device: &str| HealthSubject { device: device.to_owned(), ..HealthSubject::default() };
    let (old, new) = (of("board a, probe 1"), of("board b, probe 2"));
    let store = HealthStore::open(&path).unwrap();
    // What was noted without devices is that of the first ones that are told.
    store.note(&one, at(0), &quarantined()).unwrap();
    assert_eq!(store.of_by(&old, &one).unwrap().state, HealthState::Quarantined);
    store.note_by(&old, &one, at(1), &checked(false)).unwrap();
    assert_eq!(store.of_by(&old, &one).unwrap().state, HealthState::Quarantined);

    let changed = store.of_by(&new, &one).unwrap();
    assert_eq!((changed.state, changed.since), (HealthState::Healthy, None));
    assert!(changed.why.contains("board a, probe 1"), "{}", changed.why);
    assert_eq!(store.history_by(&new, &one, 10).unwrap(), []);
    // A look changes nothing.
    assert_eq!(store.of_by(&old, &one).unwrap().state, HealthState::Quarantined);
    assert_eq!(store.history_by(&old, &one, 10).unwrap().len(), 2);

    let noted = store.note_by(&new, &one, at(2), &checked(false)).unwrap();
    assert_eq!((noted.state, noted.failures), (HealthState::Suspect, 1));
    let again = HealthStore::open(&path).unwrap();
    assert_eq!(again.of_by(&new, &one).unwrap(), noted);
    assert_eq!(again.history_by(&new, &one, 10).unwrap().len(), 1);
    assert_eq!(again.figures_by(&new, &one, at(0)).unwrap().first, Some(at(2)));
    // Where the old devices come back, so does what was noted of them: an edit clears nothing.
    assert_eq!(again.of_by(&old, &one).unwrap().state, HealthState::Quarantined);
    assert_eq!(again.history_by(&old, &one, 10).unwrap().len(), 2);
    assert_eq!(again.figures_by(&old, &one, at(0)).unwrap().first, Some(at(0)));
    // Who does not tell the devices means the first ones.
    assert_eq!(again.of(&one).unwrap().state, HealthState::Quarantined);
}

#[test]
fn a_store_of_an_earlier_version_gets_the_table_of_devices() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    let one = place("bench-1");
    HealthStore::open(&path).unwrap().note(&one, at(0), &quarantined()).unwrap();
    raw(&path).execute_batch("DROP TABLE device").unwrap();
    let store = HealthStore::open(&path).unwrap();
    let subject = HealthSubject { device: "board a".to_owned(), ..HealthSubject::default() };
    assert_eq!(store.of_by(&subject, &one).unwrap().state, HealthState::Quarantined);
}

#[test]
fn figures_add_up_what_happened_since_a_moment() {
    let dir = tempfile::tempdir().unwrap();
    let store = HealthStore::open(&dir.path().join("health.db")).unwrap();
    let one = place("bench-1");
    let flashed = |kind, cause, flash_ms, gaps| HealthEvent::RunEnded {
        run: "20261121-221530-7f3a".parse().unwrap(),
        kind,
        cause,
        duration_ms: 100,
        flash_ms,
        gaps,
        overruns: gaps / 2,
        lost_bytes: 0,
        garbled: 0,
    };
    store
        .note(&one, at(0), &flashed(VerdictKind::EnvError, Cause::PowerFailed, Some(1), 9))
        .unwrap();
    for (second, event) in (10..).zip([
        flashed(VerdictKind::Pass, Cause::Passed, Some(30), 0),
        flashed(VerdictKind::Fail, Cause::TestFailed, Some(10), 0),
        flashed(VerdictKind::EnvError, Cause::PowerFailed, None, 2),
        flashed(VerdictKind::Pass, Cause::Passed, Some(20), 1),
        recovery(Some("reset")),
        recovery(None),
        checked(false),
    ]) {
        store.note(&one, at(second), &event).unwrap();
    }
    // Another place's events are another's.
    store.note(&place("bench-2"), at(11), &recovery(None)).unwrap();
    let figures = store.figures(&one, at(10)).unwrap();
    assert_eq!(figures.first, Some(at(10)));
    assert_eq!((figures.runs, figures.passed, figures.served), (4, 2, 3));
    assert_eq!((figures.recoveries, figures.recovered), (2, 1));
    assert_eq!((figures.flash_ms_median, figures.gaps), (Some(20), 3));
    assert_eq!(figures.overruns, 1);
    assert_eq!(figures.success_rate(), Some(0.75));
    assert_eq!(figures.recoveries_per_day(at(3600)), Some(2.0));
    assert_eq!(figures.recoveries_per_day(at(10 + 4 * 86_400)), Some(0.5));
    assert_eq!(store.figures(&one, at(0)).unwrap().flash_ms_median, Some(10));
    let none = store.figures(&one, at(1000)).unwrap();
    assert_eq!((none.runs, none.success_rate(), none.first), (0, None, None));
    assert_eq!((none.flash_ms_median, none.recoveries_per_day(at(2000))), (None, None));
}

#[test]
fn many_processes_at_once_lose_nothing() {
    const WRITERS: i64 = 8;
    const NOTES: i64 = 12;
    let dir = tempfile::tempdir().unwrap();
    let path = Arc::new(dir.path().join("health.db"));
    // The file does not exist yet: all of them begin it at once.
    let start = Arc::new(std::sync::Barrier::new(8));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (path, start) = (Arc::clone(&path), Arc::clone(&start));
            std::thread::spawn(move || {
                start.wait();
                for note in 0..NOTES {
                    // Each has a connection of its own, as a process has.
                    let store = HealthStore::open(&path).unwrap();
                    store
                        .note(&place("shared"), at(writer * 100 + note), &run(Cause::Passed))
                        .unwrap();
                    store
                        .note(&place(&format!("own-{writer}")), at(note), &checked(false))
                        .unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    let store = HealthStore::open(&path).unwrap();
    assert_eq!(store.history(&place("shared"), 1000).unwrap().len() as i64, WRITERS * NOTES);
    assert_eq!(store.figures(&place("shared"), at(0)).unwrap().runs as i64, WRITERS * NOTES);
    for writer in 0..WRITERS {
        let own = store.of(&place(&format!("own-{writer}"))).unwrap();
        assert_eq!(i64::from(own.failures), NOTES);
    }
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    drop(HealthStore::open(&path).unwrap());
    raw(&path).pragma_update(None, "user_version", 7).unwrap();
    let error = HealthStore::open(&path).unwrap_err();
    assert!(matches!(error, DatabaseError::Newer { found: 7, known: 1, .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::Usage);
    assert!(error.to_string().contains("format version 7, this jig knows up to 1"), "{error}");
    let tables: i64 =
        raw(&path).query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).unwrap();
    assert!(tables > 0);
}

#[test]
fn whatever_the_file_holds_it_is_named_and_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    fs::write(&path, "this is no database, and long enough to be looked at. ".repeat(100)).unwrap();
    let before = fs::read(&path).unwrap();
    let error = HealthStore::open(&path).unwrap_err();
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    // Another program's database.
    fs::remove_file(&path).unwrap();
    raw(&path).execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
    let error = HealthStore::open(&path).unwrap_err();
    assert!(error.to_string().ends_with("it is a database of something else"), "{error}");
    let songs = raw(&path).query_row("SELECT count(*) FROM songs", [], |r| r.get::<_, i64>(0));
    assert_eq!(songs, Ok(0));
}

#[test]
fn damage_within_is_told_by_the_call_that_meets_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    let store = HealthStore::open(&path).unwrap();
    let one = place("bench-1");
    let harm = [
        "UPDATE place SET state = 'splendid'",
        "UPDATE place SET state = 'healthy', since_us = 9223372036854775807",
        "UPDATE place SET since_us = NULL, passes = -1",
        "UPDATE place SET passes = 99999999999",
    ];
    for harm in harm {
        store.note(&one, at(1), &checked(false)).unwrap();
        raw(&path).execute_batch(harm).unwrap();
        for error in [store.of(&one).unwrap_err(), store.note(&one, at(2), &cleared()).unwrap_err()]
        {
            assert!(matches!(error, DatabaseError::Damaged { .. }), "{harm}: {error:?}");
        }
        raw(&path).execute_batch("DELETE FROM place").unwrap();
    }
    raw(&path).execute_batch("UPDATE event SET body = '{\"kind\":\"party\"}'").unwrap();
    let error = store.history(&one, 10).unwrap_err();
    assert!(matches!(error, DatabaseError::Damaged { .. }), "{error:?}");
    // A damaged row that is not read does no harm.
    assert_eq!(store.of(&one).unwrap().state, HealthState::Healthy);
    // Nor do tables that have gone.
    raw(&path).execute_batch("DROP TABLE event").unwrap();
    assert!(store.figures(&one, at(0)).is_err());
    assert!(store.note(&one, at(3), &checked(true)).is_err());
}

#[test]
fn a_file_that_is_cut_short_ends_in_an_error_or_in_what_it_held() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("health.db");
    let one = place("bench-1");
    let store = HealthStore::open(&whole).unwrap();
    for second in 0..40 {
        store.note(&one, at(second), &checked(false)).unwrap();
    }
    drop(store);
    raw(&whole).pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(())).unwrap();
    let bytes = fs::read(&whole).unwrap();
    for len in (0..bytes.len()).step_by(bytes.len() / 23) {
        let path = dir.path().join(format!("cut-{len}.db"));
        fs::write(&path, &bytes[..len]).unwrap();
        let Ok(store) = HealthStore::open(&path) else { continue };
        let _ = (store.of(&one), store.history(&one, 100), store.figures(&one, at(0)));
        let _ = store.note(&one, at(100), &checked(true));
    }
}

#[test]
fn the_oldest_events_go_and_the_state_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("health.db");
    let store = HealthStore::open(&path).unwrap();
    let one = place("bench-1");
    store.note(&one, at(0), &quarantined()).unwrap();
    let mut other = raw(&path);
    let fill = other.transaction().unwrap();
    for second in 1..10_100 {
        fill.execute(
            "INSERT INTO event (place, at_us, kind, body, state)
                 VALUES ('bench-1', ?1, 'cleared', '{\"kind\":\"cleared\",\"what\":{\"by\":\"x\"}}',
                         'quarantined')",
            [at(second).as_microsecond()],
        )
        .unwrap();
    }
    fill.commit().unwrap();
    for second in 0..64 {
        store.note(&one, at(20_000 + second), &checked(true)).unwrap();
    }
    let history = store.history(&one, u32::MAX).unwrap();
    assert!((10_000..10_064).contains(&history.len()), "{}", history.len());
    assert!(history.iter().all(|entry| entry.event != quarantined()));
    assert_eq!(store.of(&one).unwrap().state, HealthState::Quarantined);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = HealthStore::open(&file.join("health.db")).unwrap_err();
    assert!(matches!(error, DatabaseError::Folder { .. }), "{error:?}");
    let error = HealthStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, DatabaseError::Unwritable { .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::Lab);
}
