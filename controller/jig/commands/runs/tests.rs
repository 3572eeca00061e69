//! Runs as they are shown, over a folder written by the store itself.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use clap::Parser as _;
use jig_lab::RunStanding;
use jig_model::event::BoardEvent;
use jig_model::protocol::PowerState;
use jig_model::{Cause, Evidence, RunEvent, RunId, Verdict};
use jig_rig::console::{IndexHealth, LogPaths, LogReader};
use jig_rig::store::{LiveRun, ManualClock, NewRun, RunStore};

use super::timeline::{ConsoleLine, ConsoleLines};
use super::*;
use crate::args::Cli;
use crate::render::Paint;

const PLAIN: Paint = Paint { on: false };

fn store() -> (tempfile::TempDir, RunStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::new(folder.path().join("runs"));
    (folder, store)
}

fn begin(store: &RunStore, at: &str) -> LiveRun {
    let new = NewRun { place: Some("bench-1".parse().unwrap()), ..NewRun::default() };
    store.begin(new, Arc::new(ManualClock::at(at.parse().unwrap()))).unwrap()
}

/// Writes a console's log: (milliseconds, kind, bytes), in the format of the index.
fn console(folder: &Path, chunks: &[(u64, u8, &[u8])]) -> LogPaths {
    fs::create_dir_all(folder).unwrap();
    let paths = LogPaths::new(folder, &"uart0".parse().unwrap());
    let (mut raw, mut index) = (Vec::new(), b"JIGINDEX".to_vec());
    index.extend_from_slice(&1_u32.to_le_bytes());
    index.extend_from_slice(&32_u32.to_le_bytes());
    for (ms, kind, bytes) in chunks {
        let mut record = Vec::new();
        record.extend_from_slice(&(raw.len() as u64).to_le_bytes());
        record.extend_from_slice(&(ms * 1_000_000).to_le_bytes());
        record.extend_from_slice(&0_i64.to_le_bytes());
        record.extend_from_slice(&[*kind, 0]);
        record.extend_from_slice(&(bytes.len() as u64).to_le_bytes()[..6]);
        index.extend_from_slice(&record);
        if *kind == BYTES {
            raw.extend_from_slice(bytes);
        }
    }
    fs::write(&paths.raw, raw).unwrap();
    fs::write(&paths.index, index).unwrap();
    paths
}

const BYTES: u8 = 1;
const SENT: u8 = 6;

fn lines(chunks: &[(u64, u8, &[u8])]) -> Vec<(u64, u64, String)> {
    let folder = tempfile::tempdir().unwrap();
    let reader = LogReader::open(&console(folder.path(), chunks)).unwrap();
    assert_eq!(reader.health(), IndexHealth::Whole);
    let lines = ConsoleLines::new(&reader)
        .map(|ConsoleLine { at_ns, offset, text, .. }| (at_ns.unwrap() / 1_000_000, offset, text));
    lines.collect()
}

fn line(ms: u64, offset: u64, text: &str) -> (u64, u64, String) {
    (ms, offset, text.to_owned())
}

#[test]
fn chunks_become_lines_with_the_time_of_their_first_byte() {
    let chunks: &[(u64, u8, &[u8])] =
        &[(1, BYTES, b"he"), (3, BYTES, b"llo\r\nwor"), (4, BYTES, b"ld\n\nend")];
    assert_eq!(
        lines(chunks),
        [line(1, 0, "hello"), line(3, 7, "world"), line(4, 13, ""), line(4, 14, "end")]
    );
}

#[test]
fn a_prompt_comes_before_its_answer() {
    let chunks: &[(u64, u8, &[u8])] = &[
        (1, BYTES, b"jig> "),
        (500, SENT, b"ver\r"),
        (501, BYTES, b"ver\r\n"),
        (900, BYTES, b"1.4\n"),
    ];
    let shown = lines(chunks);
    assert_eq!(shown[..2], [line(1, 0, "jig> "), line(500, 5, "4 bytes sent")]);
    assert_eq!(shown[2..], [line(501, 5, "ver"), line(900, 10, "1.4")]);
    // Also without anything sent.
    let shown = lines(&[(1, BYTES, b"wait"), (500, BYTES, b"ed\n")]);
    assert_eq!(shown, [line(1, 0, "wait"), line(500, 4, "ed")]);
}

#[test]
fn hostile_bytes_are_escaped_and_long_lines_are_broken_between_characters() {
    let shown = lines(&[(1, BYTES, b"\x1b[2J\xff\n")]);
    assert_eq!(shown, [line(1, 0, "\\x1b[2J\\xff")]);
    let mut long = vec![b'x'; 4095];
    long.extend_from_slice("é".as_bytes());
    long.extend_from_slice(b"y\n");
    let shown = lines(&[(1, BYTES, &long)]);
    assert_eq!(shown.len(), 2);
    assert_eq!((shown[0].2.len(), &shown[1]), (4095, &line(1, 4095, "éy")));
    let endless = vec![0x80; 20_000];
    let shown = lines(&[(1, BYTES, &endless)]);
    assert_eq!(shown.iter().map(|(_, _, text)| text.len()).sum::<usize>(), 4 * endless.len());
}

#[test]
fn bytes_without_an_index_are_shown_without_times() {
    let folder = tempfile::tempdir().unwrap();
    let paths = console(folder.path(), &[(1, BYTES, b"a\nb")]);
    fs::remove_file(&paths.index).unwrap();
    let reader = LogReader::open(&paths).unwrap();
    let shown: Vec<_> = ConsoleLines::new(&reader).map(|l| (l.at_ns, l.text)).collect();
    assert_eq!(shown, [(None, "a".to_owned()), (None, "b".to_owned())]);
}

#[test]
fn events_and_consoles_share_one_time_line() {
    let (_folder, store) = store();
    let clock = Arc::new(ManualClock::at("2026-11-21T22:15:30Z".parse().unwrap()));
    let run = store.begin(NewRun::default(), Arc::clone(&clock) as _).unwrap();
    let id = run.id().to_string();
    let power = |state| RunEvent::Board(BoardEvent::Power { state });
    run.events().append(&power(PowerState::On)).unwrap();
    clock.advance(std::time::Duration::from_millis(20));
    run.events().append(&power(PowerState::Off)).unwrap();
    let chunks: &[(u64, u8, &[u8])] = &[(5, BYTES, b"boot\n"), (30, BYTES, b"late\x07\n")];
    console(&run.dir().path().join("consoles/1"), chunks);
    drop(run);
    let entry = store.open(&id).unwrap();
    let mut shown = Vec::new();
    let warn = |text: &str| panic!("{text}");
    log::merge(&entry, log::Form::Text(PLAIN), &warn, &mut |line| {
        shown.push(line.to_owned());
        true
    })
    .unwrap();
    assert_eq!(
        shown,
        [
            "+0.000000 board    power on",
            "+0.005000 uart0>   boot",
            "+0.020000 board    power off",
            "+0.030000 uart0>   late\\x07",
            "+?        verdict  none: the run is killed",
        ]
    );
}

#[test]
fn a_run_is_shown_with_quotes_of_its_evidence() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    let id = run.id().to_string();
    let folder = run.dir().path().join("consoles/1");
    console(&folder, &[(5, BYTES, b"ok\nFAIL: \x1b[2J\nend\n")]);
    let mut verdict = Verdict::of(Cause::TestFailed, "1 of 2 tests failed");
    let range = |file: &str| Evidence { file: file.into(), start: 3, end: 14, note: String::new() };
    verdict.evidence = vec![range("consoles/1/uart0.raw"), range("../../../../etc/passwd")];
    run.finish(verdict).unwrap();
    let entry = store.open(&id).unwrap();
    let text = show::text(&entry, entry.record.as_ref().unwrap(), "/runs/x", PLAIN);
    assert!(text.starts_with("FAIL bench-1: 1 of 2 tests failed"), "{text}");
    assert!(text.contains("uart0.raw @3..14\n    | FAIL: \\x1b[2J\n"), "{text}");
    assert_eq!(text.matches("    | ").count(), 1, "nothing outside the run is quoted: {text}");
}

#[test]
fn states_come_from_the_lock_and_not_from_the_record_alone() {
    let (_folder, store) = store();
    let state = |id: &RunId| RunStanding::of(&store.open(id.as_str()).unwrap()).as_str();
    let live = begin(&store, "2026-11-21T22:15:30Z");
    let id = live.id().clone();
    assert_eq!(state(&id), "running");
    drop(live);
    assert_eq!(state(&id), "killed");
    store.sweep(jiff::Timestamp::now()).unwrap();
    assert_eq!(state(&id), "abandoned");
    let mut record = fs::File::create(store.open(id.as_str()).unwrap().dir.record_path()).unwrap();
    record.write_all(b"{").unwrap();
    assert_eq!(state(&id), "broken");
}

#[test]
fn what_is_missing_has_the_documented_exit_code() {
    let (_folder, store) = store();
    let args = ["jig", "--runs", store.root().to_str().unwrap(), "runs"];
    let common = Cli::parse_from(args).common;
    let open = |run: &str| source::open(&common, run, RunPart::Record);
    let Err(failure) = open("last") else { panic!("there is a run") };
    assert_eq!(failure.exit_code(), 2);
    assert!(failure.message.contains("no runs yet"), "{}", failure.message);
    assert!(failure.help.unwrap().contains("jig run -b"));
    drop(begin(&store, "2026-11-21T22:15:30Z"));
    let Err(failure) = open("20261121-221531-0000") else { panic!("there is this run") };
    assert_eq!(failure.exit_code(), 2);
    assert!(failure.message.contains("did you mean 20261121-221530-0000"), "{}", failure.message);
    assert_eq!(
        open("2026").unwrap_or_else(|why| panic!("{why:?}")).entry.record.unwrap().exit_code,
        None
    );
}
