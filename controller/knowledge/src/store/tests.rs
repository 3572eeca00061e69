//! The store under faults: no room, and a writer that is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use jiff::Timestamp;

use super::KnowledgeStore;
use crate::KnowledgeError;
use crate::unit::{CaptureTrigger, Draft, Standing, UnitContent, UnitId, UnitMetadata};

/// Names the folder in which a copy of this program writes until it is killed.
pub(super) const WRITER: &str = "JIG_KNOWLEDGE_TEST_WRITER";

pub(super) fn draft(number: u64) -> Draft {
    let words: String = (0..40).map(|word| format!("n{number}w{word} ")).collect();
    Draft {
        id: UnitId::random(),
        content: UnitContent {
            title: format!("unit {number}"),
            symptom: words.clone(),
            resolution: words,
            ..UnitContent::default()
        },
        metadata: UnitMetadata::default(),
        at: Timestamp::UNIX_EPOCH,
        by: "test".to_owned(),
        trigger: CaptureTrigger::Marked,
    }
}

pub(super) fn opened(folder: &Path) -> KnowledgeStore {
    KnowledgeStore::open(&folder.join("knowledge.db")).unwrap()
}

#[test]
fn without_room_nothing_is_half_stored_and_what_was_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let limit = |connection: &mut rusqlite::Connection, pages: i64| {
        let pages = format!("PRAGMA max_page_count = {pages}");
        connection.query_row(&pages, [], |row| row.get::<_, i64>(0))
    };
    let pages: i64 =
        store.with(|c| c.query_row("PRAGMA page_count", [], |row| row.get(0))).unwrap();
    store.with(|connection| limit(connection, pages + 20)).unwrap();
    let mut stored = 0;
    let full = loop {
        match store.insert(&draft(stored), Standing::NEW, Timestamp::UNIX_EPOCH) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 1000, "the limit did not hold");
    };
    assert!(matches!(full, KnowledgeError::Full { .. }), "{full}");
    assert!(full.is_of_the_store());
    assert!(stored > 0);
    store.check().unwrap();
    assert_eq!(store.counts().unwrap().units, stored);
    store.with(|connection| limit(connection, i64::from(u32::MAX - 2))).unwrap();
    store.insert(&draft(stored), Standing::NEW, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(store.counts().unwrap().units, stored + 1);
}

/// Not a test by itself: what [`a_killed_writer_loses_nothing_that_it_acknowledged`] starts.
#[test]
fn writer_that_is_killed() {
    let Some(folder) = std::env::var_os(WRITER) else { return };
    let store = opened(Path::new(&folder));
    let mut out = std::io::stdout().lock();
    for number in 0.. {
        let id = draft(number);
        store.insert(&id, Standing::NEW, Timestamp::UNIX_EPOCH).unwrap();
        writeln!(out, "acknowledged {}", id.id).unwrap();
        out.flush().unwrap();
    }
}

/// Starts a copy of this program that writes into a folder, and acknowledges each unit in a line.
pub(super) fn writer(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::writer_that_is_killed", "--nocapture", "--test-threads=1"])
        .env(WRITER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The journal is copied by another thread, and what was stored before, meanwhile and after is there.
#[test]
fn the_journal_is_copied_beside_the_changes_and_its_file_stays_short() {
    let folder = tempfile::tempdir().unwrap();
    let store = opened(folder.path());
    let journal = || std::fs::metadata(folder.path().join("knowledge.db-wal")).unwrap().len();
    let file = || std::fs::metadata(folder.path().join("knowledge.db")).unwrap().len();
    let large = "x".repeat(1 << 20);
    let note = "INSERT INTO feedback (at_us, question, id, accepted) VALUES (1, ?1, 'k', 1)";
    for number in 0..40 {
        store.change(|change| Ok(Ok(change.execute(note, [&large])?))).unwrap();
        store.insert(&draft(number), Standing::NEW, Timestamp::UNIX_EPOCH).unwrap();
    }
    assert!(journal() <= 70 << 20, "{}", journal());
    drop(store);
    assert!(file() > 10 << 20, "nothing was copied: {}", file());
    // Who opens the store next has no journal to read, unless somebody else reads the store now.
    assert_eq!(journal(), 0);
    let store = opened(folder.path());
    let other = opened(folder.path());
    store.change(|change| Ok(Ok(change.execute(note, [&large])?))).unwrap();
    store
        .change(|change| Ok(Ok(change.execute("DELETE FROM feedback WHERE number > 40", [])?)))
        .unwrap();
    other
        .with(|connection| {
            let view = connection.unchecked_transaction()?;
            view.query_row("SELECT count(*) FROM unit", [], |row| row.get::<_, i64>(0))?;
            drop(opened(folder.path()));
            Ok(())
        })
        .unwrap();
    assert!(journal() > 1 << 20, "{}", journal());
    store.check().unwrap();
    let counts = store.counts().unwrap();
    assert_eq!((counts.units, counts.feedback), (40, 40));
}

#[test]
fn a_killed_writer_loses_nothing_that_it_acknowledged() {
    for lines in [1, 2, 5, 9, 20, 33] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = writer(folder.path());
        let mut acknowledged: Vec<UnitId> = Vec::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let id = |line: &str| line.split_once("acknowledged ")?.1.trim().parse().ok();
        let mut line = String::new();
        while acknowledged.len() < lines && reader.read_line(&mut line).unwrap() > 0 {
            acknowledged.extend(id(&line));
            line.clear();
        }
        assert_eq!(acknowledged.len(), lines);
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it was killed counts, too.
        acknowledged.extend(reader.lines().map_while(Result::ok).filter_map(|line| id(&line)));
        let store = opened(folder.path());
        store.check().unwrap();
        for id in &acknowledged {
            store.unit(id).unwrap();
        }
        let found = store.counts().unwrap().units as usize;
        // One may have been stored and not yet acknowledged.
        assert!((acknowledged.len()..=acknowledged.len() + 1).contains(&found), "{found}");
    }
}
