//! Files cut at every byte: reading and sweeping never fail, and make nothing up.

use std::fs;

use jig_model::StampedEvent;

use super::*;

fn read(dir: &RunDir) -> (Vec<StampedEvent>, Vec<EventItem>) {
    let (mut events, mut rest) = (Vec::new(), Vec::new());
    for item in dir.events().unwrap() {
        match item.unwrap() {
            EventItem::Event(event) => events.push(*event),
            other => rest.push(other),
        }
    }
    (events, rest)
}

#[test]
fn an_event_log_cut_anywhere_keeps_its_whole_lines() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    for text in ["one", "two \u{1b}[31m", "three"] {
        run.events().append(&note(text)).unwrap();
    }
    let dir = run.dir().clone();
    let whole = fs::read(dir.events_path()).unwrap();
    let (all, rest) = read(&dir);
    assert_eq!((all.len(), rest.len()), (3, 0));
    for cut in 0..=whole.len() {
        fs::write(dir.events_path(), &whole[..cut]).unwrap();
        let (events, rest) = read(&dir);
        let lines = whole[..cut].iter().filter(|&&b| b == b'\n').count();
        assert_eq!(events, all[..lines.saturating_sub(1)], "cut at {cut}");
        let start = whole[..cut].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let torn = EventItem::Torn { at: start as u64, bytes: (cut - start) as u64 };
        assert_eq!(rest, if cut == start { vec![] } else { vec![torn] }, "cut at {cut}");
    }
}

#[test]
fn damage_in_the_middle_hides_one_line_only() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    for text in ["one", "two", "three"] {
        run.events().append(&note(text)).unwrap();
    }
    let path = run.dir().events_path();
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).filter(|&at| whole[at] != b'\n') {
        let mut damaged = whole.clone();
        damaged[at] = 0;
        fs::write(&path, damaged).unwrap();
        let (events, rest) = read(run.dir());
        assert_eq!(events.len() + rest.len(), 3 + usize::from(events.len() == 3), "byte {at}");
        assert!(events.len() >= 2, "byte {at}");
    }
}

#[test]
fn a_sweep_removes_whatever_a_power_cut_left() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    run.events().append(&note("one")).unwrap();
    run.children().add(std::process::id(), 1, "not really me").unwrap();
    let dir = run.dir().clone();
    let record = fs::read(dir.record_path()).unwrap();
    let events = fs::read(dir.events_path()).unwrap();
    let children = fs::read(dir.children_path()).unwrap();
    drop(run);
    // The three are cut at once, each at every offset of its own.
    for cut in 0..record.len() {
        let at = |file: &[u8]| cut % (file.len() + 1);
        fs::write(dir.record_path(), &record[..cut]).unwrap();
        fs::write(dir.events_path(), &events[..at(&events)]).unwrap();
        fs::write(dir.children_path(), &children[..at(&children)]).unwrap();
        fs::write(dir.lock_path(), "").unwrap();

        let listed = store.list().unwrap();
        assert!(!listed[0].live);
        let swept = store.sweep(now()).unwrap();
        assert!(matches!(swept[..], [Swept { outcome: SweptOutcome::Abandoned(_), .. }]), "{cut}");

        let found = dir.record().unwrap();
        assert_eq!(found.state, RunState::Abandoned);
        assert_eq!(found.verdict.as_ref().unwrap().cause, Cause::Abandoned);
        assert_eq!(found.exit_code, Some(130));
        assert!(found.swept.as_ref().unwrap().killed.is_empty());
        assert!(found.attempts.is_empty() && found.ended.is_none());
        // All but the line end is there: then it is the record as it was.
        let whole = cut == record.len() - 1;
        assert_eq!(found.place.is_some(), whole, "cut at {cut}");
        let (_, rest) = read(&dir);
        assert_eq!(rest, [], "cut at {cut}");
        assert!(store.sweep(now()).unwrap().is_empty());
    }
    assert!(dir.path().join("record.json.damaged").exists());
}

#[test]
fn a_ledger_cut_anywhere_names_no_stranger() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    run.children().add(1_234_567, 89, "emulator").unwrap();
    run.children().add(7_654_321, 98, "tool").unwrap();
    run.children().remove(1_234_567).unwrap();
    let path = run.dir().children_path();
    let whole = fs::read(&path).unwrap();
    let last = crate::store::children::recorded(&path).unwrap();
    assert_eq!(last.iter().map(|c| c.pid).collect::<Vec<_>>(), [7_654_321]);
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        for child in crate::store::children::recorded(&path).unwrap() {
            assert!(matches!((child.pid, child.start_ticks), (1_234_567, 89) | (7_654_321, 98)));
        }
    }
    fs::write(&path, b"{\"add\":{\"pid\":5,\"start_ticks\":1,\"boot_id\":null,\"what\":\"\"}}\n")
        .unwrap();
    assert_eq!(crate::store::children::recorded(&path).unwrap(), []);
}

#[test]
fn a_half_written_replacement_is_never_seen() {
    let (_folder, store) = store();
    let mut run = begin(&store, "2026-11-21T22:15:30Z");
    let before = run.dir().record().unwrap();
    let fresh = crate::store::disk::temporary(&run.dir().record_path());
    fs::write(&fresh, b"{\"format\": \"jig-r").unwrap();
    assert_eq!(run.dir().record().unwrap(), before);
    run.update(|record| record.duration_ms = Some(1)).unwrap();
    assert_eq!(run.dir().record().unwrap().duration_ms, Some(1));
    assert!(!fresh.exists());
}

#[test]
fn whoever_reads_a_record_while_it_is_replaced_reads_the_old_one() {
    use std::io::Read as _;
    let (_folder, store) = store();
    let mut run = begin(&store, "2026-11-21T22:15:30Z");
    let path = run.dir().record_path();
    let before = fs::read_to_string(&path).unwrap();
    let mut reader = fs::File::open(&path).unwrap();
    run.update(|record| record.duration_ms = Some(77)).unwrap();
    let mut read = String::new();
    reader.read_to_string(&mut read).unwrap();
    assert_eq!(read, before);
    assert_ne!(fs::read_to_string(&path).unwrap(), before);
}
