//! Tests of reading rig files.

use std::time::Duration;

use super::*;
use crate::profile::tests::{assert_sound, shipped};

fn parse(files: &[(&str, &str)]) -> Result<Rig, Vec<crate::Problems>> {
    let texts = files.iter().map(|&(origin, text)| RigText { origin, text });
    Rig::parse(texts, &shipped())
}

/// Returns check and caret of each problem of one file.
fn problems(text: &str) -> Vec<(&'static str, String)> {
    let problems = parse(&[("rig.toml", text)]).unwrap_err().remove(0);
    assert_sound(&problems);
    let caret = |span: &Option<std::ops::Range<usize>>| {
        span.clone().map_or(String::new(), |span| problems.source[span].to_owned())
    };
    problems.list.iter().map(|p| (p.check, caret(&p.span))).collect()
}

const MAIN: &str = r#"
version = 1
[runs]
dir = "runs"
keep = "30d"
keep_size = "2G"
[[place]]
name = "bench-1"
board = "microbit"
[place.emulator]
args = ["-icount", "shift=6"]
"#;

const DROP_IN: &str =
    "version = 1\n[[place]]\nname = 'bench-2'\nboard = 'microbit'\nemulator = {}\n";

#[test]
fn drop_ins_add_places() {
    let rig = parse(&[("rig.toml", MAIN), ("rig.toml.d/a.toml", DROP_IN)]).unwrap();
    assert_eq!(rig.runs.keep, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!(rig.runs.origin.as_deref(), Some("rig.toml"));
    assert_eq!(rig.place("bench-2").unwrap().origin, "rig.toml.d/a.toml");
    let Resource::Emulator(emulator) = &rig.place("bench-1").unwrap().resource;
    assert_eq!(emulator.args, ["-icount", "shift=6"]);
    assert_eq!(rig.place("bench-3").unwrap_err().help, "did you mean `bench-2`?");
}

#[test]
fn a_place_declared_twice_names_both_files() {
    let files = [("rig.toml", DROP_IN), ("rig.toml.d/b.toml", DROP_IN)];
    let problems = parse(&files).unwrap_err();
    assert_eq!(problems.len(), 1);
    let text = problems[0].to_string();
    assert!(text.contains("rig.toml.d/b.toml is also declared in rig.toml "), "{text}");
    let runs = "version = 1\n[runs]\n";
    let text = parse(&[("a", runs), ("b", runs)]).unwrap_err()[0].to_string();
    assert!(text.contains("b says where runs are kept, but a does so already"), "{text}");
}

#[test]
fn every_file_is_reported() {
    let files = [("a", "version = 2"), ("b", DROP_IN), ("c", "x"), ("d", "version = 1\ny = 1")];
    let problems = parse(&files).unwrap_err();
    assert_eq!(problems.iter().map(|p| p.origin.as_str()).collect::<Vec<_>>(), ["a", "c", "d"]);
}

#[test]
fn slips_are_found_in_their_place() {
    for (good, bad, check, caret) in [
        ("name = \"bench-1\"", "name = \"a/b\"", "document::bad-name", "\"a/b\""),
        ("\"microbit\"", "\"microbat\"", "rig::unknown-board", "\"microbat\""),
        ("\"-icount\"", "\"-qmp\"", "rig::args", "\"-qmp\""),
        ("\"shift=6\"", "\"{port:x}\"", "rig::placeholder", "\"{port:x}\""),
        ("[place.emulator]", "[place.emulater]", "document::unknown-key", "emulater"),
        ("keep = \"30d\"", "keep = \"0s\"", "rig::runs-keep", "\"0s\""),
        ("keep_size = \"2G\"", "keep_size = 5", "rig::runs-keep-size", "5"),
        ("dir = \"runs\"", "dir = \"\"", "rig::runs-dir", "\"\""),
    ] {
        let found = problems(&MAIN.replacen(good, bad, 1));
        assert!(found.contains(&(check, caret.to_owned())), "{bad}: {found:?}");
    }
    // A kind of resource that this version does not know.
    let power = problems(&DROP_IN.replace("emulator = {}", "power = {}"));
    assert_eq!(power[0], ("document::missing-key", "[[place]]".to_owned()));
    assert_eq!(power[1], ("document::unknown-key", "power".to_owned()));
}

#[test]
fn without_a_rig_file_each_emulable_board_is_a_place() {
    let mut profiles = shipped();
    profiles[0].emulation = None;
    let rig = Rig::of_profiles(&profiles);
    assert_eq!(rig.places.len(), profiles.len() - 1);
    assert!(rig.place("microbit").is_ok());
    let text = DROP_IN.replace("microbit", profiles[0].id.as_str());
    let file = RigText { origin: "rig.toml", text: &text };
    let problems = Rig::parse([file], &profiles).unwrap_err();
    assert_eq!(problems[0].list[0].check, "rig::not-emulable");
}
