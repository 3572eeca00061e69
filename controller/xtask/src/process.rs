//! Running other programs: argument lists only, never a shell line, never our standard input.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::failure::Failure;

/// Runs a command whose output the user sees.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command.stdin(Stdio::null()).status().map_err(start_failure(command))?;
    if status.success() { Ok(()) } else { Err(ended(command, status, String::new())) }
}

/// Runs a command and returns its standard output; its standard error goes into the failure.
pub(crate) fn capture(command: &mut Command) -> Result<Vec<u8>, Failure> {
    let output = command.stdin(Stdio::null()).output().map_err(start_failure(command))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(ended(command, output.status, stderr))
    }
}

/// Makes the adapter from a spawn error, for `map_err`.
pub(crate) fn start_failure(command: &Command) -> impl FnOnce(std::io::Error) -> Failure + use<> {
    let program = command.get_program().to_string_lossy().into_owned();
    move |source| Failure::Start { program, source }
}

/// Describes how a command ended.
pub(crate) fn ended(command: &Command, status: ExitStatus, stderr: String) -> Failure {
    let ending =
        status.code().map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
    Failure::Command { command: line(command), code: status.code(), ending, stderr }
}

/// Spells a command the way a person would type it.
pub(crate) fn line(command: &Command) -> String {
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
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps some tools where a normal user's PATH does not look.
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Answers the top folder of this repository.
pub(crate) fn repository() -> PathBuf {
    // Cargo tells a running binary where its package is now; a binary started by hand knows
    // only where it was built.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().and_then(Path::parent).map_or(package.clone(), Path::to_path_buf)
}

/// Makes a `cargo` command in the repository, with the cargo that started us.
pub(crate) fn cargo(args: &[&str]) -> Command {
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
    fn a_missing_program_is_named() {
        let failure = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(failure.to_string(), "cannot start no-such-program-here");
    }

    #[test]
    fn the_repository_holds_the_workspace() {
        assert!(repository().join("qemu-images").is_dir());
    }
}
