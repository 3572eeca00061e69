//! Access rules, identities in records and the audit log, with callers who come by keys.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::manifest::elf;
use crate::sshd::Sshd;
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
[[place]]
name = \"secret-1\"
board = \"microbit\"
emulator = {}
[[access]]
identity = [\"ci\"]
may = [\"use\"]
places = [\"tag=radio\"]
[[access]]
identity = [\"ci\"]
may = [\"see\"]
places = [\"bench-2\"]
[[access]]
identity = [\"lead\"]
may = [\"administer\"]
";

/// A rig with rules, its own user, and those who come over SSH under a name.
struct RuledRig(Workshop);

impl RuledRig {
    fn new() -> Self {
        let rig = Workshop::new();
        rig.write("rig.toml", RIG);
        Self(rig)
    }

    /// Returns the command that serves a caller under a name, as an authorised key is limited to it.
    fn server(&self, name: &str) -> PathBuf {
        let jig = self.0.jig::<&str>([]);
        let vars = jig.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let vars = vars.map(|(name, value)| format!("export {name:?}={value:?}\n"));
        let vars = vars.collect::<String>();
        let args: Vec<String> = jig.get_args().map(|arg| format!("{arg:?}")).collect();
        let (program, args) = (jig.get_program(), args.join(" "));
        let rig = self.0.path("rig.toml");
        let script = format!(
            "#!/bin/sh\n{vars}unset JIG_LEASE\nexport JIG_RIG={rig:?}\nexec {program:?} {args} rpc --stdio \
             --as {name}\n"
        );
        let file = self.0.write(&format!("as-{name}"), script);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn user(&self, args: &[&str]) -> Ran {
        ran(&mut self.user_command(args)).unwrap()
    }

    fn user_command(&self, args: &[&str]) -> Command {
        let mut command = self.0.jig(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("JIG_RIG", self.0.path("rig.toml"));
        command
    }

    fn key_command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = self.0.jig(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("JIG_RIG", "ssh://lab").env("JIG_SSH_COMMAND", self.server(name));
        command
    }

    fn key(&self, name: &str, args: &[&str]) -> Ran {
        ran(&mut self.key_command(name, args)).unwrap()
    }

    /// Returns the lines of the audit log.
    fn audit(&self) -> Vec<Value> {
        let told = self.user(&["audit", "--json"]);
        let lines = told.says(0, &[]).out();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns who asked for what, where and with which result.
    fn asked(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let line = |line: &Value| {
            let entry = &line["entry"];
            let keys = ["command", "place", "decision"].map(|key| text(&entry[key]));
            format!("{} {}", text(&entry["identity"]["name"]), keys.join(" "))
        };
        self.audit().iter().map(line).collect()
    }
}

/// Leaves out the name of a place, in which two messages differ.
fn without(text: &str, place: &str) -> String {
    text.replace(place, "PLACE")
}

#[test]
fn a_key_does_what_the_rules_give_it_and_nothing_else() {
    let _slot = Slot::take();
    let rig = RuledRig::new();
    let image = elf("microbit", "unity-pass");
    let report = rig.0.path("report.xml").display().to_string();
    let junit = format!("junit={report}");
    rig.key("ci", &["run", "-b", "bench-1", &image, "--report", &junit]).says(0, &["PASS"]);
    for (args, words) in [
        (&["flash", "-b", "bench-1", &image][..], "no right to flash place bench-1"),
        (&["erase", "-b", "bench-1"], "no right to flash place bench-1"),
        (&["power", "-b", "bench-1", "cycle"], "no right to power place bench-1"),
        (&["reset", "-b", "bench-2"], "no right to use place bench-2"),
        (
            &["run", "-b", "bench-1", &image, "--inject", "kill-emulator"],
            "no right to administer place bench-1",
        ),
        (&["lease", "acquire", "-b", "bench-2"], "no right to use place bench-2"),
    ] {
        rig.key("ci", args).says(2, &["ci has", words, "rig.toml:"]);
    }
    // What a key may see it may ask for.
    rig.key("ci", &["recover", "-b", "bench-2", "--dry-run"]).says(0, &[]);
    // A place that it may not see is as one that is not there.
    let hidden = rig.key("ci", &["reset", "-b", "secret-1"]);
    let absent = rig.key("ci", &["reset", "-b", "secret-2"]);
    hidden.says(2, &["there is no place"]);
    absent.says(2, &["there is no place"]);
    assert_eq!(without(&hidden.err(), "secret-1"), without(&absent.err(), "secret-2"));
    rig.key("bot", &["reset", "-b", "bench-1"]).says(2, &["there is no place"]);
    let listed = |name: &str| {
        let list = rig.key(name, &["lease", "ls", "--json"]).says(0, &[]).json().unwrap();
        let places = list["places"].as_array().unwrap().iter();
        places.map(|at| at["place"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed("ci"), "bench-1 bench-2");
    assert_eq!(listed("bot"), "");
    assert_eq!(listed("lead"), "bench-1 bench-2 secret-1");
    // A lease is given only where the key may use the place.
    rig.key("ci", &["lease", "acquire", "-b", "kind=emulated"]).says(0, &["bench-1 is yours"]);
    rig.key("ci", &["lease", "acquire", "-b", "kind=emulated"]).says(75, &["no place"]);
    rig.key("lead", &["lease", "steal", "bench-1", "--why", "a demo"]).says(0, &["a demo"]);
    rig.key("lead", &["lease", "acquire", "-b", "bench-1"]).says(0, &[]);
    rig.key("ci", &["lease", "steal", "bench-1", "--why", "mine"]).says(2, &["to administer"]);
    rig.key("ci", &["lease", "steal", "secret-1", "--why", "mine"]).says(2, &["is not leased"]);
    rig.key("lead", &["lease", "release", "bench-1"]).says(0, &[]);
    // A user of the rig's host whom no rule names has every right.
    rig.user(&["flash", "-b", "secret-1", &image]).says(0, &[]);
    // Who asked stands in the record, in both reports and in the log.
    let runs = rig.0.run_dirs();
    let record = fs::read(runs[0].join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["identity"]["name"], "ci", "{record}");
    let junit = fs::read_to_string(report).unwrap();
    assert!(junit.contains("name=\"jig.identity\" value=\"ci@"), "{junit}");
    let log = rig.audit();
    let began = log.iter().find(|line| line["entry"]["decision"] == "began").unwrap();
    assert_eq!(began["entry"]["run"], record["id"]);
    let of = &log[usize::try_from(began["entry"]["of"].as_u64().unwrap()).unwrap() - 1]["entry"];
    assert_eq!((&of["command"], &of["decision"]), (&json!("run"), &json!("accepted")));
    assert!(of["why"].as_str().unwrap().ends_with("rig.toml:15"), "{of}");
    let asked = rig.asked();
    for line in [
        "ci flash bench-1 refused",
        "ci power-cycle bench-1 refused",
        "ci reset secret-1 refused",
        "bot reset bench-1 refused",
        "ci lease-ask - refused",
        "ci lease-ask - accepted",
        "lead lease-steal bench-1 accepted",
        "ci lease-steal bench-1 refused",
    ] {
        assert!(asked.iter().any(|asked| asked == line), "{line}: {asked:#?}");
    }
    assert!(asked.iter().any(|line| line.starts_with("unix:") && line.contains("flash secret-1")));
    rig.user(&["audit", "verify"]).says(0, &[]);
}

#[test]
fn a_decision_is_explained_without_being_tried() {
    let rig = RuledRig::new();
    let check = |args: &[&str]| rig.user(&[&["access", "check"], args].concat());
    check(&["--as", "ci", "-b", "bench-1", "run"]).says(0, &[]);
    let told = check(&["--as", "ci", "-b", "bench-1", "erase"]);
    assert!(told.says(2, &[]).out().contains("rig.toml:15"), "{told}");
    check(&["--as", "ci", "-b", "bench-1", "levitate"]).says(2, &["levitate"]);
    let told = check(&["--as", "bot", "--json"]).says(2, &[]).json().unwrap();
    assert_eq!(told["decisions"].as_array().unwrap().len(), 15);
    check(&[]).says(0, &[]);
    // A key cannot take the name of a user of the host.
    let rpc = rig.user(&["rpc", "--stdio", "--as", "unix:root"]);
    rpc.says(2, &["names no identity"]);
}

#[test]
fn jobs_and_runs_of_others_are_kept_from_a_key() {
    let _slot = Slot::take();
    let rig = RuledRig::new();
    let image = elf("microbit", "hang-in-test");
    let args = ["run", "-b", "bench-2", "--timeout", "120s", "--until", "never", &image];
    let run = Started::of(&mut rig.key_command("lead", &args));
    let job = until("a job", || {
        let folder = fs::read_dir(rig.0.path("../home/STATE/jig/jobs")).ok()?;
        let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| !name.starts_with('.')).last()
    });
    let dir = until("a run", || rig.0.run_dirs().pop());
    let id = dir.file_name().unwrap().to_str().unwrap().to_owned();
    let call = |name: &str, method: &str, params: Value| {
        let hello = json!({"protocol": 1, "program": "x", "by": "root@rig"});
        let line = |id: u8, method: &str, params: &Value| {
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
        };
        let mut command = Command::new(rig.server(name));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Started::of(&mut command);
        let mut stdin = server.child().stdin.take().unwrap();
        let lines = [line(1, "hello", &hello), line(2, method, &params)].join("\n");
        std::io::Write::write_all(&mut stdin, format!("{lines}\n").as_bytes()).unwrap();
        drop(stdin);
        let answers = server.finish().out();
        let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answer = answers.into_iter().find(|answer| answer["id"] == 2);
        answer.unwrap_or_else(|| panic!("{method} was not answered"))
    };
    let refused = |name: &str, method: &str, params: Value| {
        let answer = call(name, method, params);
        answer["error"]["message"].as_str().map(str::to_owned)
    };
    // Place bench-2 may be seen by `ci`, so its runs may be read; its commands may not be touched.
    assert_eq!(refused("ci", "run.files", json!({"run": id})), None);
    let cancelled = refused("ci", "job.cancel", json!({"job": job})).unwrap();
    assert!(cancelled.contains("no right to administer place bench-2"), "{cancelled}");
    let input = json!({"job": job, "data": "", "end": false});
    assert!(refused("ci", "job.input", input).unwrap().contains("no right to administer"));
    for (method, params) in [
        ("run.files", json!({"run": id})),
        ("run.read", json!({"run": id, "path": "record.json", "offset": 0})),
        ("run.follow", json!({"run": id, "path": "record.json", "offset": 0})),
        ("job.follow", json!({"job": job, "offset": 0})),
        ("job.read", json!({"job": job, "number": 0, "offset": 0})),
        ("rig.place", json!({"place": "bench-1"})),
        ("file.offer", json!({"sha256": "0".repeat(64), "size": 1, "name": "a"})),
        ("rig.not_known_yet", json!({})),
    ] {
        assert!(refused("bot", method, params).is_some(), "{method}");
    }
    assert_eq!(call("bot", "job.list", json!({}))["result"], json!([]));
    assert_eq!(call("ci", "job.list", json!({}))["result"][0]["by"], "lead");
    run.signal(Signal::SIGINT);
    run.finish().says(130, &[]);
}

#[test]
fn the_log_shows_where_it_was_tampered_with() {
    let rig = RuledRig::new();
    for _ in 0..3 {
        rig.key("bot", &["reset", "-b", "bench-1"]).says(2, &[]);
    }
    let whole = rig.user(&["audit", "verify", "--json"]).says(0, &[]).json().unwrap();
    let head = whole["last"][1].as_str().unwrap().to_owned();
    rig.user(&["audit", "verify", "--contains", &head]).says(0, &[]);
    let log = rig.0.path("../home/STATE/jig/audit/audit.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"refused\"", "\"accepted\"", 2)).unwrap();
    rig.user(&["audit", "verify"]).says(75, &["audit.jsonl:2", "changed"]);
    // A log that was cut off is a whole chain; a hash that was noted shows it.
    let cut: String = text.split_inclusive('\n').take(2).collect();
    fs::write(&log, cut).unwrap();
    rig.user(&["audit", "verify"]).says(0, &[]);
    rig.user(&["audit", "verify", "--contains", &head]).says(75, &["no line with the hash"]);
}

#[test]
fn a_log_that_cannot_be_written_stops_a_key_and_warns_a_user_of_the_host() {
    let _slot = Slot::take();
    let rig = RuledRig::new();
    let image = elf("microbit", "unity-pass");
    rig.key("bot", &["reset", "-b", "bench-1"]).says(2, &[]);
    let folder = rig.0.path("../home/STATE/jig/audit");
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "a file").unwrap();
    rig.key("ci", &["run", "-b", "bench-1", &image]).says(75, &["audit log"]);
    rig.key("lead", &["lease", "acquire", "-b", "bench-1"]).says(75, &["audit log"]);
    rig.user(&["run", "-b", "bench-1", &image]).says(0, &["PASS", "the audit log lacks a line"]);
    assert_eq!(rig.0.run_dirs().len(), 1);
}

#[test]
fn a_key_that_sshd_limits_to_a_name_is_that_name() {
    let _slot = Slot::take();
    let (rig, desk) = (RuledRig::new(), Workshop::new());
    let sshd = Sshd::start_with(rig.0.path("ssh"), "127.0.0.1:0", "");
    let key = fs::read_to_string(sshd.file("user.pub")).unwrap();
    let line = format!("restrict,command=\"{}\" {key}", rig.server("ci").display());
    fs::write(sshd.file("user.pub"), line).unwrap();
    fs::create_dir_all(desk.path("../home/.ssh")).unwrap();
    std::os::unix::fs::symlink(sshd.file("user"), desk.path("../home/.ssh/id_ed25519")).unwrap();
    let image = elf("microbit", "unity-pass");
    let target = format!("ssh://127.0.0.1:{}", sshd.port());
    let call = |args: &[&str]| desk.run([&["--rig", &target, "--ssh-accept-new"], args].concat());
    call(&["run", "-b", "bench-1", &image]).says(0, &["PASS bench-1"]);
    call(&["flash", "-b", "bench-1", &image]).says(2, &["ci has no right to flash"]);
    call(&["reset", "-b", "secret-1"]).says(2, &["there is no place"]);
    // Another program, or another name, is not started: the server puts its own command there.
    let other = format!("{target}/bin/touch");
    desk.run(["--rig", &other, "flash", "-b", "bench-1", &image]).says(2, &["ci has no right"]);
    let record = fs::read(rig.0.run_dirs()[0].join("record.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["identity"]["name"], "ci", "{record}");
    assert_eq!(record["identity"]["from"], "127.0.0.1", "{record}");
    assert!(rig.asked().iter().all(|line| line.starts_with("ci ")), "{:#?}", rig.asked());
}

#[test]
fn what_is_about_the_whole_rig_takes_the_right_to_all_of_it() {
    let rig = RuledRig::new();
    // Each sees what it may see, and is told what it may do.
    let seen = rig.key("ci", &["top", "--json"]).says(0, &[]).json().unwrap();
    let places = seen["places"].as_array().unwrap().iter().map(|at| at["place"].as_str().unwrap());
    assert_eq!(places.collect::<Vec<_>>(), ["bench-1", "bench-2"]);
    let own = rig.key("ci", &["access", "check", "--json"]).says(0, &[]).json().unwrap();
    assert_eq!(own["identity"], "ci");
    let may = |place: &str, right: &str| {
        let all = own["decisions"].as_array().unwrap();
        let found = all.iter().find(|at| at["place"] == place && at["right"] == right);
        found.map(|at| at["allowed"].as_bool().unwrap())
    };
    assert_eq!(may("bench-1", "use"), Some(true));
    assert_eq!(may("bench-2", "use"), Some(false));
    assert_eq!(may("secret-1", "see"), None, "a hidden place is not listed");
    rig.key("ci", &["access", "check", "-b", "secret-1"]).says(2, &["secret-1"]);
    rig.key("ci", &["access", "check", "--as", "ci", "-b", "bench-1", "run"]).says(0, &[]);
    rig.key("ci", &["access", "check", "-b", "bench-2", "run"]).says(2, &[]);
    rig.key("ci", &["profile", "show", "microbit"]).says(0, &[]);
    // What others did and may do, and what all runs are.
    for verb in [
        &["audit"][..],
        &["audit", "verify"],
        &["access", "check", "--as", "lead"],
        &["runs", "prune", "--keep-days", "1"],
    ] {
        let refused = rig.key("ci", verb);
        refused.says(2, &["ci has no right to administer all places"]);
        assert_eq!(refused.out(), "", "{refused}");
        rig.key("lead", verb).says(0, &[]);
    }
    let asked = rig.asked();
    let wanted = [
        "ci audit - refused",
        "ci audit - refused",
        "ci access-check - refused",
        "ci runs-prune - refused",
        "lead runs-prune - accepted",
    ];
    assert_eq!(asked, wanted);
}

#[test]
fn knowledge_tells_of_all_places_and_is_changed_by_who_administers_them() {
    let rig = RuledRig::new();
    let unit = rig.key("lead", &["kb", "add", "--title", "secret-1 needs a cold start"]);
    let unit = unit.says(0, &[]).out().trim().to_owned();
    rig.key("lead", &["kb", "verify", &unit]).says(0, &[]);
    // A unit may tell of a place that the key does not see.
    for verb in
        [&["kb", "search", "cold"][..], &["kb", "show", &unit], &["kb", "stats"], &["kb", "export"]]
    {
        let refused = rig.key("ci", verb);
        refused.says(2, &["ci has no right to see all places"]);
        assert!(!refused.out().contains("cold start"), "{refused}");
    }
    rig.key("ci", &["kb", "reject", &unit]).says(2, &["ci has no right to administer all places"]);
    assert!(rig.user(&["kb", "show", &unit]).says(0, &[]).out().contains("by lead"));
    let asked = rig.asked();
    for line in ["lead kb-add - accepted", "lead kb-verify - accepted", "ci kb-reject - refused"] {
        assert!(asked.iter().any(|asked| asked == line), "{line} in {asked:?}");
    }
}
