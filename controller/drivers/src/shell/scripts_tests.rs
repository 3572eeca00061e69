//! The scripts for POSIX shells, run by `/bin/sh` as an SSH server runs them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Runs a line as an SSH server does.
fn run(line: &str, input: &[u8]) -> Output {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A script that refuses reads no input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn answer(output: &Output) -> ScriptAnswer {
    ScriptAnswer::read(&String::from_utf8_lossy(&output.stderr))
}

/// Runs a command; its input ends with it.
fn exec_sh(argv: &[&str]) -> Output {
    let (child, _input) = exec_begun(argv);
    child.wait_with_output().unwrap()
}

/// Starts a command, whose input has not ended.
fn exec_begun(argv: &[&str]) -> (Child, ChildStdin) {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(exec(ShellKind::Sh, &argv).unwrap()).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"not for the command").unwrap();
    (child, input)
}

/// Waits for a file that holds a number.
fn number_in(path: &Path) -> i32 {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let (true, Ok(number)) = (text.ends_with('\n'), text.trim().parse()) {
            return number;
        }
        assert!(Instant::now() < end, "{} has no number", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_command_that_nobody_waits_for_ends_with_all_that_it_has_started() {
    let dir = tempfile::tempdir().unwrap();
    let (parent, child) = (dir.path().join("parent"), dir.path().join("child"));
    // It ignores what it can.
    let script = "trap '' TERM HUP; echo $$ >\"$1\"; (sleep 600; :) & echo $! >\"$2\"; wait";
    let paths = [parent.to_str().unwrap(), child.to_str().unwrap()];
    let (mut begun, input) = exec_begun(&["sh", "-c", script, "jig", paths[0], paths[1]]);
    let pids = [number_in(&parent), number_in(&child)];
    let lives = |pid: i32| Path::new(&format!("/proc/{pid}/comm")).exists();
    assert!(pids.into_iter().all(lives), "{pids:?}");
    drop(input);
    begun.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while pids.into_iter().any(lives) {
        assert!(Instant::now() < end, "{pids:?} live on");
        std::thread::yield_now();
    }
    // What a command has left to go on goes on, if the command has ended by itself.
    let left = "sleep 600 >/dev/null 2>&1 & echo $! >\"$1\"";
    std::fs::remove_file(&child).unwrap();
    assert_eq!(answer(&exec_sh(&["sh", "-c", left, "jig", paths[1]])).status, Some(0));
    let daemon = number_in(&child);
    assert!(lives(daemon));
    let killed = Command::new("kill").arg(daemon.to_string()).status().unwrap();
    assert!(killed.success());
}

#[test]
fn a_command_tells_its_boot_and_its_status() {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (argv, status, output) in [
        (&["sh", "-c", "echo out; echo err >&2; exit 3"][..], 3, "out\nerr\n"),
        (&["true"], 0, ""),
        // A builtin that would end the script.
        (&["exit", "7"], 7, ""),
        // The command reads no input of the script.
        (&["cat"], 0, ""),
        (&["sh", "-c", "kill -9 $$"], 137, ""),
    ] {
        let ran = exec_sh(argv);
        let told = answer(&ran);
        assert_eq!(told.status, Some(status), "{argv:?} {ran:?}");
        assert_eq!(told.boot.as_deref(), Some(boot.trim()), "{argv:?}");
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(printed.starts_with(output), "{argv:?} {printed}");
    }
    assert_eq!(answer(&exec_sh(&["no-such-program-x"])).status, Some(127));
}

#[test]
fn a_file_is_replaced_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("it's a file");
    let path = file.to_str().unwrap();
    let line = upload(ShellKind::Sh, (path, "name"), 0o750).unwrap();
    let done = answer(&run(&line, b"new"));
    assert_eq!(done.sha256.as_deref().map(str::len), Some(64));
    assert_eq!(std::fs::read(&file).unwrap(), b"new");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o750);

    // Into a folder, by the file's own name.
    let line = upload(ShellKind::Sh, (dir.path().to_str().unwrap(), "name"), 0o644).unwrap();
    assert!(answer(&run(&line, b"x")).sha256.is_some());
    assert_eq!(std::fs::read(dir.path().join("name")).unwrap(), b"x");

    let line = upload(ShellKind::Sh, ("/nonexistent/file", "name"), 0o644).unwrap();
    let refused = run(&line, b"x");
    assert!(!refused.status.success() && answer(&refused).sha256.is_none());
    assert!(answer(&refused).last_line.contains("/nonexistent/file"), "{refused:?}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_full_target_is_told_apart() {
    // A device that is always full.
    let full = exec_sh(&["sh", "-c", "LC_ALL=C cat /proc/version >/dev/full"]);
    let said = String::from_utf8_lossy(&full.stdout).into_owned();
    assert!(ScriptAnswer::read(&said).has_no_room(1), "{said}");
    assert!(ScriptAnswer::default().has_no_room(112));
    assert!(!ScriptAnswer::read("cat: /x: Permission denied").has_no_room(1));
}

#[test]
fn a_file_comes_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("-n *");
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    std::fs::write(&file, &bytes).unwrap();
    let read = run(&download(ShellKind::Sh, file.to_str().unwrap()).unwrap(), b"");
    assert_eq!((read.stdout == bytes, answer(&read).status), (true, Some(0)));
    let missing = run(&download(ShellKind::Sh, "/nonexistent").unwrap(), b"");
    assert_ne!(answer(&missing).status, Some(0));
}

proptest! {
    #[test]
    fn any_answer_is_read(stderr in any::<String>()) {
        let _ = ScriptAnswer::read(&stderr);
    }
}
