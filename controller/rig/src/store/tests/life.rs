//! A run from its begin to its end.

use std::os::unix::fs::symlink;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::DeployReport;
use jig_model::protocol::{CheckReport, PowerState};
use jig_model::result::{CaseStatus, TestCase};
use jig_model::{Fault, StampedEvent, VerdictKind};

use super::*;

#[test]
fn a_run_is_seen_complete_and_alive_until_it_ends() {
    let (_folder, store) = store();
    let clock = at("2026-11-21T22:15:30.5Z");
    let run = store.begin(new_run(), clock.clone()).unwrap();
    assert_eq!(run.id().as_str(), "20261121-221530-8000");

    let seen = store.open("last").unwrap();
    assert!(seen.live);
    let record = seen.record.unwrap();
    assert_eq!(record.state, RunState::Running);
    assert_eq!(record.place.unwrap().as_str(), "bench-1");
    assert_eq!(record.verdict, None);

    clock.advance(Duration::from_millis(1500));
    let written = run.finish(passed()).unwrap();
    let seen = store.open("last").unwrap();
    assert!(!seen.live);
    let record = seen.record.unwrap();
    assert_eq!(record, written);
    assert_eq!((record.state, record.exit_code), (RunState::Ended, Some(0)));
    assert_eq!(record.duration_ms, Some(1500));
    assert_eq!(record.ended, Some("2026-11-21T22:15:32Z".parse().unwrap()));
    assert!(!seen.dir.lock_path().exists());
    let text = std::fs::read_to_string(seen.dir.record_path()).unwrap();
    assert!(text.starts_with("{\n  \"format\": \"jig-run\",\n  \"version\": 1,\n"), "{text}");
}

#[test]
fn a_record_never_says_pass_beside_a_failed_case() {
    let (_folder, store) = store();
    let mut verdict = passed();
    verdict.tests.cases.push(TestCase {
        name: "a".into(),
        status: CaseStatus::Fail,
        message: None,
        duration_ms: None,
        start: 0,
        end: 1,
    });
    let record = begin(&store, "2026-11-21T22:15:30Z").finish(verdict).unwrap();
    assert_eq!(record.verdict.unwrap().kind, VerdictKind::Fail);
    assert_eq!(record.exit_code, Some(1));
}

#[test]
fn record_and_report_have_one_exit_code() {
    use crate::report::RunReport;
    let (_folder, store) = store();
    for (n, &cause) in (0..).zip(Cause::ALL) {
        let run = begin(&store, &format!("2026-11-21T22:15:{n:02}Z"));
        let under_way = RunReport::of(run.record());
        assert_eq!(under_way.exit_code(), 4, "a run without its end proves nothing");
        let record = run.finish(Verdict::of(cause, "s")).unwrap();
        let report = RunReport::of(&record);
        assert_eq!(Some(report.exit_code()), record.exit_code, "{cause}");
        assert_eq!(Some(report.verdict()), record.verdict.as_ref(), "{cause}");
        let xml = crate::report::junit(&report).unwrap();
        for fact in ["name=\"image\" value=\"app.elf\"", "value=\"bench-1\"", "smoke.board-a"] {
            assert!(xml.contains(fact), "{xml}");
        }
    }
}

#[test]
fn updates_are_on_disk_at_once() {
    let (_folder, store) = store();
    let mut run = begin(&store, "2026-11-21T22:15:30Z");
    run.update(|record| {
        record.attempts.push(AttemptRecord {
            attempt: 1,
            purpose: jig_model::Purpose::Test,
            verdict: passed(),
            replaced: false,
            duration_ms: 7,
            workflow: serde_json::json!({"state": "idle", "history": []}),
            boots: vec![BootRecord { boot: 1, offset: 0 }],
            consoles: vec!["uart0".parse().unwrap()],
        });
    })
    .unwrap();
    assert_eq!(run.dir().record().unwrap(), *run.record());
    assert_eq!(run.dir().record().unwrap().attempts.len(), 1);
}

/// A clock on which everything takes a millisecond.
struct Ticking(std::sync::atomic::AtomicU64);

impl Clock for Ticking {
    fn wall(&self) -> jiff::Timestamp {
        now()
    }
    fn mono(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

#[test]
fn notes_are_saved_at_once_while_rare_and_now_and_then_while_many() {
    let (_folder, store) = store();
    let mut run = store.begin(new_run(), Arc::new(Ticking(0.into()))).unwrap();
    let mut savings = Vec::new();
    for n in 1..=1000 {
        run.note(|record| record.duration_ms = Some(n)).unwrap();
        if run.dir().record().unwrap().duration_ms == Some(n) {
            savings.push(n);
        }
    }
    assert_eq!(savings[0], 1);
    assert!((5..=20).contains(&savings.len()), "{savings:?}");
    assert!(run.finish(passed()).is_ok());
}

#[test]
fn events_are_stamped_and_come_back_as_they_were() {
    let (_folder, store) = store();
    let clock = at("2026-11-21T22:15:30Z");
    clock.advance(Duration::from_secs(100));
    let run = store.begin(new_run(), clock.clone()).unwrap();
    let events = [
        RunEvent::AttemptStarted {
            attempt: 1,
            purpose: jig_model::Purpose::Test,
            repetition: None,
        },
        RunEvent::Deployed(DeployReport {
            method: "emulator-loader".into(),
            image: "a.elf".into(),
            sha256: "00".into(),
            build_id: None,
            bytes: 892,
            verified: true,
            read_back_sha256: Some("11".into()),
            skipped_sectors: 1,
            duration_ms: 5,
        }),
        RunEvent::Board(BoardEvent::Power { state: PowerState::On }),
        RunEvent::Health(CheckReport { check: "c".into(), ok: true, detail: "\n\0\u{1b}".into() }),
        RunEvent::AttemptEnded { attempt: 1, verdict: passed() },
        note("]]>\r\n"),
    ];
    for event in &events {
        clock.advance(Duration::from_nanos(1_000_000_001));
        run.events().append(event).unwrap();
    }
    let read: Vec<_> = run.dir().events().unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), events.len());
    for (n, (item, event)) in (1_u64..).zip(read.into_iter().zip(events)) {
        let expected = StampedEvent {
            seq: n - 1,
            mono_ns: n * 1_000_000_001,
            wall: "2026-11-21T22:17:10Z"
                .parse::<jiff::Timestamp>()
                .unwrap()
                .saturating_add(Duration::from_nanos(n * 1_000_000_001))
                .unwrap(),
            event,
        };
        assert_eq!(item, EventItem::Event(Box::new(expected)));
    }
}

#[test]
fn events_of_many_threads_have_no_holes() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let events = run.events();
            scope.spawn(move || {
                for n in 0..50 {
                    events.append(&note(&format!("{thread} {n}"))).unwrap();
                }
            });
        }
    });
    let seqs: Vec<u64> = run
        .dir()
        .events()
        .unwrap()
        .map(|item| match item.unwrap() {
            EventItem::Event(event) => event.seq,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seqs, (0..200).collect::<Vec<u64>>());
}

#[test]
fn runs_of_the_same_moment_get_ids_of_their_own_in_order() {
    let (_folder, store) = store();
    let store = &store;
    let runs: Vec<LiveRun> = std::thread::scope(|scope| {
        let begin = || begin(store, "2026-11-21T22:15:30.9999Z");
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(begin)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut ids: Vec<_> = runs.iter().map(|run| run.id().clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 16);
    assert!(store.list().unwrap().iter().all(|entry| entry.live));
}

#[test]
fn a_full_disk_is_told_as_such() {
    let (folder, _store) = store();
    let path = folder.path().join("events.jsonl");
    symlink("/dev/full", &path).unwrap();
    let clock = at("2026-11-21T22:15:30Z");
    let error = EventLog::create(&path, clock, Duration::ZERO).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(error.cause(), Some(Cause::StorageFailed));
    let text = error.to_string();
    assert!(text.contains("events.jsonl") && text.contains("jig runs prune"), "{text}");
    let below = std::error::Error::source(&error).unwrap().to_string();
    assert!(!text.contains(&below), "{text} tells its cause twice");
}

#[test]
fn an_unusable_folder_is_the_labs_fault() {
    let (folder, _store) = store();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let store = RunStore::new(file.join("runs"));
    let error = store.begin(new_run(), at("2026-11-21T22:15:30Z")).map(|_| ()).unwrap_err();
    assert_eq!(error.fault(), Fault::Lab);
    assert!(error.to_string().contains("runs"), "{error}");
}

#[test]
fn newer_records_are_neither_read_nor_written() {
    let (_folder, store) = store();
    let mut run = begin(&store, "2026-11-21T22:15:30Z");
    let path = run.dir().record_path();
    let newer = r#"{"format": "jig-run", "version": 2, "shape": "unknown"}"#;
    std::fs::write(&path, newer).unwrap();
    let error = run.dir().record().unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error:?}");
    assert!(error.to_string().contains("newer one"), "{error}");
    assert!(matches!(run.update(|_| ()), Err(StoreError::Newer { .. })));
    drop(run);
    let swept = store.sweep(now()).unwrap();
    assert!(matches!(swept[0].outcome, SweptOutcome::Left(StoreError::Newer { .. })));
    let keep = Retention { keep_days: Some(0), keep_bytes: Some(0) };
    assert!(store.prune(keep, now()).unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(path).unwrap(), newer);
}
