//! Writing, sealing, being killed, being tampered with.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use jiff::Timestamp;
use jig_model::Identity;
use proptest::prelude::*;

use super::*;

fn entry(command: &str) -> AuditEntry {
    AuditEntry {
        at: Timestamp::UNIX_EPOCH,
        identity: Identity::default(),
        command: command.to_owned(),
        place: Some("bench-1".parse().unwrap()),
        right: None,
        decision: AuditDecision::Accepted,
        why: "rig.toml:7".to_owned(),
        lease: None,
        of: None,
        run: None,
    }
}

fn log(full: u64) -> (tempfile::TempDir, AuditLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::in_state(folder.path()).sealed_at(full);
    (folder, log)
}

fn numbers(log: &AuditLog) -> Vec<u64> {
    log.read().unwrap().filter_map(|item| Some(item.unwrap().content?.number)).collect()
}

#[test]
fn lines_follow_each_other_over_sealed_files() {
    let (_folder, log) = log(1500);
    for number in 1..=20 {
        assert_eq!(log.append(entry("run")).unwrap(), number);
    }
    assert!(log.sealed().unwrap().len() > 2);
    assert_eq!(numbers(&log), (1..=20).collect::<Vec<_>>());
    let chain = log.verify(None).unwrap();
    assert_eq!((chain.lines, chain.first, chain.bad), (20, Some(1), None));
    let (number, hash) = chain.last.unwrap();
    assert_eq!(number, 20);
    log.append(entry("run")).unwrap();
    assert!(log.verify(Some(&hash)).unwrap().contains);
    assert!(!log.verify(Some("00")).unwrap().contains);
    // The chain goes on behind a file that was sealed while no next one was there.
    let sealed = log.current().with_file_name("audit-000000000021.jsonl");
    fs::rename(log.current(), sealed).unwrap();
    assert_eq!(log.append(entry("run")).unwrap(), 22);
    assert_eq!(log.verify(None).unwrap().bad, None);
    // A lab that keeps a year removes the oldest files.
    fs::remove_file(&log.sealed().unwrap()[0].1).unwrap();
    let chain = log.verify(None).unwrap();
    assert!(chain.first > Some(1) && chain.bad.is_none(), "{chain:?}");
    // One from the middle is missed.
    fs::remove_file(&log.sealed().unwrap()[1].1).unwrap();
    let (_, line, finding) = log.verify(None).unwrap().bad.unwrap();
    assert_eq!((line, finding), (1, AuditFinding::Chain));
}

#[test]
fn texts_of_any_length_fit_a_line() {
    let (_folder, log) = log(1 << 20);
    let mut long = entry(&"\u{1}".repeat(100_000));
    long.why = "ä".repeat(100_000);
    log.append(long).unwrap();
    assert_eq!(log.append(entry("run")).unwrap(), 2);
    assert_eq!(log.verify(None).unwrap().bad, None);
}

#[test]
fn writers_of_several_threads_and_processes_keep_the_chain() {
    let (_folder, log) = log(4000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Each opens the files and the lock anew, as processes do.
            let log = log.clone();
            scope.spawn(move || {
                for _ in 0..25 {
                    log.append(entry("run")).unwrap();
                }
            });
        }
    });
    assert_eq!(numbers(&log), (1..=100).collect::<Vec<_>>());
    assert_eq!(log.verify(None).unwrap().bad, None);
}

#[test]
fn a_damaged_end_is_not_written_on() {
    let (_folder, log) = log(1 << 20);
    log.append(entry("run")).unwrap();
    let mut file = fs::File::options().append(true).open(log.current()).unwrap();
    file.write_all(b"{}\n").unwrap();
    assert!(matches!(log.append(entry("run")), Err(AuditError::Damaged(_))));
    let (_, line, finding) = log.verify(None).unwrap().bad.unwrap();
    assert_eq!((line, finding), (2, AuditFinding::NoLine));
}

#[test]
fn a_log_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("audit"), "a file").unwrap();
    let log = AuditLog::in_state(folder.path());
    assert!(matches!(log.append(entry("run")), Err(AuditError::File { .. })));
    // What is no file is not read, for it may never end.
    let (_folder, log) = self::log(1 << 20);
    log.append(entry("run")).unwrap();
    fs::remove_file(log.current()).unwrap();
    std::os::unix::fs::symlink("/dev/full", log.current()).unwrap();
    assert!(matches!(log.append(entry("run")), Err(AuditError::File { what: "open", .. })));
}

/// Makes a log of some lines in one file; returns it with its bytes.
fn written(lines: usize) -> (tempfile::TempDir, AuditLog, PathBuf, Vec<u8>) {
    let (folder, log) = log(1 << 20);
    for _ in 0..lines {
        log.append(entry("power-cycle")).unwrap();
    }
    let (path, bytes) = (log.current(), fs::read(log.current()).unwrap());
    (folder, log, path, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_writer_killed_at_any_byte_leaves_a_log_that_goes_on(cut in 0usize..2000) {
        let (_folder, log, path, bytes) = written(4);
        let cut = cut.min(bytes.len());
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        prop_assert_eq!(log.append(entry("run")).unwrap(), whole + 1);
        let chain = log.verify(None).unwrap();
        prop_assert_eq!((chain.lines, chain.bad), (whole + 1, None));
    }

    #[test]
    fn a_change_of_a_line_is_found_there_or_at_the_next(at in 0usize..2000, to in any::<u8>()) {
        let (_folder, log, path, mut bytes) = written(5);
        let at = at % bytes.len();
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        prop_assume!(bytes[at] != to && line < 5);
        bytes[at] = to;
        fs::write(&path, &bytes).unwrap();
        let bad = log.verify(None).unwrap().bad;
        let found = bad.as_ref().map(|(_, line, _)| *line);
        prop_assert!(found.is_some_and(|found| found <= line + 1), "{:?} of {}", bad, line);
    }

    #[test]
    fn a_line_that_is_taken_out_or_moved_is_found(from in 0usize..5, to in 0usize..5) {
        let (_folder, log, path, bytes) = written(5);
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let line = lines.remove(from);
        if from != to {
            lines.insert(to, line);
        }
        fs::write(&path, lines.concat()).unwrap();
        let bad = log.verify(None).unwrap().bad;
        // Lines that are cut off at either end leave a chain; the note of a hash shows it.
        let at_an_end = from == to && (from == 0 || from == 4);
        prop_assert_eq!(bad.is_none(), at_an_end, "{:?}", bad);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let (_folder, log, path, _) = written(1);
        fs::write(&path, &bytes).unwrap();
        let lines = log.read().unwrap().map(Result::unwrap).count();
        let ended = bytes.iter().filter(|byte| **byte == b'\n').count();
        prop_assert!(lines == ended || lines == ended + 1);
        drop(log.append(entry("run")));
    }
}
