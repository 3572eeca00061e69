//! Tests of the journal against changed rows, other writers and secrets.

use super::*;

fn contract() -> Contract {
    Contract {
        goal: "the boot test passes".to_owned(),
        task: "00".to_owned(),
        base: "abc".to_owned(),
        ..Contract::default()
    }
}

fn begun(folder: &Path) -> Journal {
    Journal::begin(folder, contract(), Redactor::default()).unwrap()
}

fn stop(why: &str) -> Entry {
    Entry::Request(Request::Stop { why: why.to_owned() })
}

#[test]
fn rows_are_numbered_and_chained_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(folder.path());
    journal.append(&stop("enough")).unwrap();
    let rows = Journal::open(folder.path(), Redactor::default()).unwrap().rows().unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows[0].entry, Entry::Begun(contract()));
    assert_eq!(rows[1].entry, stop("enough"));
    assert_eq!(journal.rows_behind(1, rows[0].hash).unwrap(), rows[1..]);
}

#[test]
fn a_journal_is_begun_once_and_opened_where_it_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Journal::open(folder.path(), Redactor::default());
    assert!(matches!(open(), Err(JournalError::Database { .. })));
    std::fs::write(path_in(folder.path()), "some text that is no database at all").unwrap();
    assert!(matches!(open(), Err(JournalError::Foreign { .. })));
    std::fs::remove_file(path_in(folder.path())).unwrap();
    Connection::open(path_in(folder.path())).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    assert!(matches!(open(), Err(JournalError::Foreign { .. })));
    std::fs::remove_file(path_in(folder.path())).unwrap();
    let journal = begun(folder.path());
    let again = Journal::begin(folder.path(), contract(), Redactor::default());
    assert!(matches!(again, Err(JournalError::Exists { .. })));
    journal.db.pragma_update(None, "user_version", 2).unwrap();
    assert!(matches!(open(), Err(JournalError::Newer { found: 2, known: 1, .. })));
}

#[test]
fn a_row_that_is_changed_or_removed_is_found() {
    for (change, missing) in [
        ("UPDATE journal SET body = replace(body, 'second', 'other') WHERE seq = 3", false),
        ("UPDATE journal SET time_ms = time_ms + 1 WHERE seq = 3", false),
        ("DELETE FROM journal WHERE seq = 3", true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = begun(folder.path());
        for why in ["first", "second", "third"] {
            journal.append(&stop(why)).unwrap();
        }
        assert!(journal.db.execute(change, []).is_err(), "{change}");
        let drop = "DROP TRIGGER journal_keeps_rows; DROP TRIGGER journal_keeps_all_rows;";
        journal.db.execute_batch(drop).unwrap();
        assert_eq!(journal.db.execute(change, []).unwrap(), 1);
        let Err(JournalError::Broken { source, .. }) = journal.rows() else {
            panic!("{change} is not found")
        };
        let expected = if missing { "row 3 is missing" } else { "row 3 is not what was written" };
        assert_eq!(source.to_string(), expected);
    }
}

#[test]
fn secrets_are_removed_before_a_row_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let redactor = Redactor::new([("FIXER_TOKEN".to_owned(), "hush-hush".to_owned())]);
    let mut journal = Journal::begin(folder.path(), contract(), redactor).unwrap();
    journal.append(&stop("the agent said hush-hush")).unwrap();
    let row = &journal.rows().unwrap()[1];
    assert_eq!(row.entry, stop("the agent said [removed: FIXER_TOKEN]"));
    drop(journal);
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"hush-hush"));
    }
}

#[test]
fn a_row_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(folder.path());
    let long = stop(&"x".repeat(MAX_BODY));
    assert!(matches!(journal.append(&long), Err(JournalError::TooLong(_))));
    assert_eq!(journal.rows().unwrap().len(), 1);
}

#[test]
fn rows_are_durable_together_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(folder.path());
    let reader = Journal::open(folder.path(), Redactor::default()).unwrap();
    let count = |journal: &Journal| journal.rows().unwrap().len();
    journal
        .together(|journal| {
            journal.append(&stop("first"))?;
            assert_eq!((count(journal), count(&reader)), (2, 1));
            journal.append(&stop("second"))
        })
        .unwrap();
    assert_eq!(count(&reader), 3);
    let refused = journal.together(|journal| {
        journal.append(&stop("third"))?;
        journal.append(&stop(&"x".repeat(MAX_BODY)))
    });
    assert!(matches!(refused, Err(JournalError::TooLong(_))));
    assert_eq!(count(&reader), 3);
    // What was refused stands in nobody's way.
    journal.append(&stop("fourth")).unwrap();
    assert_eq!(count(&reader), 4);
}

#[test]
fn all_processes_may_append() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = begun(folder.path());
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let folder = folder.path().to_owned();
            std::thread::spawn(move || {
                let mut journal = Journal::open(&folder, Redactor::default()).unwrap();
                for row in 0..10 {
                    journal.append(&stop(&format!("{writer}:{row}"))).unwrap();
                }
            })
        })
        .collect();
    journal.append(&stop("driver")).unwrap();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(journal.rows().unwrap().len(), 42);
}

#[test]
fn a_fork_begins_with_the_same_rows() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut journal = begun(folder.path());
    journal.append(&stop("first")).unwrap();
    journal.append(&stop("second")).unwrap();
    let mut fork = journal.fork(2, other.path()).unwrap();
    assert_eq!(fork.rows().unwrap(), journal.rows().unwrap()[..2]);
    fork.append(&stop("elsewhere")).unwrap();
    assert_eq!(journal.rows().unwrap().len(), 3);
    assert!(matches!(journal.fork(2, folder.path()), Err(JournalError::Exists { .. })));
}
