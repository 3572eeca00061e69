//! Going on with the output of a run, from another terminal or after a lost connection.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::manifest::elf;
use crate::remote::{OverSsh, TwoHosts, lasting};
use crate::workshop::{Ran, Slot, Started, Workshop, name_of, ran, until};

fn started(command: &mut Command) -> Started {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Started::of(command)
}

/// Waits for a run of the rig whose console has printed something.
fn talks(rig: &Workshop, words: &str) -> String {
    let said = |dir: &PathBuf| {
        let log = fs::read(dir.join("consoles/1/uart0.raw")).unwrap_or_default();
        String::from_utf8_lossy(&log).contains(words)
    };
    let run = until(words, || rig.run_dirs().into_iter().rev().find(said));
    name_of(&run).to_owned()
}

fn verdict(rig: &Workshop, run: &str) -> Option<String> {
    let record = fs::read(rig.runs().join(run).join("record.json")).ok()?;
    let record: Value = serde_json::from_slice(&record).ok()?;
    record["verdict"]["kind"].as_str().map(str::to_owned)
}

/// A run that prints for so many seconds, and then fails.
fn ticking<'a>(image: &'a str, time: &'a str) -> Vec<&'a str> {
    vec!["run", "-b", "mps2-an385", image, "--until", "no such words", "--timeout", time]
}

fn told_alike(one: &Ran, other: &Ran) {
    assert_eq!(one.code(), other.code(), "{one}\n{other}");
    assert_eq!(one.out(), other.out(), "{one}\n{other}");
    assert_eq!(lasting(&one.err()), lasting(&other.err()));
}

#[test]
fn a_run_is_told_to_another_terminal_as_to_its_own() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("mps2-an385", "never-quiet");
    let args = ticking(&image, "3s");
    let caller = started(&mut hosts.call(&args));
    let run = talks(&hosts.rig, "tick");
    let desk = started(&mut hosts.call(&["runs", "attach", &run]));
    let rig = started(&mut hosts.rig.jig(["runs", "attach", &run[..17]]));
    let json = started(&mut hosts.call(&["--json", "runs", "attach"]));
    let (caller, desk, rig, json) = (caller.finish(), desk.finish(), rig.finish(), json.finish());
    assert_eq!(caller.code(), 1, "{caller}");
    told_alike(&desk, &caller);
    told_alike(&rig, &caller);
    assert_eq!((json.code(), &json.json().unwrap()["verdict"]["kind"]), (1, &"fail".into()));
    // It has ended: its verdict is shown, and nothing else.
    let late = hosts.run(&["runs", "attach", &run]);
    assert_eq!((late.code(), late.out().as_str()), (1, ""), "{late}");
    assert_eq!(lasting(&late.err()), lasting(&caller.err()));
    let near = format!("{}0", &run[..run.len() - 1]);
    let near = if near == run { format!("{}1", &run[..run.len() - 1]) } else { near };
    hosts.run(&["runs", "attach", &near]).says(2, &["did you mean", &run]);
}

#[test]
fn a_signal_detaches_and_cancel_cancels() {
    let _slot = Slot::take();
    let hosts = OverSsh::new();
    let image = elf("mps2-an385", "never-quiet");
    let caller = started(&mut hosts.call(&ticking(&image, "60s")));
    let run = talks(&hosts.rig, "tick");
    let begun = hosts.desk.runs().join(&run).join("incomplete-copy");
    until("a copy of the run", || begun.exists().then_some(()));
    // The caller is killed; the run goes on.
    caller.signal(Signal::SIGKILL);
    caller.finish();
    let mut attached = started(&mut hosts.call(&["runs", "attach", &run, "--tail"]));
    let mut first = [0; 1];
    std::io::Read::read_exact(attached.child().stdout.as_mut().unwrap(), &mut first).unwrap();
    attached.signal(Signal::SIGINT);
    let attached = attached.finish();
    attached.says(130, &["detached", &format!("jig runs cancel {run}")]);
    assert!(
        !attached.out().contains("test_ring"),
        "it has shown what was there before: {attached}"
    );
    assert_eq!(verdict(&hosts.rig, &run), None, "detaching has ended the run");
    let attached = started(&mut hosts.call(&["runs", "attach", &run]));
    ran(&mut hosts.call(&["runs", "cancel", "last"])).unwrap().says(0, &[&run, "cancelled"]);
    attached.finish().says(130, &["CANCELLED"]);
    assert_eq!(verdict(&hosts.rig, &run).as_deref(), Some("cancelled"));
    ran(&mut hosts.call(&["runs", "cancel", &run])).unwrap().says(0, &["has ended already"]);
    // The copy that the killed caller has left is complete since the run was attached.
    let (copy, kept) = (hosts.desk.runs().join(&run), hosts.rig.runs().join(&run));
    for name in ["record.json", "events.jsonl", "consoles/1/uart0.raw", "consoles/1/uart0.idx"] {
        let (copied, kept) = (fs::read(copy.join(name)), fs::read(kept.join(name)));
        assert_eq!(copied.unwrap(), kept.unwrap(), "{name}");
    }
    assert!(!copy.join("lock").exists() && !copy.join("incomplete-copy").exists());
    // The log says who has cancelled it.
    let audit = hosts.rig.run(["audit"]).says(0, &[]).out();
    let cancels: Vec<_> = audit.lines().filter(|line| line.contains(" accepted cancel ")).collect();
    let [line] = &cancels[..] else { panic!("{audit}") };
    assert!(line.contains(&run) && line.contains("its caller asks"), "{line}");
}

#[test]
fn a_run_of_a_terminal_at_the_rig_is_told_and_not_cancelled() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("mps2-an385", "never-quiet");
    let args = [&["--rig", "local"][..], &ticking(&image, "4s")].concat();
    let own = started(&mut hosts.rig.jig(args));
    let run = talks(&hosts.rig, "tick");
    let refused = hosts.run(&["runs", "cancel", &run]);
    refused.says(2, &["belongs to a command of a terminal"]);
    let attached = hosts.run(&["runs", "attach", &run]);
    told_alike(&attached, &own.finish());
}

#[test]
fn each_attempt_of_a_run_is_told_and_its_job_is_as_good_a_name() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("microbit", "unity-pass");
    let args = ["run", "-b", "microbit", &image, "--repeat", "6"];
    let caller = started(&mut hosts.call(&args));
    let jobs = hosts.rig.path("../home/STATE/jig/jobs");
    let job = until("a job", || {
        let jobs = fs::read_dir(&jobs).ok()?.flatten();
        let names = jobs.filter_map(|job| job.file_name().into_string().ok());
        names.into_iter().find(|name| !name.starts_with('.'))
    });
    let attached = hosts.run(&["runs", "attach", &job]);
    assert_eq!(attached.code(), 0, "{attached}");
    assert_eq!(attached.out().matches("jig-fixture unity-pass").count(), 6, "{attached}");
    caller.finish().says(0, &["PASS"]);
    hosts.run(&["runs", "attach", "no-such-job"]).says(2, &["no-such-job"]);
}
