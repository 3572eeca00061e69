//! The chain of rows, and what breaks it.

use std::sync::Mutex;

use rusqlite::Connection;
use serde_json::json;

use super::*;

/// What a session was asked for, where a test asks nothing of it.
pub(crate) fn charter() -> Charter {
    Charter {
        text: "run app.elf on microbit".to_owned(),
        source: PlanSource::Words,
        confirmed: None,
        plan_only: false,
        trace_id: "t1".to_owned(),
        limits: SessionLimits::default(),
        folder: "/firmware".to_owned(),
        host: None,
        model: None,
    }
}

fn begun() -> (tempfile::TempDir, SessionJournal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = SessionJournal::begin(folder.path(), charter(), Redactor::default()).unwrap();
    (folder, journal)
}

fn cancel(why: &str) -> SessionEntry {
    SessionEntry::Request(PersonRequest::Cancel { why: why.to_owned() })
}

#[test]
fn rows_are_kept_and_a_journal_is_begun_once() {
    let (folder, mut journal) = begun();
    journal.append_all(&[cancel("a"), cancel("b")]).unwrap();
    let rows = SessionJournal::open(folder.path(), Redactor::default()).unwrap().rows().unwrap();
    let seqs: Vec<_> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!(rows[0].entry, SessionEntry::Begun(charter()));
    assert_eq!(rows[2].exported()["entry"]["why"], "b");
    let again = SessionJournal::begin(folder.path(), charter(), Redactor::default());
    assert!(matches!(again, Err(SessionJournalError::Exists { .. })));
}

#[test]
fn a_row_that_was_changed_removed_or_put_in_is_found() {
    for (sql, seq) in [
        ("UPDATE journal SET body = replace(body, 'a', 'b') WHERE seq = 2", 2),
        ("UPDATE journal SET time_ms = 1 WHERE seq = 3", 3),
        ("DELETE FROM journal WHERE seq = 2", 2),
        ("INSERT INTO journal SELECT 5, time_ms, kind, body, hash FROM journal WHERE seq = 4", 5),
    ] {
        let (folder, mut journal) = begun();
        journal.append_all(&[cancel("a"), cancel("a"), cancel("a")]).unwrap();
        let db = Connection::open(folder.path().join("journal.db")).unwrap();
        let guarded = db.execute(sql, []);
        if !sql.starts_with("INSERT") {
            assert!(guarded.is_err(), "{sql}");
            db.execute_batch(
                "DROP TRIGGER journal_keeps_rows; DROP TRIGGER journal_keeps_all_rows;",
            )
            .unwrap();
            db.execute(sql, []).unwrap();
        }
        match journal.rows() {
            Err(SessionJournalError::Broken { seq: found, .. }) => assert_eq!(found, seq, "{sql}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
}

#[test]
fn other_files_and_newer_versions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    std::fs::write(&path, "not a database, but a text of some length that fills a page").unwrap();
    let open = || SessionJournal::open(folder.path(), Redactor::default());
    assert!(matches!(open(), Err(SessionJournalError::Foreign { .. })));
    std::fs::remove_file(&path).unwrap();
    let journal = SessionJournal::begin(folder.path(), charter(), Redactor::default()).unwrap();
    drop(journal);
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 3).unwrap();
    assert!(matches!(open(), Err(SessionJournalError::Newer { found: 3, known: 2, .. })));
}

#[test]
fn secrets_are_removed_and_rows_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "hunter2-hunter2";
    let redactor = Redactor::new([("TOKEN".to_owned(), secret.to_owned())]);
    let mut journal = SessionJournal::begin(folder.path(), charter(), redactor).unwrap();
    journal.append(&cancel(&format!("key {secret}"))).unwrap();
    assert!(!json!(journal.rows().unwrap()[1].exported()).to_string().contains(secret));
    let long = journal.append(&cancel(&"x".repeat(MAX_BODY)));
    assert!(matches!(long, Err(SessionJournalError::TooLong(_))));
    assert_eq!(journal.rows().unwrap().len(), 2);
}

#[test]
fn one_process_at_a_time_drives() {
    let folder = tempfile::tempdir().unwrap();
    let lock = SessionLock::take(folder.path()).unwrap();
    let refused = SessionLock::take(folder.path()).unwrap_err().to_string();
    assert_eq!(refused, format!("process {} drives this session", std::process::id()));
    drop(lock);
    SessionLock::take(folder.path()).unwrap();
}

/// Clocks that a test sets.
#[derive(Debug)]
struct SetClock(Mutex<ClockReading>);

impl SetClock {
    fn new(wall_ms: u64, running_ms: u64, boot: &str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ClockReading { wall_ms, running_ms, boot: boot.to_owned() })))
    }

    fn set(&self, wall_ms: u64, running_ms: u64) {
        let mut reading = self.0.lock().unwrap();
        (reading.wall_ms, reading.running_ms) = (wall_ms, running_ms);
    }
}

impl SessionClock for SetClock {
    fn read(&self) -> ClockReading {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn setting_the_clock_of_the_host_moves_no_row() {
    let folder = tempfile::tempdir().unwrap();
    let clock = SetClock::new(1_000_000, 5_000, "one");
    let times = |journal: &SessionJournal| {
        journal.rows().unwrap().iter().map(|row| row.time_ms).collect::<Vec<_>>()
    };
    let (redactor, dyn_clock) = (Redactor::default, || Arc::clone(&clock) as _);
    let mut journal =
        SessionJournal::begin_by(folder.path(), charter(), redactor(), dyn_clock()).unwrap();
    // A second later the clock was put on by a day; another second later it was put back to 1970.
    clock.set(1_000_000 + 86_400_000, 6_000);
    journal.append(&cancel("a")).unwrap();
    clock.set(17, 7_000);
    journal.append(&cancel("b")).unwrap();
    // Another process of the same start of the host counts on.
    let mut other = SessionJournal::open_by(folder.path(), redactor(), dyn_clock()).unwrap();
    assert_eq!((other.now_ms(), journal.now_ms()), (1_002_000, 1_002_000));
    clock.set(3, 8_500);
    other.append(&cancel("c")).unwrap();
    assert_eq!(times(&other), [1_000_000, 1_001_000, 1_002_000, 1_003_500]);
    // The host was started again: its clock counts, but leads not back behind the last row.
    for (wall, found) in [(2_000_000, 2_000_000), (7, 2_000_000)] {
        let boot = SetClock::new(wall, 40, &format!("start at {wall}"));
        let mut again =
            SessionJournal::open_by(folder.path(), redactor(), Arc::clone(&boot) as _).unwrap();
        again.append(&cancel("d")).unwrap();
        assert_eq!(times(&again).last(), Some(&found), "{wall}");
        boot.set(wall + 77, 41);
        assert_eq!(again.now_ms(), found + 1);
    }
}

#[test]
fn the_journal_of_an_older_program_is_gone_on_with() {
    let (folder, journal) = begun();
    drop(journal);
    let path = folder.path().join("journal.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("DROP TABLE clocks; PRAGMA user_version = 1").unwrap();
    drop(db);
    let clock = SetClock::new(u64::from(u32::MAX) * 1_000, 10, "one");
    let mut journal =
        SessionJournal::open_by(folder.path(), Redactor::default(), Arc::clone(&clock) as _)
            .unwrap();
    journal.append(&cancel("a")).unwrap();
    clock.set(0, 25);
    let other = SessionJournal::open_by(folder.path(), Redactor::default(), clock).unwrap();
    let last = journal.rows().unwrap().last().unwrap().time_ms;
    assert_eq!(other.now_ms(), last + 15);
}

#[test]
fn the_clocks_of_this_host_run_and_name_its_start() {
    let (one, two) = (HostSessionClock.read(), HostSessionClock.read());
    assert_eq!(one.boot, two.boot);
    assert!(two.running_ms >= one.running_ms && one.wall_ms > 1_600_000_000_000);
}
