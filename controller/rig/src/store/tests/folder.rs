//! Listing, finding, pruning and exporting.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;

use super::*;

fn ended(store: &RunStore, wall: &str) -> RunDir {
    let run = begin(store, wall);
    let dir = run.dir().clone();
    run.finish(passed()).unwrap();
    dir
}

#[test]
fn listings_are_newest_first_and_show_what_is_broken() {
    let (_folder, store) = store();
    assert!(store.list().unwrap().is_empty(), "no folder, no runs");
    let old = ended(&store, "2026-11-20T10:00:00Z");
    let new = ended(&store, "2026-11-21T10:00:00Z");
    let alive = begin(&store, "2026-11-22T10:00:00Z");
    fs::write(old.record_path(), "{").unwrap();
    let listed = store.list().unwrap();
    let ids: Vec<_> = listed.iter().map(|entry| entry.dir.id()).collect();
    assert_eq!(ids, [alive.id(), new.id(), old.id()]);
    let lives: Vec<_> = listed.iter().map(|entry| entry.live).collect();
    assert_eq!(lives, [true, false, false]);
    assert!(matches!(listed[2].record, Err(StoreError::Damaged { .. })));
}

#[test]
fn runs_are_found_by_id_prefix_and_last() {
    let (_folder, store) = store();
    let error = store.open("last").unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error:?}");
    let first = ended(&store, "2026-11-20T10:00:00Z");
    let second = ended(&store, "2026-11-20T10:00:00.5Z");
    let third = ended(&store, "2026-12-01T10:00:00Z");
    let open = |wanted: &str| store.open(wanted).map(|entry| entry.dir);
    assert_eq!(open("last").unwrap(), third);
    assert_eq!(open("202612").unwrap(), third);
    assert_eq!(open(first.id().as_str()).unwrap(), first);
    match open("20261120-100000").unwrap_err() {
        StoreError::Ambiguous { matches, .. } => {
            assert_eq!(matches, [second.id().to_string(), first.id().to_string()]);
        }
        other => panic!("{other:?}"),
    }
    let error = open("20261120-100000-8001").unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&format!("did you mean {}", second.id())), "{text}");
    for wanted in ["", "../..", "zzz", "\u{1b}[2J", &"x".repeat(1 << 20)] {
        let text = open(wanted).unwrap_err().to_string();
        assert!(text.len() < 400 && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("`jig runs` lists them"), "{text}");
    }
}

#[test]
fn prune_removes_by_age_and_size_but_nothing_alive_or_foreign() {
    let (_folder, store) = store();
    let fresh = ended(&store, "2026-11-30T10:00:00Z");
    let middle = ended(&store, "2026-11-25T10:00:00Z");
    let aged = ended(&store, "2026-10-01T10:00:00Z");
    let alive = begin(&store, "2026-09-01T10:00:00Z");
    let killed = begin(&store, "2026-09-02T10:00:00Z").dir().clone();
    let foreign = store.root().join("20200101-000000-0000");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("thesis.tex"), "years of work").unwrap();
    let outside = store.root().with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("keep"), "x").unwrap();
    symlink(&outside, store.root().join("20200101-000000-0001")).unwrap();
    symlink(&outside, aged.path().join("artefacts/link")).unwrap();

    assert!(store.prune(Retention::default(), now()).unwrap().is_empty());
    let keep = Retention { keep_days: Some(30), keep_bytes: None };
    let pruned = store.prune(keep, now()).unwrap();
    assert_eq!(pruned.iter().map(|p| &p.id).collect::<Vec<_>>(), [aged.id()]);
    assert!(pruned[0].error.is_none() && pruned[0].bytes > 0);
    assert!(!aged.path().exists());

    fs::write(fresh.artefact_path("big"), vec![0; 100_000]).unwrap();
    let keep = Retention { keep_days: Some(30), keep_bytes: Some(110_000) };
    assert!(store.prune(keep, now()).unwrap().is_empty());
    let keep = Retention { keep_days: None, keep_bytes: Some(101_500) };
    let pruned = store.prune(keep, now()).unwrap();
    assert_eq!(pruned.iter().map(|p| &p.id).collect::<Vec<_>>(), [middle.id()]);
    let keep = Retention { keep_days: Some(0), keep_bytes: Some(0) };
    assert_eq!(store.prune(keep, now()).unwrap().len(), 1);

    assert!(alive.dir().record_path().exists() && killed.record_path().exists());
    assert!(foreign.join("thesis.tex").exists() && outside.join("keep").exists());
}

#[test]
fn an_export_holds_every_file_under_stable_names() {
    let (_folder, store) = store();
    let run = begin(&store, "2026-11-21T22:15:30Z");
    let dir = run.dir().clone();
    let raw = dir.console_path(1, &"uart0".parse().unwrap());
    fs::create_dir_all(raw.parent().unwrap()).unwrap();
    fs::write(&raw, b"hello\xff\0").unwrap();
    let odd = dir.artefact_path("../odd name\n");
    fs::write(&odd, "x").unwrap();
    fs::write(dir.report_path(crate::report::ReportFormat::Junit), "<x/>").unwrap();
    symlink("/etc/hostname", dir.artefact_path("link")).unwrap();
    run.events().append(&note("one")).unwrap();

    let while_alive = store.export("last", Vec::new()).unwrap();
    run.finish(passed()).unwrap();
    let archive = store.export("last", Vec::new()).unwrap();
    assert_eq!(archive, store.export("20261121", Vec::new()).unwrap());
    assert_ne!(archive, while_alive);

    let mut found = BTreeMap::new();
    let mut order = Vec::new();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&archive[..]));
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        order.push(name.clone());
        found.insert(name, content);
    }
    let inside = |path: &Path| format!("{}/{}", dir.id(), dir.relative(path).unwrap());
    let mut expected = vec![
        inside(&odd),
        inside(&dir.children_path()),
        inside(&raw),
        inside(&dir.events_path()),
        inside(&dir.record_path()),
        inside(&dir.report_path(crate::report::ReportFormat::Junit)),
    ];
    expected.sort();
    assert_eq!(order, expected);
    assert_eq!(found[&inside(&raw)], b"hello\xff\0");
    assert_eq!(found[&inside(&dir.record_path())], fs::read(dir.record_path()).unwrap());
}

#[test]
fn a_writer_that_fails_is_told() {
    let (_folder, store) = store();
    ended(&store, "2026-11-21T22:15:30Z");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = store.export("last", full).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
}
