//! A rig that is used from elsewhere: the same verbs, output and exit codes as at the rig.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::capture_service::CaptureService;
use crate::manifest::elf;
use crate::sshd::Sshd;
use crate::workshop::{Slot, Started, Workshop, until};

/// A host with a rig, and one from which it is used. They share no folder.
pub(crate) struct TwoHosts {
    pub(crate) rig: Workshop,
    pub(crate) desk: Workshop,
    service: Option<CaptureService>,
}

impl TwoHosts {
    pub(crate) fn new() -> Self {
        let (rig, desk) = (Workshop::new(), Workshop::new());
        let service = Some(CaptureService::start(&rig));
        Self { rig, desk, service }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.rig.path("../home/STATE/jig/rig.sock")
    }

    /// Kills the service of the rig, and starts another one.
    pub(crate) fn replace_service(&mut self) {
        self.service.take().unwrap().kill();
        self.service = Some(CaptureService::start(&self.rig));
    }

    /// Calls jig at the desk, for the rig.
    pub(crate) fn call(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.desk.jig(args);
        command.env("JIG_RIG", format!("unix:{}", self.socket().display()));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> crate::workshop::Ran {
        crate::workshop::ran(&mut self.call(args)).unwrap()
    }
}

/// Leaves out what differs between two runs: names and times.
pub(crate) fn lasting(text: &str) -> String {
    // Where a report is seen to be cut depends on when it is looked at; time listened is measured; the second
    // run has seen the failure of the first one.
    let varies = |line: &&str| {
        let texts = ["next: ", "the report was cut", "  listened ", "  seen before: "];
        texts.iter().any(|text| line.contains(text))
    };
    let lines = text.lines().filter(|line| !varies(line)).map(|line| {
        let time = line.rfind(" (").filter(|_| line.ends_with(" s)"));
        time.map_or(line, |at| &line[..at]).trim_end()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_at_another_rig_is_told_and_kept_as_one_of_this_host() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    for (board, fixture, code) in [
        ("microbit", "unity-pass", 0),
        ("mps2-an385", "fault-bus", 1),
        ("microbit", "unity-fail", 1),
    ] {
        let image = elf(board, fixture);
        let there = hosts.run(&["run", "-b", board, &image]);
        there.says(code, &[]);
        let here = hosts.rig.run(["run", "-b", board, &image]);
        here.says(code, &[]);
        assert_eq!(there.out(), here.out(), "{fixture}");
        assert_eq!(lasting(&there.err()), lasting(&here.err()), "{fixture}");
    }
    // A failure is explained among the runs of the rig.
    let explained = ["explain", "failure", "last"];
    let (there, here) = (hosts.run(&explained), hosts.rig.run(explained));
    let told = there.says(0, &[]).out();
    assert!(told.contains("cause: test_failed") && told.contains("last pass: "), "{there}");
    assert_eq!((&told, there.code()), (&here.out(), here.code()));
    hosts.run(&["explain", "failure", "20261124"]).says(2, &["20261124"]);
    // The copies are whole, and those of the rig are there, too.
    for copy in hosts.desk.run_dirs() {
        let original = hosts.rig.runs().join(copy.file_name().unwrap());
        for name in ["record.json", "events.jsonl", "consoles/1/uart0.raw", "consoles/1/uart0.idx"]
        {
            let (copied, kept) = (fs::read(copy.join(name)), fs::read(original.join(name)));
            assert_eq!(copied.unwrap(), kept.unwrap(), "{name}");
        }
        assert!(!copy.join("lock").exists());
    }
    // What works on runs needs no rig.
    hosts.desk.run(["runs", "show", "last"]).says(0, &[]);
    let log = hosts.desk.run(["runs", "log", "last"]);
    assert!(log.says(0, &[]).out().contains("test_ring.c"), "{log}");
}

#[test]
fn a_plan_and_its_reports_are_those_of_the_caller() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let plan = hosts.desk.write(
        "plan.toml",
        "version = 1\nname = \"p\"\ngoal = \"g\"\ntimeout = \"1m\"\n[[stage]]\nname = \"s\"\n[[stage.step]]\nname = \"s\"\n\
         goal = \"g\"\nactions = [{ deploy = true }, { power = \"cycle\" }, { wait_for_results = true }]\n",
    );
    let (plan, report) = (plan.display().to_string(), hosts.desk.path("r.xml"));
    let image = elf("microbit", "unity-pass");
    let junit = format!("junit={}", report.display());
    let args = ["test", "-b", "microbit", &plan, "--image", &image, "--report", &junit];
    hosts.run(&args).says(0, &["PASS microbit"]);
    assert!(fs::read_to_string(report).unwrap().contains("test_keeps_order"));
    let wrong = hosts.desk.write("wrong.toml", "version = 1\nnam = \"p\"\n").display().to_string();
    hosts.run(&["test", "-b", "microbit", &wrong]).says(3, &["nam", "wrong.toml:2"]);
    hosts.run(&["run", "-b", "microbti", &image]).says(2, &["microbti", "jig boards"]);
}

#[test]
fn piped_input_reaches_a_console_at_another_rig() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("mps2-an385", "shell-talk");
    let mut command = hosts.call(&["console", "-b", "mps2-an385", "--image", &image]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut session = Started::of(&mut command);
    session.child().stdin.take().unwrap().write_all(b"ver\n").unwrap();
    let ran = session.finish();
    ran.says(0, &[]);
    assert!(ran.out().contains("jig> ver"), "{ran}");
}

/// Waits until a run of the rig has begun at the desk.
fn begun(hosts: &TwoHosts) -> PathBuf {
    until("a copied run", || hosts.desk.run_dirs().pop())
}

#[test]
fn a_run_goes_on_where_the_server_is_killed_and_its_caller_comes_back() {
    let _slot = Slot::take();
    let mut hosts = TwoHosts::new();
    let image = elf("mps2-an385", "slow-start");
    let mut command = hosts.call(&["run", "-b", "mps2-an385", &image, "--timeout", "60s"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let caller = Started::of(&mut command);
    begun(&hosts);
    hosts.replace_service();
    caller.finish().says(0, &["PASS mps2-an385"]);
    assert_eq!(hosts.rig.run_dirs().len(), 1, "the run was made again");
}

#[test]
fn a_run_outlives_its_caller_and_a_signal_cancels_it() {
    let _slot = Slot::take();
    let hosts = TwoHosts::new();
    let image = elf("mps2-an385", "slow-start");
    let start = || {
        let mut command = hosts.call(&["run", "-b", "mps2-an385", &image, "--timeout", "60s"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started::of(&mut command)
    };
    let state = |dir: &PathBuf| {
        let text = fs::read(hosts.rig.runs().join(dir.file_name().unwrap()).join("record.json"));
        serde_json::from_slice::<Value>(&text.ok()?).ok()
    };
    let caller = start();
    let killed = begun(&hosts);
    caller.signal(Signal::SIGKILL);
    caller.finish();
    until("the end of the run", || {
        state(&killed).filter(|record| record["verdict"]["kind"] == "pass").map(drop)
    });
    let caller = start();
    let cancelled =
        until("another run", || hosts.desk.run_dirs().into_iter().find(|d| *d != killed));
    caller.signal(Signal::SIGINT);
    caller.finish().says(130, &["CANCELLED"]);
    assert_eq!(state(&cancelled).unwrap()["verdict"]["kind"], "cancelled");
}

/// Writes a program that is jig at the rig. The far side's home is that of a real user; what runs there
/// must not touch it.
fn far_jig(rig: &Workshop) -> PathBuf {
    let jig = rig.jig::<&str>([]);
    let vars = jig.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let vars = vars.map(|(name, value)| format!("export {name:?}={value:?}\n")).collect::<String>();
    let args: Vec<String> = jig.get_args().map(|arg| format!("{arg:?}")).collect();
    let (program, args, folder) = (jig.get_program(), args.join(" "), jig.get_current_dir());
    let text =
        format!("#!/bin/sh\n{vars}cd {:?}\nexec {program:?} {args} \"$@\"\n", folder.unwrap());
    let far = rig.write("jig", text);
    fs::set_permissions(&far, fs::Permissions::from_mode(0o755)).unwrap();
    far
}

/// A rig that is reached by OpenSSH's server, and a host that may log in there.
pub(crate) struct OverSsh {
    pub(crate) rig: Workshop,
    pub(crate) desk: Workshop,
    pub(crate) sshd: Sshd,
    target: String,
}

impl OverSsh {
    pub(crate) fn new() -> Self {
        let (rig, desk) = (Workshop::new(), Workshop::new());
        let sshd = Sshd::start_with(rig.path("ssh"), "127.0.0.1:0", "");
        let home = desk.path("../home/.ssh");
        fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::symlink(sshd.file("user"), home.join("id_ed25519")).unwrap();
        fs::write(home.join("known_hosts"), sshd.known_line("host.pub")).unwrap();
        let target = format!("ssh://127.0.0.1:{}{}", sshd.port(), far_jig(&rig).display());
        Self { rig, desk, sshd, target }
    }

    /// Calls jig at the desk, for the rig.
    pub(crate) fn call(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.desk.jig(args);
        command.env("JIG_RIG", &self.target);
        command
    }
}

/// Calls jig for a rig behind SSH; `options` come first.
fn over_ssh(desk: &Workshop, target: &str, options: &[&str], image: &str) -> crate::workshop::Ran {
    let mut args = vec!["--rig", target];
    args.extend_from_slice(options);
    args.extend_from_slice(&["run", "-b", "microbit", image]);
    desk.run(args)
}

#[test]
fn a_rig_is_reached_over_ssh_and_what_is_wrong_on_the_way_is_named() {
    let _slot = Slot::take();
    let (rig, desk) = (Workshop::new(), Workshop::new());
    let sshd = Sshd::start_with(rig.path("ssh"), "127.0.0.1:0", "");
    fs::create_dir_all(desk.path("../home/.ssh")).unwrap();
    let target = format!("ssh://127.0.0.1:{}{}", sshd.port(), far_jig(&rig).display());
    let image = elf("microbit", "unity-pass");
    let unknown = over_ssh(&desk, &target, &[], &image);
    unknown.says(2, &["not known", "SHA256:", "--ssh-accept-new"]);
    let no_key = over_ssh(&desk, &target, &["--ssh-accept-new"], &image);
    no_key.says(2, &["key"]);
    std::os::unix::fs::symlink(sshd.file("user"), desk.path("../home/.ssh/id_ed25519")).unwrap();
    over_ssh(&desk, &target, &["--ssh-accept-new"], &image).says(0, &["PASS microbit"]);
    // Known by now.
    over_ssh(&desk, &target, &[], &image).says(0, &["PASS microbit"]);
    let absent = format!("ssh://127.0.0.1:{}/no/such/jig", sshd.port());
    over_ssh(&desk, &absent, &[], &image).says(75, &["/no/such/jig"]);
    over_ssh(&desk, "ssh://", &[], &image).says(2, &["ssh://"]);
    assert_eq!((rig.run_dirs().len(), desk.run_dirs().len()), (2, 2));
}

/// Speaks to `jig rpc --stdio`; returns its answers.
pub(crate) fn spoken(workshop: &Workshop, lines: &[&str]) -> (i32, Vec<Value>) {
    let mut command = workshop.jig(["rpc", "--stdio", "--as", "ci"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Started::of(&mut command);
    let mut stdin = server.child().stdin.take().unwrap();
    // A server that refuses a line may have ended before the next one.
    let _ = stdin.write_all(lines.join("\n").as_bytes()).and_then(|()| stdin.write_all(b"\n"));
    drop(stdin);
    let ran = server.finish();
    let answers = ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran.code(), answers)
}

pub(crate) const HELLO: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"program":"x","by":"me"}}"#;

#[test]
fn a_caller_that_keeps_to_no_protocol_is_told_what_is_wrong() {
    let workshop = Workshop::new();
    let call = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).to_string()
    };
    let older = HELLO.replace("\"protocol\":1", "\"protocol\":7");
    let run =
        json!({"command": "run", "place": "microbit", "image": "/etc/passwd", "timeout_ms": 1});
    let start = json!({"job": "a", "command": run, "attached": false});
    let digest = "0".repeat(64);
    for (first, second, code, words) in [
        ("noise", String::new(), -32700, "JSON-RPC"),
        (HELLO, r#"{"jsonrpc":"2.0"}"#.to_owned(), -32600, "request"),
        ("", call("job.list", json!({})), -32600, "first call is hello"),
        (&older, String::new(), -32000, "speaks protocol 1"),
        (HELLO, call("levitate", json!({})), -32601, "levitate"),
        (HELLO, call("job.follow", json!({"job": "../x", "offset": 0})), -32602, "names no job"),
        (HELLO, call("job.cancel", json!({"job": "gone"})), -32000, "no job gone"),
        // A caller names no files of the host.
        (HELLO, call("job.start", start), -32000, "no file that was sent"),
        (
            HELLO,
            call(
                "run.read",
                json!({"run": "20261124-000000-0000", "path": "../../x", "offset": 0}),
            ),
            -32000,
            "20261124-000000-0000",
        ),
        (
            HELLO,
            call("file.put", json!({"sha256": digest, "offset": 0, "data": ""})),
            -32000,
            "not offered",
        ),
        (
            HELLO,
            call("file.put", json!({"sha256": digest, "offset": 0, "data": "!"})),
            -32602,
            "data",
        ),
    ] {
        let lines: Vec<&str> = [first, &second].into_iter().filter(|l| !l.is_empty()).collect();
        let (_, answers) = spoken(&workshop, &lines);
        let error = answers.iter().find_map(|answer| answer.get("error"));
        let error = error.unwrap_or_else(|| panic!("{lines:?}: {answers:?}"));
        assert_eq!(error["code"], code, "{lines:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{lines:?}: {error}");
    }
    let (code, answers) = spoken(&workshop, &[HELLO]);
    assert_eq!((code, answers[0]["result"]["identity"].as_str()), (0, Some("ci")));
    let endless = "x".repeat(3 << 20);
    assert_eq!(spoken(&workshop, &[HELLO, &endless]).0, 2);
}
