//! Logs that were cut, damaged, or never had an index.

use std::fs::OpenOptions;

use super::super::clock::Stamp;
use super::super::log::{GapReason, LogWriter};
use super::*;

fn at(mono_ns: u64) -> Stamp {
    Stamp { mono_ns, wall_ns: -5 }
}

fn sample() -> (tempfile::TempDir, LogPaths) {
    let folder = tempfile::tempdir().unwrap();
    let paths = LogPaths::new(folder.path(), &"uart0".parse().unwrap());
    let mut log = LogWriter::create(&paths).unwrap();
    log.record(at(1), RecordKind::Attached).unwrap();
    log.append(at(2), b"hello ").unwrap();
    log.record(at(3), RecordKind::Gap { lost: None, reason: GapReason::Overrun }).unwrap();
    log.append(at(4), b"world").unwrap();
    log.record(at(5), RecordKind::Gap { lost: Some(7), reason: GapReason::Storage }).unwrap();
    log.sync().unwrap();
    (folder, paths)
}

fn text(log: &LogReader) -> String {
    let mut buf = [0; 64];
    let n = log.read_at(0, &mut buf).unwrap();
    String::from_utf8(buf[..n].to_vec()).unwrap()
}

#[test]
fn what_was_written_is_read_back() {
    let (_folder, paths) = sample();
    let log = LogReader::open(&paths).unwrap();
    assert_eq!((log.committed(), log.health()), (11, IndexHealth::Whole));
    assert_eq!(text(&log), "hello world");
    let records: Vec<IndexRecord> = log.records().collect();
    assert_eq!(records[1], IndexRecord { offset: 0, stamp: at(2), kind: RecordKind::Bytes(6) });
    assert_eq!(records[2].kind, RecordKind::Gap { lost: None, reason: GapReason::Overrun });
    assert_eq!(records[4].kind, RecordKind::Gap { lost: Some(7), reason: GapReason::Storage });
    assert_eq!((records[4].offset, records.len()), (11, 5));
    assert!(matches!(LogWriter::create(&paths), Err(LogError::Create { .. })));
}

#[test]
fn any_cut_of_the_index_leaves_a_readable_prefix() {
    let (_folder, paths) = sample();
    let full = std::fs::read(&paths.index).unwrap();
    for cut in 0..full.len() {
        std::fs::write(&paths.index, &full[..cut]).unwrap();
        let log = LogReader::open(&paths).unwrap();
        let whole_records = cut.saturating_sub(HEADER) / RECORD;
        assert_eq!(log.records().count(), whole_records, "{cut}");
        if cut < HEADER {
            assert_eq!((log.committed(), log.health()), (11, IndexHealth::Missing));
        } else {
            assert_eq!(log.committed(), [0, 0, 6, 6, 11, 11][whole_records]);
        }
    }
}

#[test]
fn uncommitted_bytes_are_not_seen_and_missing_ones_not_promised() {
    let (_folder, paths) = sample();
    let raw = OpenOptions::new().append(true).open(&paths.raw).unwrap();
    std::io::Write::write_all(&mut &raw, b" never committed").unwrap();
    assert_eq!(text(&LogReader::open(&paths).unwrap()), "hello world");
    raw.set_len(8).unwrap();
    let log = LogReader::open(&paths).unwrap();
    assert_eq!((text(&log).as_str(), log.health()), ("hello ", IndexHealth::Torn));
}

#[test]
fn zeros_after_a_host_crash_and_foreign_versions_are_told_apart() {
    let (_folder, paths) = sample();
    let mut index = std::fs::read(&paths.index).unwrap();
    index.extend([0; 2 * RECORD]);
    std::fs::write(&paths.index, &index).unwrap();
    let log = LogReader::open(&paths).unwrap();
    assert_eq!((log.committed(), log.health()), (11, IndexHealth::Torn));
    // What version 1 says, version 2 says the same way.
    index[8] = 1;
    std::fs::write(&paths.index, &index).unwrap();
    assert_eq!(LogReader::open(&paths).unwrap().committed(), 11);
    index[8] = 9;
    std::fs::write(&paths.index, &index).unwrap();
    assert!(matches!(LogReader::open(&paths), Err(LogError::Version { .. })));
    std::fs::remove_file(&paths.index).unwrap();
    let log = LogReader::open(&paths).unwrap();
    assert_eq!((text(&log).as_str(), log.health()), ("hello world", IndexHealth::Missing));
}
