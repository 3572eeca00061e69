//! Leases between users of one rig: who is kept out, who waits, and what a lost lease does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{Ran, Slot, Started, Workshop, ran, until};

const RIG: &str = "version = 1
[[place]]
name = \"bench-1\"
board = \"microbit\"
tags = [\"radio\"]
emulator = {}
[[place]]
name = \"bench-2\"
board = \"microbit\"
emulator = {}
";

/// A rig, its own user, and one who comes over SSH as `ci`.
struct SharedRig(Workshop);

impl SharedRig {
    fn new() -> Self {
        let rig = Workshop::new();
        let file = rig.write("rig.toml", RIG);
        let jig = env!("CARGO_BIN_EXE_jig");
        let script = format!(
            "#!/bin/sh\nunset JIG_LEASE\nexport JIG_RIG={}\nexec {jig} rpc --stdio --as ci\n",
            file.display()
        );
        let ssh = rig.write("as-ci", script);
        fs::set_permissions(ssh, fs::Permissions::from_mode(0o755)).unwrap();
        Self(rig)
    }

    fn user(&self, args: &[&str]) -> Command {
        let mut command = self.0.jig(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("JIG_RIG", self.0.path("rig.toml"));
        command
    }

    fn ci(&self, args: &[&str]) -> Command {
        let mut command = self.0.jig(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("JIG_RIG", "ssh://lab").env("JIG_SSH_COMMAND", self.0.path("as-ci"));
        command
    }

    fn by_user(&self, args: &[&str]) -> Ran {
        ran(&mut self.user(args)).unwrap()
    }

    fn by_ci(&self, args: &[&str]) -> Ran {
        ran(&mut self.ci(args)).unwrap()
    }

    fn list(&self) -> Value {
        self.by_user(&["lease", "ls", "--json"]).says(0, &[]).json().unwrap()
    }

    /// Returns the owner of the lease of a place, by the number of the place.
    fn holder(&self, place: usize) -> Value {
        self.list()["places"][place]["lease"]["owner"].clone()
    }
}

#[test]
fn a_lease_keeps_other_users_out_until_it_ends() {
    let rig = SharedRig::new();
    let image = elf("microbit", "unity-pass");
    let lease = rig.by_ci(&["lease", "acquire", "-b", "tag=radio", "--comment", "nightly"]);
    let lease = lease.says(0, &["bench-1 is yours for 30 min"]).out().trim().to_owned();
    assert_eq!(rig.holder(0), "ci");
    let list = rig.by_user(&["lease", "ls"]);
    let list = list.says(0, &[]).out();
    assert!(list.contains("ci (nightly)") && list.contains(&lease), "{list}");
    // Verbs that do not wait say whose it is; those that only look are let in.
    for args in [
        &["reset", "-b", "bench-1"][..],
        &["flash", "-b", "bench-1", &image],
        &["lease", "acquire", "-b", "bench-1"],
    ] {
        rig.by_user(args).says(75, &["jig lease"]);
    }
    let flash = rig.by_user(&["flash", "-b", "bench-1", &image]);
    flash.says(75, &["place bench-1 is leased by \"ci\"", "nightly", "--wait 30m"]);
    rig.by_user(&["recover", "-b", "bench-1", "--dry-run"]).says(0, &[]);
    rig.by_user(&["run", "-b", "bench-2", &image]).says(0, &["PASS"]);
    rig.by_ci(&["run", "-b", "bench-1", &image]).says(0, &["PASS"]);
    rig.by_ci(&["run", "-b", "bench-2", "--lease", &lease, &image])
        .says(2, &["is for place bench-1"]);
    rig.by_user(&["lease", "release", "bench-1"]).says(2, &["you have no lease for place bench-1"]);
    rig.by_user(&["lease", "release", &lease]).says(2, &["belongs to \"ci\""]);
    rig.by_ci(&["lease", "extend", "bench-1", "--by", "5m"]).says(0, &["yours for 35 min"]);
    // Whoever takes it says why, and the old lease is refused from then on.
    let stolen = rig.by_user(&["lease", "steal", "bench-1", "--why", "the lab burns"]);
    stolen.says(0, &[&lease, "ended it: the lab burns"]);
    rig.by_ci(&["run", "-b", "bench-1", "--lease", &lease, &image])
        .says(75, &["has ended", "the lab burns"]);
    rig.by_user(&["flash", "-b", "bench-1", &image]).says(0, &[]);
    assert_eq!(rig.holder(0), Value::Null);
}

#[test]
fn a_run_waits_for_the_lease_of_another_user() {
    let _slot = Slot::take();
    let rig = SharedRig::new();
    let image = elf("microbit", "unity-pass");
    rig.by_ci(&["lease", "acquire", "-b", "bench-1"]).says(0, &[]);
    let run = Started::of(&mut rig.user(&["run", "-b", "bench-1", &image]));
    until("the run waits", || rig.list()["queue"].as_array().map(Vec::len).filter(|n| *n == 1));
    rig.by_ci(&["lease", "release", "bench-1"]).says(0, &["it was released"]);
    run.finish().says(0, &["waiting for place bench-1, in use by \"ci\"", "PASS"]);
    // Its own lease has ended with it.
    let list = rig.list();
    assert_eq!((&list["places"][0]["lease"], &list["queue"][0]), (&Value::Null, &Value::Null));
}

#[test]
fn a_shell_has_its_place_and_gives_it_back() {
    let rig = SharedRig::new();
    let jig = env!("CARGO_BIN_EXE_jig");
    let within = format!("echo $JIG_BOARD; {jig} lease ls --json; exit 7");
    for call in [SharedRig::user, SharedRig::ci] {
        let shell = ["shell", "-b", "bench-1", "--", "sh", "-c", &within];
        let shell = ran(&mut call(&rig, &shell)).unwrap();
        let out = shell.says(7, &[]).out();
        let (board, list) = out.split_once('\n').unwrap();
        let list: Value = serde_json::from_str(list).unwrap();
        assert_eq!(board, "bench-1");
        assert_eq!(list["places"][0]["lease"]["by_id"], true);
        assert_eq!(rig.holder(0), Value::Null);
    }
    // A signal ends it in order, too.
    let ready = rig.0.path("ready");
    let waits = format!("echo > {}; sleep 600", ready.display());
    let shell = Started::of(&mut rig.user(&["shell", "-b", "bench-1", "--", "sh", "-c", &waits]));
    until("the shell runs", || ready.exists().then_some(()));
    shell.signal(Signal::SIGTERM);
    assert_ne!(shell.finish().code(), 0);
    assert_eq!(rig.holder(0), Value::Null);
    rig.by_user(&["shell", "-b", "bench-1", "--", "no-such-program"])
        .says(2, &["there is no such program"]);
    assert_eq!(rig.holder(0), Value::Null);
}

#[test]
fn a_shell_goes_on_with_the_lease_that_its_user_has() {
    let rig = SharedRig::new();
    let jig = env!("CARGO_BIN_EXE_jig");
    let within = format!("echo $JIG_BOARD $JIG_LEASE; {jig} lease ls --json; exit 7");
    for (call, key) in
        [(SharedRig::user as fn(&SharedRig, &[&str]) -> Command, "unix:"), (SharedRig::ci, "ci")]
    {
        let asked = ran(&mut call(&rig, &["lease", "acquire", "-b", "bench-1", "--json"])).unwrap();
        let had = asked.says(0, &[]).json().unwrap()["id"].as_str().unwrap().to_owned();
        let shell = |need: &str| {
            let shell = ["shell", "-b", need, "--", "sh", "-c", &within];
            let shell = ran(&mut call(&rig, &shell)).unwrap();
            let out = shell.says(7, &[]).out();
            let (first, list) = out.split_once('\n').unwrap();
            (first.to_owned(), serde_json::from_str::<Value>(list).unwrap())
        };
        let (first, list) = shell("bench-1");
        assert_eq!(first, format!("bench-1 {had}"));
        assert_eq!(list["queue"], serde_json::json!([]), "{list}");
        // The user has it still.
        let owner = rig.holder(0);
        assert!(owner.as_str().unwrap().starts_with(key), "{owner}");
        // Where another place is free, that one is meant.
        let (first, list) = shell("board=microbit");
        assert!(first.starts_with("bench-2 ") && !first.contains(&had), "{first}");
        assert_eq!(list["places"][1]["lease"]["by_id"], true);
        assert_eq!(rig.holder(1), Value::Null);
        // One that is named is used wherever it fits; one that has ended is no right.
        let named = |need: &str, within: &str| {
            let mut shell =
                call(&rig, &["shell", "-b", need, "--lease", &had, "--", "sh", "-c", within]);
            ran(&mut shell).unwrap()
        };
        let out = named("board=microbit", "echo $JIG_LEASE").says(0, &[]).out();
        assert_eq!(out.trim(), had);
        let out = named("bench-2", "echo $JIG_LEASE").says(0, &[]).out();
        assert_ne!(out.trim(), had);
        ran(&mut call(&rig, &["lease", "release", &had])).unwrap().says(0, &[]);
        named("bench-1", "true").says(75, &["has ended", "leave --lease"]);
    }
    // One that other commands have to name is not taken for another terminal of the user.
    let by_id = ["lease", "acquire", "-b", "bench-1", "--by-id"];
    rig.by_user(&by_id).says(0, &[]);
    rig.by_user(&["shell", "-b", "bench-1", "--", "true"])
        .says(75, &["position 1", "jig lease ls"]);
    assert_eq!(rig.list()["queue"], serde_json::json!([]));
    rig.by_user(&["lease", "release", "bench-1"]).says(0, &[]);
    // It lasts as long as the shell, and the user has it behind that.
    rig.by_user(&["lease", "acquire", "-b", "bench-1", "--ttl", "20s"]).says(0, &[]);
    let until_of = || -> Option<jiff::Timestamp> {
        rig.list()["places"][0]["lease"]["state"]["until"].as_str()?.parse().ok()
    };
    let first = until_of().unwrap();
    let shell = Started::of(&mut rig.user(&["shell", "-b", "bench-1", "--", "sleep", "600"]));
    until("the lease ends later", || (until_of()? > first).then_some(()));
    shell.signal(Signal::SIGTERM);
    assert_ne!(shell.finish().code(), 0);
    assert!(until_of().is_some());
}

#[test]
fn a_command_is_stopped_when_its_lease_is_taken() {
    let _slot = Slot::take();
    let rig = SharedRig::new();
    let image = elf("microbit", "hang-in-test");
    rig.by_ci(&["lease", "acquire", "-b", "bench-1"]).says(0, &[]);
    let run = ["run", "-b", "bench-1", "--timeout", "120s", "--until", "never", &image];
    let run = Started::of(&mut rig.ci(&run));
    until("the run is under way", || {
        let lease = &rig.list()["places"][0]["lease"];
        (lease["state"]["in_use"] == true).then_some(())
    });
    rig.by_user(&["lease", "steal", "bench-1", "--why", "demo at noon"]).says(0, &[]);
    run.finish().says(130, &["so the command is stopped", "demo at noon"]);
    rig.0.nothing_lives(std::time::Duration::from_secs(10)).unwrap();
}

#[test]
fn processes_that_are_killed_in_the_queue_leave_a_rig_that_works() {
    let rig = SharedRig::new();
    for number in 0..24u64 {
        let place = if number % 2 == 0 { "bench-1" } else { "kind=emulated" };
        let acquire = ["lease", "acquire", "-b", place, "--wait", "20s", "--ttl", "1s"];
        let asks = Started::of(&mut rig.user(&acquire));
        // Between the start of the process and some time after its first question.
        std::thread::sleep(std::time::Duration::from_millis(number * 3));
        asks.signal(Signal::SIGKILL);
        drop(asks.finish());
        let places = rig.list()["places"].clone();
        assert_eq!(places.as_array().map(Vec::len), Some(2), "{places}");
    }
    // No process asks for those that were killed, so they leave the queue and give back what they got.
    rig.by_ci(&["lease", "acquire", "-b", "bench-1", "--wait", "120s"]).says(0, &[]);
}

/// Waits until no emulator of a rig is left.
fn nothing_runs(rig: &SharedRig) {
    until("the board's end", || rig.0.emulators().is_empty().then_some(()));
}

#[test]
fn the_board_of_a_lease_lives_as_long_as_the_lease() {
    let _slot = Slot::take();
    let rig = SharedRig::new();
    let image = elf("microbit", "shell");
    // By release, by its end, by theft; from this host and from elsewhere.
    let lease = rig.by_user(&["lease", "acquire", "-b", "bench-1", "--image", &image]);
    let lease = lease.says(0, &["its board is powered as long"]).out().trim().to_owned();
    assert_eq!(rig.0.emulators().len(), 1);
    rig.by_user(&["regs", "-b", "bench-1"]).says(0, &[]);
    rig.by_user(&["reset", "-b", "bench-1"]).says(0, &[]);
    rig.by_ci(&["regs", "-b", "bench-1"]).says(75, &["leased by"]);
    rig.by_user(&["lease", "extend", &lease]).says(0, &[]);
    rig.by_user(&["lease", "release", &lease]).says(0, &[]);
    nothing_runs(&rig);

    rig.by_ci(&["lease", "acquire", "-b", "bench-1", "--image", &image]).says(0, &[]);
    rig.by_ci(&["regs", "-b", "bench-1"]).says(0, &[]);
    rig.by_user(&["lease", "steal", "bench-1", "--why", "a test"]).says(0, &[]);
    nothing_runs(&rig);

    let args = ["lease", "acquire", "-b", "bench-1", "--ttl", "1s", "--image", &image];
    rig.by_user(&args).says(0, &[]);
    nothing_runs(&rig);
    assert_eq!(rig.holder(0), Value::Null, "the board keeps no lease from ending");
    // An image that cannot be put on the board leaves no lease behind.
    let bad = rig.0.write("bad.elf", "no image").display().to_string();
    let failed = rig.by_user(&["lease", "acquire", "-b", "bench-1", "--image", &bad]);
    assert!([2, 3].contains(&failed.code()), "{failed}");
    assert_eq!(rig.holder(0), Value::Null);
    nothing_runs(&rig);
}

#[test]
fn the_board_of_a_shell_lives_as_long_as_the_shell() {
    let _slot = Slot::take();
    let rig = SharedRig::new();
    let image = elf("microbit", "shell");
    let jig = env!("CARGO_BIN_EXE_jig");
    let within = format!("{jig} regs && {jig} reset && {jig} regs --json && exit 7");
    let args = ["shell", "-b", "bench-1", "--image", &image, "--", "sh", "-c", &within];
    let ran = rig.by_user(&args);
    ran.says(7, &[]);
    assert!(ran.out().contains("\"registers\""), "{ran}");
    nothing_runs(&rig);
    assert_eq!(rig.holder(0), Value::Null);
    // A stolen lease takes the board along.
    let args = ["shell", "-b", "bench-1", "--image", &image, "--", "sleep", "300"];
    let shell = Started::of(&mut rig.user(&args));
    until("the board", || (!rig.0.emulators().is_empty()).then_some(()));
    until("the shell", || {
        let all = rig.0.processes();
        let sleeps = fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let environ = fs::read(process.path().join("environ")).unwrap_or_default();
            let mark = rig.0.path("").to_string_lossy().into_owned();
            line == b"sleep\x00300\0" && String::from_utf8_lossy(&environ).contains(&mark)
        });
        (sleeps && !all.is_empty()).then_some(())
    });
    rig.by_ci(&["lease", "steal", "bench-1", "--why", "a test"]).says(0, &[]);
    nothing_runs(&rig);
    shell.signal(Signal::SIGTERM);
    shell.finish();
}
