//! The chain of rows, and what breaks it.

use rusqlite::Connection;
use serde_json::json;

use super::*;

fn charter() -> Charter {
    Charter {
        text: "run app.elf on microbit".to_owned(),
        source: PlanSource::Words,
        confirmed: None,
        plan_only: false,
        trace_id: "t1".to_owned(),
        limits: SessionLimits::default(),
        folder: "/firmware".to_owned(),
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
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 2).unwrap();
    assert!(matches!(open(), Err(SessionJournalError::Newer { found: 2, known: 1, .. })));
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
