//! Targets that are computers: commands, copies and reboots over SSH and over a serial console.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::hold::Session;
use crate::linux::image_sets;
use crate::served::first_line;
use crate::sshd::Sshd;
use crate::workshop::{DEADLINE, Ran, Slot, Started, Workshop, ran, until};

/// This host as a board: an SSH server on the loopback interface.
struct Computer {
    workshop: Workshop,
    sshd: Sshd,
}

impl Computer {
    fn new() -> Self {
        let workshop = Workshop::new();
        let sshd = Sshd::start(&workshop);
        let computer = Self { workshop, sshd };
        fs::write(computer.sshd.file("known"), computer.sshd.known_line("host.pub")).unwrap();
        computer.rig("user", "known", "");
        computer
    }

    /// Writes the rig file: the key, the file of known hosts, and more keys of the shell.
    fn rig(&self, key: &str, known: &str, more: &str) {
        let file = |name: &str| self.sshd.file(name).display().to_string();
        let (identity, known, port) = (file(key), file(known), self.sshd.port());
        self.workshop.write(
            "rig.toml",
            format!(
                "version = 1\n[[place]]\nname = \"pc\"\nboard = \"arm64-virt\"\n[place.shell]\n\
                 host = \"127.0.0.1\"\nport = {port}\nidentity = {identity:?}\n\
                 known_hosts = {known:?}\n{more}"
            ),
        );
    }

    /// Runs a plan with these actions.
    fn test(&self, actions: &str) -> (Ran, Value) {
        test(&mut self.workshop.jig(["--json", "test", "-b", "pc"]), &self.workshop, actions)
    }
}

fn test(command: &mut Command, workshop: &Workshop, actions: &str) -> (Ran, Value) {
    let plan = workshop.write(
        "plan.toml",
        format!(
            "version = 1\nname = \"shell\"\ntimeout = \"200s\"\n[[stage]]\nname = \"s\"\n\
             [[stage.step]]\nname = \"s\"\nactions = [\n{actions}\n]\n"
        ),
    );
    let ran = ran(command.arg(plan)).unwrap_or_else(|why| panic!("{why}"));
    let verdict = ran.json().unwrap_or_else(|why| panic!("{why}"))["verdict"].clone();
    (ran, verdict)
}

/// Reads a file of the last run.
fn of_run(workshop: &Workshop, name: &str) -> Vec<u8> {
    let path = workshop.run_dirs().pop().unwrap().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the artefacts of the last run whose names end so.
fn artefacts(workshop: &Workshop, ending: &str) -> Vec<PathBuf> {
    let folder = workshop.run_dirs().pop().unwrap().join("artefacts");
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.to_str().unwrap().ends_with(ending)).collect()
}

#[test]
fn commands_and_files_over_ssh_are_evidence() {
    let computer = Computer::new();
    let (workshop, there) = (&computer.workshop, computer.workshop.path("there"));
    fs::create_dir(&there).unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    workshop.write("tests.bin", &sent);
    let actions = format!(
        r#"
        {{ upload = {{ from = "tests.bin", to = "{0}" }} }},
        {{ exec = ["sh", "-c", "echo 1..1; echo ok 1 - copied; test -s $1", "x", "{0}/tests.bin"], exit_code = 0 }},
        {{ wait_for_results = true, console = "shell" }},
        {{ exec = ["sh", "-c", "echo \"it's\" >&2; exit 7"], exit_code = 7 }},
        {{ expect = "it's", console = "shell" }},
        {{ download = {{ from = "{0}/tests.bin", to = "back.bin" }} }},
        "#,
        there.display()
    );
    let (ran, verdict) = computer.test(&actions);
    ran.says(0, &[]);
    assert_eq!(verdict["cause"], "passed", "{ran}");
    assert_eq!(fs::read(there.join("tests.bin")).unwrap(), sent);
    assert_eq!(fs::read(&artefacts(workshop, "back.bin")[0]).unwrap(), sent);
    let console = String::from_utf8(of_run(workshop, "consoles/1/shell.raw")).unwrap();
    assert_eq!(console, "1..1\nok 1 - copied\nit's\n");
    let events = String::from_utf8(of_run(workshop, "events.jsonl")).unwrap();
    assert!(events.contains("\"event\":\"target_command\""), "{events}");
    assert_eq!(events.matches("\"event\":\"file_copied\"").count(), 2, "{events}");
    // A failed test in the output of a command fails the run, whatever its status.
    let (_, verdict) = computer.test(r#"{ exec = ["printf", "1..1\nnot ok 1 - broken\n"] },"#);
    assert_eq!(verdict["cause"], "test_failed", "{verdict}");
}

#[test]
fn blame_is_where_the_failure_is() {
    let computer = Computer::new();
    for (actions, cause, words) in [
        (r#"{ exec = ["false"] }"#, "command_failed", "ended with status 1, not 0"),
        (r#"{ exec = ["no-such-program-x"] }"#, "command_failed", "status 127"),
        (
            r#"{ upload = { from = "rig.toml", to = "/nonexistent/x" } }"#,
            "transfer_failed",
            "/nonexistent/x",
        ),
        // Nothing can be written beside a device that is always full, so it is written to.
        (r#"{ exec = ["sh", "-c", "echo x >/dev/full"] }"#, "command_failed", "status"),
        (r#"{ download = { from = "/nonexistent/x" } }"#, "transfer_failed", "/nonexistent/x"),
        (r#"{ exec = ["sleep", "100"], timeout = "1s" }"#, "command_failed", "did not end within"),
        (r#"{ exec = ["true"], via = "serial" }"#, "shell_refused", "over serial"),
    ] {
        let (ran, verdict) = computer.test(actions);
        assert_eq!(verdict["cause"], cause, "{actions}: {ran}");
        let summary = verdict["summary"].as_str().unwrap();
        assert!(summary.contains(words), "{actions}: {summary}");
    }
    // The lab's: another key, a host that is not known, one with another key, no server.
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(computer.sshd.file("other"))
        .status();
    assert!(made.unwrap().success());
    fs::write(computer.sshd.file("none"), "").unwrap();
    fs::write(computer.sshd.file("changed"), computer.sshd.known_line("user.pub")).unwrap();
    for (key, known, words) in [
        ("other", "known", "ssh-copy-id"),
        ("user", "none", "host_key = \"accept-new\""),
        ("user", "changed", "ssh-keygen -f"),
    ] {
        computer.rig(key, known, "");
        let (ran, verdict) = computer.test(r#"{ exec = ["true"] }"#);
        ran.says(75, &[]);
        assert_eq!(verdict["cause"], "shell_refused", "{key} {known}: {ran}");
        let summary = verdict["summary"].as_str().unwrap();
        assert!(summary.contains(words), "{key} {known}: {summary}");
    }
}

#[test]
fn a_connection_that_is_lost_is_not_the_commands_failure() {
    let computer = Computer::new();
    let connections = computer.sshd.connections();
    let mark = computer.workshop.path("mark");
    let begun = mark.clone();
    let cutter = std::thread::spawn(move || {
        crate::workshop::until("the command", || begun.exists().then_some(()));
        connections.cut();
    });
    let actions = format!(r#"{{ exec = ["sh", "-c", "touch {}; sleep 60"] }}"#, mark.display());
    let mut command =
        computer.workshop.jig(["--json", "test", "-b", "pc", "--max-recoveries", "0"]);
    let (ran, verdict) = test(&mut command, &computer.workshop, &actions);
    cutter.join().unwrap();
    ran.says(75, &[]);
    assert_eq!(verdict["cause"], "shell_unreachable", "{ran}");
    assert!(verdict["summary"].as_str().unwrap().contains("has not rebooted"), "{ran}");
}

#[test]
fn a_reboot_is_another_boot_and_not_a_port_that_answers() {
    let computer = Computer::new();
    computer.rig("user", "known", "reboot = [\"true\"]\n");
    let (ran, verdict) = computer.test(r#"{ reboot = true, timeout = "6s" }"#);
    assert_eq!(verdict["cause"], "reboot_failed", "{ran}");
    assert!(verdict["summary"].as_str().unwrap().contains("boot before"), "{ran}");
    computer.rig("user", "known", "reboot = [\"false\"]\n");
    let (_, verdict) = computer.test(r#"{ reboot = true }"#);
    assert!(verdict["summary"].as_str().unwrap().contains("refused to reboot"), "{verdict}");
}

/// Runs a plan on the emulated Linux board, booted.
fn on_linux(workshop: &Workshop, actions: &str) -> (Ran, Value) {
    let mut command = workshop.jig(["--json", "test", "-b", "arm64-virt", "--max-recoveries", "0"]);
    command.env("JIG_IMAGES", image_sets());
    let actions = format!("{{ power = \"cycle\" }}, {{ boot = true }},\n{actions}");
    let (ran, verdict) = test(&mut command, workshop, &actions);
    assert!(workshop.processes().is_empty(), "{:?}", workshop.processes());
    (ran, verdict)
}

#[test]
fn linux_is_commanded_both_ways_and_rebooted() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let sent: Vec<u8> = (0..=255).rev().cycle().take(5_000).collect();
    workshop.write("tests.bin", &sent);
    let (ran, verdict) = on_linux(
        &workshop,
        r#"
        { exec = ["uname", "-s"] },
        { expect = '^Linux$', console = "shell" },
        { upload = { from = "tests.bin", to = "/tmp/ssh.bin" } },
        { upload = { from = "tests.bin", to = "/tmp/serial.bin" }, via = "serial" },
        { exec = ["cmp", "/tmp/ssh.bin", "/tmp/serial.bin"], via = "serial" },
        { exec = ["sh", "-c", "echo \"it's $1\"; exit 3", "x", "a  b\t$HOME"], exit_code = 3, via = "serial" },
        { download = { from = "/tmp/ssh.bin", to = "by-serial.bin" }, via = "serial" },
        { download = { from = "/tmp/serial.bin", to = "by-ssh.bin" } },
        { reboot = true },
        { exec = ["test", "-e", "/tmp/ssh.bin"], exit_code = 1, timeout = "60s" },
        { reboot = true, via = "serial" },
        { exec = ["true"], via = "serial" },
        "#,
    );
    ran.says(0, &[]);
    assert_eq!(verdict["cause"], "expectations_met", "{ran}");
    for name in ["by-serial.bin", "by-ssh.bin"] {
        assert_eq!(fs::read(&artefacts(&workshop, name)[0]).unwrap(), sent, "{name}");
    }
    let console = String::from_utf8_lossy(&of_run(&workshop, "consoles/1/uart0.raw")).into_owned();
    assert!(console.contains("it's a  b\t$HOME"), "{console}");
}

#[test]
fn what_linux_does_to_itself_is_its_own_failure() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write("big.bin", vec![7; 6 << 20]);
    for (actions, cause, words) in [
        // A small file system that is full.
        (
            r#"
            { exec = ["sh", "-c", "mkdir /tmp/s && mount -t tmpfs -o size=1M x /tmp/s"] },
            { upload = { from = "big.bin", to = "/tmp/s/big.bin" } },
            "#,
            "transfer_failed",
            "No space left on device",
        ),
        // A reboot in the middle of a command.
        (r#"{ exec = ["sh", "-c", "reboot -f; sleep 60"] },"#, "unexpected_reset", "reset"),
    ] {
        let (ran, verdict) = on_linux(&workshop, actions);
        ran.says(1, &[]);
        assert_eq!(verdict["cause"], cause, "{actions}: {ran}");
        let summary = verdict["summary"].as_str().unwrap();
        assert!(summary.contains(words), "{actions}: {summary}");
    }
}

#[test]
fn exec_and_cp_are_as_if_they_ran_there() {
    let computer = Computer::new();
    let workshop = &computer.workshop;
    let script = "printf 'a\\033[31mb\\n'; echo err >&2; exit 42";
    let ran = workshop.run(["exec", "-b", "pc", "--", "sh", "-c", script]);
    assert_eq!((ran.code(), ran.out().as_str()), (42, "a\u{1b}[31mb\nerr\n"), "{ran}");
    let ran = workshop.run(["--json", "exec", "-b", "pc", "--", "sh", "-c", script]);
    let told = ran.json().unwrap();
    assert_eq!((ran.code(), &told["status"]), (42, &Value::from(42)), "{ran}");
    assert_eq!(told["output"], "a\u{1b}[31mb\nerr\n");
    // What the output says decides nothing here.
    let ran = workshop.run(["exec", "-b", "pc", "--", "printf", "1..1\nnot ok 1 - x\n"]);
    ran.says(0, &["in the output"]);

    use std::os::unix::fs::PermissionsExt as _;
    let file = workshop.write("tool", "#!/bin/sh\necho tool\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let there = workshop.path("there");
    fs::create_dir(&there).unwrap();
    let to = format!(":{}/", there.display());
    workshop.run(["cp", "-b", "pc", "tool", &to]).says(0, &["sha256"]);
    let tool = there.join("tool");
    assert_eq!(tool.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let from = format!(":{}", tool.display());
    let ran = workshop.run(["--json", "cp", "-b", "pc", &from, "back"]);
    ran.says(0, &[]);
    assert_eq!(ran.json().unwrap()["bytes"], 20);
    assert_eq!(fs::read(workshop.path("back")).unwrap(), fs::read(&file).unwrap());

    workshop.run(["cp", "-b", "pc", "tool", "there"]).says(2, &[":PATH"]);
    workshop.run(["cp", "-b", "pc", ":/nonexistent/x", "."]).says(1, &["/nonexistent/x"]);
    fs::write(computer.sshd.file("none"), "").unwrap();
    computer.rig("user", "none", "");
    let ran = workshop.run(["exec", "-b", "pc", "--", "true"]);
    ran.says(75, &["accept-new"]);
    assert_eq!(ran.out(), "");
    // A board without a shell: what to add.
    let ran = Workshop::new().run(["exec", "-b", "microbit", "--", "true"]);
    ran.says(3, &["[place.shell]"]);
}

#[test]
fn an_emulated_board_is_booted_for_a_command() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    for (via, script) in [("ssh", "echo $((40+2)); exit 5"), ("serial", "echo $((40+2)); exit 5")] {
        let mut command = workshop.jig(["exec", "-b", "arm64-virt", "--via", via, "--"]);
        command.args(["sh", "-c", script]).env("JIG_IMAGES", image_sets());
        let ran = ran(&mut command).unwrap();
        assert_eq!((ran.code(), ran.out().trim()), (5, "42"), "{ran}");
    }
    assert!(workshop.processes().is_empty(), "{:?}", workshop.processes());
}

/// Holds the emulated board; returns its holder, whose events may not be lost.
fn held(workshop: &Workshop) -> (Started, impl Sized) {
    let mut hold = workshop.jig(["--json", "hold", "-b", "arm64-virt"]);
    hold.env("JIG_IMAGES", image_sets()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut holder = Started::of(&mut hold);
    let (line, events) = first_line(&mut holder);
    assert!(line.contains("arm64-virt"), "{line}: {}", holder.finish());
    (holder, events)
}

#[test]
fn commands_reach_the_board_that_is_held() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let (holder, _events) = held(&workshop);
    let exec = |via: &str, script: &str| {
        let exec = ["exec", "-b", "arm64-virt", "--via", via, "--timeout", "240s", "--"];
        workshop.run([&exec[..], &["sh", "-c", script]].concat())
    };
    // Each way sees what the other one has done, so both are at one board.
    let ran = exec("ssh", "echo one >/tmp/mark; echo two; exit 5");
    assert_eq!((ran.code(), ran.out().trim()), (5, "two"), "{ran}");
    let ran = exec("serial", "cat /tmp/mark; exit 6");
    assert_eq!((ran.code(), ran.out().trim()), (6, "one"), "{ran}");
    workshop.write("file", "content");
    workshop.run(["cp", "-b", "arm64-virt", "file", ":/tmp/"]).says(0, &["sha256"]);
    workshop.run(["cp", "-b", "arm64-virt", "--via", "serial", ":/tmp/file", "back"]).says(0, &[]);
    assert_eq!(fs::read_to_string(workshop.path("back")).unwrap(), "content");
    // A terminal that sends keeps the serial console, and no other way.
    let mut terminal = Session::begin(&mut workshop.jig(["console", "-b", "arm64-virt"]));
    terminal.send(b"echo $((6*7))\n");
    terminal.expect("42");
    exec("serial", "true").says(75, &["is held", "--via ssh"]);
    exec("ssh", "true").says(0, &[]);
    terminal.hang_up().says(0, &[]);
    exec("serial", "true").says(0, &[]);
    // A reset is one of the same board, whose server is waited for.
    workshop.run(["reset", "-b", "arm64-virt"]).says(0, &[]);
    exec("ssh", "test ! -e /tmp/mark").says(0, &[]);
    // No board is booted in place of one that is off.
    let emulators = workshop.emulators();
    let [emulator] = &emulators[..] else { panic!("one board: {emulators:?}") };
    nix::sys::signal::kill(*emulator, Signal::SIGKILL).unwrap();
    until("the board is off", || {
        let ran = exec("ssh", "true");
        (ran.code() == 1 && ran.err().contains("jig reset -b arm64-virt")).then_some(())
    });
    assert!(workshop.emulators().is_empty());
    holder.signal(Signal::SIGINT);
    holder.finish().says(0, &[]);
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn a_command_that_nobody_waits_for_ends_on_the_target() {
    let computer = Computer::new();
    let workshop = &computer.workshop;
    // The caller gives up, and the caller is killed.
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let file = workshop.path(signal.as_str());
        let script = format!("echo $$ >{}; sleep 600", file.display());
        let mut exec = workshop.jig(["exec", "-b", "pc", "--", "sh", "-c", &script]);
        let caller = Started::of(exec.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let pid = until("the command runs", || {
            let text = fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'))?;
            Some(text.trim().to_owned())
        });
        caller.signal(signal);
        assert_ne!(caller.finish().code(), 0);
        let process = PathBuf::from(format!("/proc/{pid}/comm"));
        until("the command ends", || (!process.exists()).then_some(()));
    }
}

/// The password of the user that a test gives the emulated board; its hash by `openssl passwd -1`.
const PASSWORD: &str = "corr3ct h0rse";
const HASH: &str = "$1$jigtest$FaznteZT5fx4ysn4o.OUW/";

#[test]
fn a_serial_console_is_logged_in_at_and_a_wrong_password_is_the_rigs() {
    let _slot = Slot::take();
    let workshop = Workshop::new();
    workshop.write(
        "rig.toml",
        "version = 1\n[[place]]\nname = \"pi\"\nboard = \"arm64-virt\"\nemulator = {}\n\
         [place.shell]\nlogin = { user = \"tester\", password = { env = \"PI_PASSWORD\" } }\n",
    );
    // A console that asks for the user again and again, as getty(8) does.
    let begin = format!(
        r#"
        {{ power = "cycle" }}, {{ boot = true }},
        {{ exec = ["sh", "-c", "echo 'tester:{HASH}:1000:1000:tester:/tmp:/bin/sh' >>/etc/passwd"], via = "ssh" }},
        {{ send = "exec sh -c 'while :; do login -p; done'\n" }},
        {{ expect = 'login: ' }},
        "#
    );
    let logged_in = |password: Option<&str>, actions: &str| {
        let args = ["--json", "test", "-b", "pi", "--max-recoveries", "0"];
        let mut command = workshop.jig(args);
        command.env("JIG_IMAGES", image_sets());
        command.envs(password.map(|password| ("PI_PASSWORD", password)));
        test(&mut command, &workshop, &format!("{begin}\n{actions}"))
    };
    let (told, verdict) = logged_in(
        Some(PASSWORD),
        r#"
        { exec = ["id", "-un"], via = "serial" },
        { expect = '^tester\r?\n' },
        { exec = ["sh", "-c", "exit 7"], exit_code = 7, via = "serial" },
        "#,
    );
    told.says(0, &[]);
    assert_eq!(verdict["cause"], "expectations_met", "{told}");
    // The password is nowhere in the run.
    let run = workshop.run_dirs().pop().unwrap();
    let found = Command::new("grep").args(["-rlaF", PASSWORD]).arg(&run).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "", "files that hold the password");
    let (told, verdict) = logged_in(Some("wrong"), r#"{ exec = ["true"], via = "serial" },"#);
    told.says(75, &[]);
    assert_eq!(verdict["cause"], "shell_refused", "{told}");
    let summary = verdict["summary"].as_str().unwrap();
    assert!(summary.contains("login of tester") && summary.contains("[shell]"), "{summary}");
    let (told, verdict) = logged_in(None, r#"{ exec = ["true"], via = "serial" },"#);
    told.says(75, &[]);
    assert!(verdict["summary"].as_str().unwrap().contains("PI_PASSWORD"), "{verdict}");
    workshop.nothing_lives(DEADLINE).unwrap();
}

#[test]
fn boards_and_doctor_tell_how_a_shell_is_reached() {
    let computer = Computer::new();
    let workshop = &computer.workshop;
    let listed = workshop.run(["boards"]);
    listed.says(0, &[]);
    assert!(listed.out().contains("shell by ssh "), "{listed}");
    let json = workshop.run(["--json", "boards"]).json().unwrap();
    let shell = json["places"][0]["shell"].as_str().unwrap();
    assert!(shell.ends_with(&format!("127.0.0.1:{}", computer.sshd.port())), "{json}");
    let answers = workshop.run(["doctor", "-b", "pc"]);
    assert!(answers.says(0, &[]).out().contains("it answers over ssh"), "{answers}");
    fs::write(computer.sshd.file("none"), "").unwrap();
    computer.rig("user", "none", "");
    let refused = workshop.run(["doctor", "-b", "pc"]);
    for words in ["accept-new", "jig exec -b pc"] {
        assert!(refused.says(75, &[]).out().contains(words), "{refused}");
    }
}
