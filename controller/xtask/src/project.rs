//! Firmware projects with one bug, made into git repositories: for the bench and the demonstration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::TaskFailure;
use crate::fixtures::{BoardMachine, machine};
use crate::process;

/// Files of a project that belong to no repository.
const BESIDE: &[&str] =
    &["about.toml", "plan.toml", "held-out.toml", "check.toml", "fix.diff", "wrong.diff"];

/// Returns a folder of the fixtures.
pub fn fixtures(name: &str) -> PathBuf {
    process::repository().join("firmware-fixtures").join(name)
}

/// Makes the repository of a project that is written for this, with one commit.
///
/// # Errors
/// A file cannot be copied, or git does not work.
pub fn made(name: &str, repository: &Path) -> Result<(), TaskFailure> {
    copied(&fixtures("repair/support"), repository)?;
    copied(&fixtures("repair").join(name), repository)?;
    committed(repository)
}

/// Gives a project the start-up of a board, in place of the one in `support`: files in `machine`, a
/// linker script, and `board.mk`, which the Makefile of `support` includes.
///
/// # Errors
/// There is no such board, or a file cannot be copied.
pub fn put_on_board(board: &str, repository: &Path) -> Result<(), TaskFailure> {
    let BoardMachine { files, linker_script, compiler, flags, link_flags } = machine(board)?;
    let folder = repository.join("machine");
    fs::create_dir_all(&folder).map_err(TaskFailure::io("create", &folder))?;
    let script = (linker_script, repository.join("link.ld"));
    let named = files.into_iter().map(|file| {
        let to = folder.join(file.file_name().unwrap_or_default());
        (file, to)
    });
    for (from, to) in named.chain([script]) {
        fs::copy(&from, &to).map_err(TaskFailure::io("copy", &from))?;
    }
    let quoted =
        |flags: &[String]| flags.iter().map(|flag| format!(" '{flag}'")).collect::<String>();
    let text = format!(
        "CC = {compiler}\nMACHINE ={}\nMACHINE_LINK ={}\n",
        quoted(&flags),
        quoted(&link_flags)
    );
    let path = repository.join("board.mk");
    fs::write(&path, text).map_err(TaskFailure::io("write", &path))
}

/// Lists a folder in the order of names.
///
/// # Errors
/// It cannot be read.
pub fn listed(folder: &Path) -> Result<Vec<PathBuf>, TaskFailure> {
    let entries = fs::read_dir(folder).map_err(TaskFailure::io("list", folder))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Copies what a repository has of a project.
///
/// # Errors
/// A file cannot be read or written.
pub fn copied(from: &Path, to: &Path) -> Result<(), TaskFailure> {
    fs::create_dir_all(to).map_err(TaskFailure::io("create", to))?;
    for path in listed(from)? {
        let name = path.file_name().unwrap_or_default();
        if BESIDE.iter().any(|beside| name == *beside) {
            continue;
        }
        if path.is_dir() {
            copied(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).map_err(TaskFailure::io("copy", &path))?;
        }
    }
    Ok(())
}

/// Makes a folder a repository, and commits all that is in it.
///
/// # Errors
/// git does not work.
pub fn committed(repository: &Path) -> Result<(), TaskFailure> {
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["commit", "--quiet", "--message=firmware: first version"],
    ] {
        process::run(git(repository).args(args))?;
    }
    Ok(())
}

/// Prepares git without the settings of the user.
pub fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(repository)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_NAME"), "Jig")
            .env(format!("GIT_{role}_EMAIL"), "jig@localhost");
    }
    git.stdin(Stdio::null());
    git
}
