//! The store on real file systems: one that is full, and one that loses its power. Both need root, because
//! they mount something in a namespace of their own; without root they say that they were skipped.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::tests::{WRITER, draft, opened, writer};
use crate::knowledge::{Captured, Knowledge, KnowledgeOptions};
use crate::unit::{Standing, UnitId};
use crate::{KnowledgeError, OutboxReport};

/// Names the folder in which a copy of this program runs the second half of a test.
const FOLDER: &str = "JIG_KNOWLEDGE_TEST_FOLDER";

/// What the second half says when it has seen what it was started for.
const DONE: &str = "the second half is done";

/// Runs a test of this program, as a shell says, in a mount namespace of its own.
fn in_namespace(script: &str, test: &str, folder: &Path) -> Option<Output> {
    let can = Command::new("unshare")
        .args(["--mount", "--", "sh", "-c", "mount -t tmpfs none /mnt"])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("skipped: mounting in a namespace needs root");
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let run = format!("{script} && exec \"$2\" --exact \"$3\" --nocapture --test-threads=1");
    let output = Command::new("unshare")
        .args(["--mount", "--", "sh", "-c", &run, "sh"])
        .args([folder, &program])
        .arg(test)
        .env(FOLDER, folder)
        .output();
    Some(output.unwrap())
}

fn assert_done(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains(DONE), "{out}\n{error}");
}

#[test]
fn a_disk_that_is_full_takes_nothing_by_halves() {
    let folder = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=3m none \"$1\"";
    let test = "store::disk_tests::second_half_on_a_full_disk";
    if let Some(output) = in_namespace(mount, test, folder.path()) {
        assert_done(&output);
    }
}

/// Not a test by itself: what [`a_disk_that_is_full_takes_nothing_by_halves`] starts.
#[test]
fn second_half_on_a_full_disk() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let filler = folder.join("filler");
    fs::write(&filler, vec![7; 1 << 20]).unwrap();
    let knowledge = Knowledge::open(&folder, KnowledgeOptions::default()).unwrap();
    let mut ids = Vec::new();
    let full = loop {
        let draft = draft(ids.len() as u64);
        match knowledge.store().insert(&draft, Standing::NEW, jiff::Timestamp::UNIX_EPOCH) {
            Ok(_) => ids.push(draft.id),
            Err(error) => break error,
        }
        assert!(ids.len() < 10_000, "the disk has no end");
    };
    assert!(matches!(full, KnowledgeError::Full { .. }), "{full}");
    // What the store does not take the outbox takes, until it cannot either, and then that is said.
    let lost = loop {
        let draft = draft(ids.len() as u64);
        let id = draft.id.clone();
        match knowledge.capture(draft) {
            Ok(Captured::Queued { .. } | Captured::Stored(_)) => ids.push(id),
            Err(error) => break error,
        }
        assert!(ids.len() < 20_000, "the disk has no end");
    };
    assert!(matches!(lost, KnowledgeError::Lost { .. }), "{lost}");
    knowledge.store().check().unwrap();
    fs::remove_file(&filler).unwrap();
    let OutboxReport { damaged, .. } = knowledge.empty_outbox().unwrap();
    assert_eq!(damaged, Vec::<PathBuf>::new());
    drop(knowledge);
    let store = opened(&folder);
    store.check().unwrap();
    assert_eq!(store.counts().unwrap().units as usize, ids.len());
    ids.iter().for_each(|id| drop(store.unit(id).unwrap()));
    println!("{DONE}");
}

/// The image behind a loop device holds what has reached the disk. Its copy, taken while the writer stands
/// still, is what a power cut leaves. The last count is large enough for the journal to be copied.
#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    for units in [1, 40, 400] {
        let folder = tempfile::tempdir().unwrap();
        let image = "truncate -s 192M \"$1/image\" && mkfs.ext4 -q \"$1/image\" && mkdir \"$1/disk\" \
             && mount -o loop,commit=300 \"$1/image\" \"$1/disk\"";
        fs::write(folder.path().join("units"), units.to_string()).unwrap();
        let test = "store::disk_tests::second_half_on_a_device";
        match in_namespace(image, test, folder.path()) {
            Some(output) => assert_done(&output),
            None => return,
        }
    }
}

/// Not a test by itself: what [`what_was_acknowledged_survives_a_power_cut`] starts.
#[test]
fn second_half_on_a_device() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    if std::env::var_os(WRITER).is_some() {
        return;
    }
    let units: usize = fs::read_to_string(folder.join("units")).unwrap().parse().unwrap();
    let disk = folder.join("disk");
    let mut child = writer(&disk);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let id = |line: &str| line.split_once("acknowledged ")?.1.trim().parse::<UnitId>().ok();
    let (mut acknowledged, mut line) = (Vec::new(), String::new());
    while acknowledged.len() < units && reader.read_line(&mut line).unwrap() > 0 {
        acknowledged.extend(id(&line));
        line.clear();
    }
    // Written and never flushed: the copy must not have it, or it would be no power cut.
    fs::write(disk.join("unflushed"), vec![7; 64 << 10]).unwrap();
    let stop = Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap();
    assert!(stop.success());
    fs::copy(folder.join("image"), folder.join("cut")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Until it stood still it may have acknowledged more.
    acknowledged.extend(reader.lines().map_while(Result::ok).filter_map(|line| id(&line)));
    let after = folder.join("after");
    fs::create_dir(&after).unwrap();
    let mount =
        Command::new("mount").args(["-o", "loop"]).args([&folder.join("cut"), &after]).status();
    assert!(mount.unwrap().success());
    let unflushed = fs::metadata(after.join("unflushed")).map_or(0, |about| about.len());
    assert_eq!(unflushed, 0, "the copy of the image has what was never flushed");
    let store = opened(&after);
    store.check().unwrap();
    assert!(acknowledged.len() >= units);
    acknowledged.iter().for_each(|id| drop(store.unit(id).unwrap()));
    drop(store);
    // The mounts end with the namespace.
    println!("{DONE}");
}
