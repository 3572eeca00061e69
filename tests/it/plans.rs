//! Plans whose steps are started again.

use crate::manifest::elf;
use crate::workshop::{Slot, Workshop};

const BOARD: &str = "mps2-an385";

/// A plan whose second step finds a text twice, and so works from its second start on.
fn plan(attempts: u32) -> String {
    format!(
        "version = 1\nname = \"again\"\ngoal = \"g\"\ntimeout = \"2m\"\n[[stage]]\nname = \"s\"\n\
         [[stage.step]]\nname = \"one\"\ngoal = \"g\"\n\
         actions = [{{ deploy = true }}, {{ power = \"cycle\" }}, {{ expect = '^jig> ' }}]\n\
         [[stage.step]]\nname = \"two\"\ngoal = \"g\"\nattempts = {attempts}\n\
         actions = [{{ send = \"echo again\\n\" }}, {{ expect = '^again\\r' }}, \
         {{ assert = '^again\\r', at_least = 2 }}]\n"
    )
}

#[test]
fn a_step_that_works_when_it_is_started_again_makes_the_run_flaky() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let once = "`^again\\r` was printed 1 times, not 2";
    let again =
        format!("everything worked in the end, after 1 restart; step two failed before: {once}");
    for (attempts, code, words) in [(1, 1, once), (2, 5, &*again), (3, 5, &*again)] {
        let path = workshop.write("plan.toml", plan(attempts)).display().to_string();
        let image = elf(BOARD, "shell");
        let json = workshop.path("report.json").display().to_string();
        let report = format!("json={json}");
        let args = ["test", "-b", BOARD, &path, "--image", &image, "--report", &report];
        let ran = workshop.run(args);
        ran.says(code, &[words]);
        let report = std::fs::read_to_string(json).unwrap();
        assert_eq!(report.contains("\"flaky\""), code == 5, "{report}");
    }
}

/// Proposes patterns for the last run and returns them.
fn proposed(workshop: &Workshop) -> Vec<String> {
    let ran = workshop.run(["runs", "allow"]);
    ran.says(0, &[]);
    let read: toml::Table = ran.out().parse().unwrap();
    let patterns = read["allow_output"].as_array().unwrap().iter();
    patterns.map(|pattern| pattern.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_proposes_the_patterns_that_a_strict_one_needs() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf(BOARD, "unity-pass");
    let run = ["run", "-b", BOARD, &image, "--strict"];
    let line = format!("jig-fixture unity-pass on {BOARD}");
    workshop.run(run).says(4, &[&line, "jig runs allow"]);
    let patterns = proposed(&workshop);
    assert_eq!(patterns, ["^jig-fixture unity-pass on mps[0-9]+-an[0-9]+$"]);
    let told = workshop.run(["--json", "runs", "allow"]).json().unwrap();
    assert_eq!((&told["lines"], &told["attempt"]), (&1.into(), &1.into()), "{told}");
    assert_eq!((&told["kinds"][0]["text"], &told["kinds"][0]["start"]), (&line.into(), &0.into()));
    let allow: Vec<_> = patterns.iter().flat_map(|pattern| ["--allow", pattern]).collect();
    workshop.run([&run[..], &allow].concat()).says(0, &[]);
    // Nothing is left that nothing accounts for.
    let none = workshop.run(["runs", "allow"]);
    assert!(none.says(0, &["has no list"]).out().is_empty(), "{none}");
}

#[test]
fn a_place_may_ask_that_each_line_is_known() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let place = |name: &str, strict: &str| {
        format!(
            "[[place]]\nname = \"{name}\"\nboard = \"{BOARD}\"\nemulator = {{}}\nstrict = {strict}\n"
        )
    };
    let places = [place("all", "true"), place("behind", "\"behind\""), place("off", "false")];
    let rig = workshop.write("rig.toml", format!("version = 1\n{}", places.concat()));
    let rig = rig.to_str().unwrap();
    let image = elf(BOARD, "unity-pass");
    for (place, options, code) in [
        ("all", &[][..], 4),
        ("all", &["--allow", "^jig-fixture "], 0),
        // An option asks for more, and never for less.
        ("all", &["--strict-behind"], 4),
        ("behind", &[], 0),
        ("behind", &["--strict"], 4),
        ("off", &[], 0),
    ] {
        let run = ["--rig", rig, "run", "-b", place, &image];
        workshop.run([&run[..], options].concat()).says(code, &[]);
    }
    let bad = workshop.write("bad.toml", format!("version = 1\n{}", place("a", "\"front\"")));
    let bad = bad.to_str().unwrap();
    let refused = workshop.run(["--rig", bad, "run", "-b", "a", "--strict", &image]);
    refused.says(3, &["`strict` must be true, false or \"behind\""]);
}
