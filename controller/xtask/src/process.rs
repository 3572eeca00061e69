//! Running other programs: argument lists only, never a shell line, never our standard input.
//! [`narrate`] is for those that may be silent for long.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::failure::TaskFailure;

/// Runs a command whose output the user sees.
pub fn run(command: &mut Command) -> Result<(), TaskFailure> {
    let status = command.stdin(Stdio::null()).status().map_err(start_failure(command))?;
    if status.success() { Ok(()) } else { Err(ended(command, status, String::new())) }
}

/// How long a program that is narrated may print nothing: less than the five seconds after which
/// people wonder whether it hangs.
const SILENCE: Duration = Duration::from_secs(4);

/// Runs a command whose output the user sees, and says every few seconds that it is still at work
/// when it prints nothing. `doing` is what it is called then.
///
/// # Errors
/// The command cannot be started, or fails.
pub fn narrate(command: &mut Command, doing: &str) -> Result<(), TaskFailure> {
    let start = Instant::now();
    let said = |line: Option<String>| match line {
        Some(line) => println!("{line}"),
        None => println!("  {doing}: still at work after {} s", start.elapsed().as_secs()),
    };
    follow(command, SILENCE, said)
}

/// Builds with cargo. On a terminal, cargo shows its own progress.
///
/// # Errors
/// Cargo cannot be started, or fails.
pub fn build(args: &[&str]) -> Result<(), TaskFailure> {
    let mut command = cargo(args);
    match std::io::stderr().is_terminal() {
        true => run(&mut command),
        false => narrate(&mut command, "cargo build"),
    }
}

/// Runs a command and hands on each line of its output, of both streams, and none after each
/// silence.
fn follow(
    command: &mut Command,
    silence: Duration,
    mut said: impl FnMut(Option<String>),
) -> Result<(), TaskFailure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(start_failure(command))?;
    let (sender, lines) = mpsc::channel();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let other = sender.clone();
        scope.spawn(move || hand_on(out, &sender));
        scope.spawn(move || hand_on(err, &other));
        loop {
            match lines.recv_timeout(silence) {
                Ok(line) => said(Some(line)),
                Err(RecvTimeoutError::Timeout) => said(None),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    let status = child.wait().map_err(start_failure(command))?;
    if status.success() { Ok(()) } else { Err(ended(command, status, String::new())) }
}

/// Sends the lines of a stream until it ends.
fn hand_on(stream: Option<impl Read>, lines: &Sender<String>) {
    let Some(stream) = stream else { return };
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if lines.send(line).is_err() {
            return;
        }
    }
}

/// Runs a command and returns its standard output; its standard error goes into the failure.
pub fn capture(command: &mut Command) -> Result<Vec<u8>, TaskFailure> {
    let output = command.stdin(Stdio::null()).output().map_err(start_failure(command))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ended(command, output.status, stderr))
    }
}

/// Makes the adapter from a spawn error, for `map_err`.
pub fn start_failure(command: &Command) -> impl FnOnce(std::io::Error) -> TaskFailure + use<> {
    let program = command.get_program().to_string_lossy().into_owned();
    move |source| TaskFailure::Start { program, source }
}

/// Describes how a command ended.
pub fn ended(command: &Command, status: ExitStatus, stderr: String) -> TaskFailure {
    let ending =
        status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
    TaskFailure::Command { command: line(command), code: status.code(), ending, stderr }
}

/// Spells a command the way a person would type it.
pub fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Finds a program the way a shell would.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps some tools where a normal user's PATH does not look.
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Returns the top folder of this repository.
pub fn repository() -> PathBuf {
    // Cargo tells a running binary where its package is now; a binary started by hand knows
    // only where it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().and_then(Path::parent).map_or(package.clone(), Path::to_path_buf)
}

/// Returns the folder that cargo builds into, and fixtures and numbers are kept in.
pub fn target_dir() -> PathBuf {
    let configured = std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    let dir = configured.map_or_else(|| repository().join("target"), PathBuf::from);
    std::path::absolute(&dir).unwrap_or(dir)
}

/// Makes a `cargo` command in the repository, with the cargo that started us.
pub fn cargo(args: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(repository());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_as_typed_and_its_code() {
        let failure = capture(Command::new("sh").args(["-c", "echo why >&2; exit 7"])).unwrap_err();
        let shown = failure.to_string();
        assert_eq!(shown, "`sh -c 'echo why >&2; exit 7'` ended with exit code 7\n  why");
        assert_eq!(failure.exit_code(), 7);
    }

    #[test]
    fn a_silent_program_is_said_to_be_at_work_and_its_lines_are_kept() {
        // It waits until the first silence was told.
        let dir = tempfile::tempdir().unwrap();
        let told = dir.path().join("told");
        let mut command = Command::new("sh");
        let script = "echo one; until [ -e \"$0\" ]; do sleep 0.01; done; echo two >&2; exit 3";
        command.args(["-c", script]).arg(&told);
        let mut lines = Vec::new();
        let ended = follow(&mut command, Duration::from_millis(50), |line| match line {
            Some(line) => lines.push(line),
            None => std::fs::write(&told, "").unwrap(),
        });
        assert_eq!(ended.unwrap_err().exit_code(), 3);
        assert_eq!(lines, ["one", "two"]);
        assert!(told.exists());
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(failure.to_string(), "cannot start no-such-program-here");
    }

    #[test]
    fn the_repository_holds_the_workspace() {
        assert!(repository().join("qemu-images").is_dir());
    }
}
