//! What `jig run` and `jig test` print, and where.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use nix::pty::openpty;

use crate::junit::Junit;
use crate::manifest::{elf, entry};
use crate::workshop::{Slot, Started, Workshop, finish, ran, tied};

#[test]
fn a_text_is_enough() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "shell");
    let ran = workshop.run(["run", "-b", "microbit", &image, "--until", "jig> "]);
    ran.says(0, &["PASS", "microbit"]);
    assert!(ran.out().contains("jig-fixture shell on microbit\n"), "{ran}");
}

#[test]
fn a_plan_talks_to_the_shell() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let talk = entry("mps2-an385", "shell-talk");
    let (plan, image) = (talk.plan().unwrap(), talk.elf());
    let args = ["test".as_ref(), "-b".as_ref(), "mps2-an385".as_ref(), plan.as_os_str()];
    let ran = workshop.run(args.into_iter().chain(["--image".as_ref(), image.as_os_str()]));
    ran.says(0, &["PASS", "mps2-an385"]);
    assert!(ran.out().contains("shell 1.4.2"), "{ran}");
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let ran = workshop.run(["--json", "run", "-b", "microbit", &elf("microbit", "unity-fail")]);
    let document = ran.json().unwrap();
    assert_eq!(document["format"], "jig-verdict");
    assert_eq!(document["exit_code"], 1);
    ran.says(1, &[]);
}

#[test]
fn json_is_one_document_for_wrong_arguments_and_a_lost_one_is_told() {
    let workshop = Workshop::new();
    for args in [&["--json", "run", "--sped", "9"][..], &["mem", "read", "--json"], &["--json"]] {
        let ran = workshop.run(args);
        let error = &ran.json().unwrap()["error"];
        assert_eq!((&error["fault"], &error["exit_code"]), (&"usage".into(), &2.into()), "{ran}");
        ran.says(2, &[]);
        assert!(ran.stderr.is_empty(), "{ran}");
    }
    let unknown = workshop.run(["run", "--sped", "9", "--", "--json"]);
    unknown.says(2, &["error: unexpected argument '--sped'"]);
    assert!(unknown.stdout.is_empty(), "{unknown}");
    let mut command = workshop.jig(["--json", "boards"]);
    command.stdout(File::options().write(true).open("/dev/full").unwrap()).stderr(Stdio::piped());
    Started::of(&mut command).finish().says(75, &["could not write to standard output"]);
}

#[test]
fn a_run_whose_output_is_lost_does_not_pass_and_still_tells_its_verdict() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    for (fixture, code, verdict) in [("unity-pass", 75, "PASS"), ("unity-fail", 1, "FAIL")] {
        let mut command = workshop.jig(["run", "-b", "microbit", &elf("microbit", fixture)]);
        let full = File::options().write(true).open("/dev/full").unwrap();
        command.stdout(full).stderr(Stdio::piped());
        let words = [verdict, "could not write to standard output"];
        Started::of(&mut command).finish().says(code, &words);
    }
}

#[test]
fn quiet_prints_nothing_but_what_was_asked_for() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-fail");
    let run = ["run", "--quiet", "-b", "microbit", &image];
    let ran = workshop.run(run);
    ran.says(1, &[]);
    assert!(ran.stdout.is_empty(), "{ran}");
    let ran = workshop.run(run.into_iter().chain(["--report", "tap=-"]));
    ran.says(1, &[]);
    assert!(ran.out().starts_with("TAP version 14\n1..3\n"), "{ran}");
    assert!(ran.out().contains("\nnot ok "), "{ran}");
    let ran = workshop.run(run.into_iter().chain(["--report", "junit=-"]));
    assert_eq!(Junit::parse(&ran.out()).unwrap().failures, 1, "{ran}");
}

#[test]
fn every_report_that_was_asked_for_is_written() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let mut args: Vec<String> =
        ["run", "-b", "microbit", &elf("microbit", "unity-pass")].map(String::from).to_vec();
    for format in ["junit", "json", "tap", "github"] {
        args.extend(["--report".to_owned(), format!("{format}=report.{format}")]);
    }
    workshop.run(&args).says(0, &[]);
    let read =
        |format: &str| std::fs::read_to_string(workshop.path(&format!("report.{format}"))).unwrap();
    assert_eq!(Junit::parse(&read("junit")).unwrap().good, 3);
    let json: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(json["verdict"]["kind"], "pass");
    assert!(read("tap").contains("1..3\n"));
    assert!(read("github").contains("microbit"));
    // A run's own report is a baseline for the next.
    let image = elf("microbit", "unity-fail");
    let next = ["run", "-b", "microbit", &image, "--baseline", "report.json"];
    workshop.run(next).says(1, &["regression"]);
}

#[test]
fn flaky_is_neither_pass_nor_fail() {
    let _slot = Slot::take();
    // Twenty of twenty pass in one of 3,000 runs; three such runs in a row in one of 10^10.
    for throw in 1..=3 {
        let workshop = Workshop::new();
        let image = elf("microbit", "flaky");
        let ran = workshop.run(["run", "-b", "microbit", &image, "--repeat", "20"]);
        if ran.code() == 0 && throw < 3 {
            continue;
        }
        ran.says(5, &["FLAKY", "microbit"]);
        return;
    }
}

#[test]
fn escapes_of_a_target_never_reach_a_terminal() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let ran = workshop.run(["run", "-b", "microbit", &elf("microbit", "noise")]);
    ran.says(0, &[]);
    assert!(ran.out().contains("\\x1b[2J\\x1b[1;1H\\x1b]0;pwned\\x07"), "{ran}");
    for (name, bytes) in [("standard output", &ran.stdout), ("standard error", &ran.stderr)] {
        let text = String::from_utf8(bytes.clone()).expect("all that is printed is UTF-8");
        let wild = text.chars().find(|c| c.is_control() && !"\t\n".contains(*c));
        assert_eq!(wild, None, "a control character on {name}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_reason_to_panic() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-pass");
    let calls: [&[&str]; 5] = [
        &["run", "-b", "microbit", &image],
        &["--json", "run", "-b", "microbit", &image],
        &["boards"],
        &["completions", "bash"],
        &["--help"],
    ];
    for args in calls {
        let mut command = workshop.jig(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = finish(child, format!("jig {args:?}")).unwrap();
        assert!(!ran.err().contains("panicked"), "{ran}");
        assert_eq!(ran.code(), 0, "what was asked for was done: {ran}");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let image = elf("microbit", "unity-fail");
    for (no_colour, due) in [(None, true), (Some("1"), false)] {
        let terminal = openpty(None, None).unwrap();
        let mut command = workshop.jig(["run", "-b", "microbit", &image]);
        command.env("TERM", "xterm-256color").envs(no_colour.map(|value| ("NO_COLOR", value)));
        command.stdout(terminal.slave.try_clone().unwrap()).stderr(terminal.slave);
        let run = Started::of(&mut command);
        // The command holds the other end too; a terminal ends when the last one has gone.
        drop(command);
        let mut shown = Vec::new();
        let mut master = File::from(terminal.master);
        let mut buf = [0; 4096];
        // Reading a terminal that has ended is an error on Linux.
        while let Ok(len @ 1..) = master.read(&mut buf) {
            shown.extend_from_slice(&buf[..len]);
        }
        assert_eq!(run.finish().code(), 1);
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.contains("FAIL"), "{shown:?}");
        let coloured = shown.split("\u{1b}[").skip(1).any(|rest| {
            rest.find(|c: char| c.is_ascii_alphabetic())
                .is_some_and(|at| rest[at..].starts_with('m'))
        });
        assert_eq!(coloured, due, "NO_COLOR={no_colour:?}: {shown:?}");
    }
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let workshop = Workshop::new();
    // Without the options that a workshop gives, which win over variables.
    let mut boards = tied(env!("CARGO_BIN_EXE_jig"));
    boards.arg("boards").current_dir(workshop.path("."));
    for name in ["JIG_RIG", "JIG_RUNS", "JIG_BOARDS", "JIG_BOARD", "JIG_LOG_FORMAT"] {
        boards.env(name, "");
    }
    let ran = ran(&mut boards).unwrap();
    assert!(ran.code() == 0 && ran.out().contains("microbit"), "{ran}");
    // An empty argument stays a mistake.
    workshop.run(["boards", "--rig", ""]).says(2, &["--rig"]);
}
