//! A disk that is really full: a small file system in a mount namespace of its own, which takes
//! no root where users may make such namespaces.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jig_model::Cause;
use jig_rig::store::{RunRecord, RunState};
use serde_json::Value;

use crate::manifest::elf;
use crate::workshop::{DEADLINE, Slot, Started, Workshop, tied, until};

pub(crate) const NAMESPACES: [&str; 3] = ["--user", "--map-root-user", "--mount"];

/// Mounts a disk of 4 MiB on the first argument, runs the rest, and copies what is on the disk
/// to the second: the disk goes with its last process.
const SHELL: &str = r#"
disk=$1 copy=$2; shift 2
mount -t tmpfs -o size=4m none "$disk" || exit 99
"$@"; code=$?
cp -a "$disk/." "$copy"
exit $code
"#;

/// Tells whether this user may mount in a namespace; says so if not.
pub(crate) fn may_mount() -> bool {
    let mut trial = Command::new("unshare");
    trial.args(NAMESPACES).args(["mount", "-t", "tmpfs", "none", "/mnt"]);
    let may = trial.stdin(Stdio::null()).output();
    let why = match may {
        Ok(ended) if ended.status.success() => return true,
        Ok(ended) => String::from_utf8_lossy(&ended.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("no disk was filled: no mount namespace can be made here: {}", why.trim());
    false
}

/// Runs a call of the program with its runs on a small disk of its own; what it says to people
/// goes into a file.
fn on_small_disk(workshop: &Workshop, copy: &Path, jig: &Command, said: &Path) -> Started {
    let runs = workshop.runs();
    fs::create_dir_all(&runs).unwrap();
    fs::create_dir_all(copy).unwrap();
    let mut command = Command::new("unshare");
    // Within the namespaces: a process that enters them is not killed with its parent any more.
    let shell = tied("sh");
    command.args(NAMESPACES).arg(shell.get_program()).args(shell.get_args());
    command.args(["-c", SHELL, "sh"]).arg(runs).arg(copy);
    command.arg(jig.get_program()).args(jig.get_args()).env_clear();
    command.envs(jig.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(workshop.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(said).unwrap());
    Started::of(&mut command)
}

/// Fills the disk that a folder lies on, to the last page; returns the file that does it.
pub(crate) fn fill(folder: &Path) -> PathBuf {
    let ballast = folder.join("ballast");
    let mut file = OpenOptions::new().create(true).append(true).open(&ballast).unwrap();
    // Pages and blocks that are free at the end are found by small writes.
    for size in [64 << 10, 4 << 10, 512] {
        let full = until("a full disk", || file.write_all(&vec![0; size]).err());
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }
    ballast
}

/// Lets an attempt begin, and waits for a file.
const GATE: &str = "#!/bin/sh\n: > reached\nuntil [ -e go ]; do sleep 0.02; done\n";

const PLAN: &str = r#"version = 1
name = "gate"
goal = "the report is complete"
timeout = "300s"
[[stage]]
name = "test"
goal = "every case passes"
[[stage.step]]
name = "run"
goal = "the report is complete"
actions = [
  { deploy = true },
  { host_command = ["./gate"], timeout = "300s" },
  { power = "cycle" },
  { wait_for_results = true, timeout = "60s" },
]
"#;

#[test]
fn a_disk_that_is_full_for_a_while_spoils_nothing_for_good() {
    if !may_mount() {
        return;
    }
    let _slot = Slot::take();
    let workshop = Workshop::new();
    let plan = workshop.write("plan.toml", PLAN);
    let gate = workshop.write("gate", GATE);
    fs::set_permissions(gate, fs::Permissions::from_mode(0o755)).unwrap();
    let (plan, image) = (plan.display().to_string(), elf("mps2-an385", "unity-pass"));
    let args = ["--json", "-v", "test", "-b", "mps2-an385", &plan, "--image", &image];
    let (copy, said) = (workshop.path("copy"), workshop.path("said"));
    let mut run = on_small_disk(&workshop, &copy, &workshop.jig(args), &said);
    until("an attempt under way", || workshop.path("reached").exists().then_some(()));
    // Seen from outside, the disk is below the root of the process that has mounted it.
    let root = PathBuf::from(format!("/proc/{}/root", run.child().id()));
    let ballast = fill(&root.join(workshop.runs().strip_prefix("/").unwrap()));
    // The console finds no room for its first byte.
    workshop.write("go", "");
    let says = |words: &str| fs::read_to_string(&said).unwrap().contains(words).then_some(());
    until("a wait for room", || says("waiting for room"));
    fs::remove_file(ballast).unwrap();
    let ran = run.finish();
    let told = fs::read_to_string(&said).unwrap();
    assert_eq!(ran.code(), 0, "{ran}{told}");
    assert!(says("storage_failed: the rig is recovered").is_some(), "{told}");
    workshop.nothing_lives(DEADLINE).unwrap();
    whole(&copy);
}

/// Checks that the only run is whole: what could not be written is missing, and nothing torn.
fn whole(runs: &Path) {
    let dirs: Vec<_> = fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [run] = &dirs[..] else { panic!("{dirs:?}") };
    let record = RunRecord::read(&run.join("record.json")).unwrap();
    assert_eq!((record.state, record.exit_code), (RunState::Ended, Some(0)));
    let made = record.attempts.iter().map(|made| (made.replaced, made.verdict.cause));
    let tests: Vec<_> = made.collect();
    assert_eq!(tests.first(), Some(&(true, Cause::StorageFailed)), "{tests:?}");
    assert_eq!(tests.last(), Some(&(false, Cause::Passed)), "{tests:?}");
    for lines in ["events.jsonl", "children.jsonl"] {
        let text = fs::read_to_string(run.join(lines)).unwrap();
        assert!(text.ends_with('\n'), "{lines} is torn");
        for line in text.lines() {
            let parsed: Result<Value, _> = serde_json::from_str(line);
            assert!(parsed.is_ok(), "{lines}: {line:?}");
        }
    }
}
