//! The sources of libraries that bugs are put into: downloaded by apt, checked by their hash.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::fix::UpstreamFix;

use xtask::failure::TaskFailure;
use xtask::process;

const LIBRARIES: &str = include_str!("../../libraries.toml");

/// Where Debian's packages come from, whatever release this host has.
const SOURCES: &str = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
    http://deb.debian.org/debian bookworm main\n";

/// A library.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceLibrary {
    /// Name of the source package.
    pub(super) name: String,
    version: String,
    archive: String,
    sha256: String,
    /// Files of the archive, without its top folder, and where a project has them.
    pub(super) files: BTreeMap<String, String>,
    /// Files of the project that get bugs.
    pub(super) mutated: Vec<String>,
    /// Further options of the compiler.
    #[serde(default)]
    pub(super) flags: String,
    /// Fixes that its authors have made.
    #[serde(default)]
    pub(super) fix: Vec<UpstreamFix>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LibraryList {
    /// The boards that the libraries are built for, in turns.
    boards: Vec<String>,
    /// The board of the projects of this repository.
    board: String,
    library: Vec<SourceLibrary>,
}

/// Reads the list of libraries.
pub(super) fn libraries() -> Result<Vec<SourceLibrary>, TaskFailure> {
    Ok(list()?.library)
}

/// Returns the boards that the libraries are built for.
pub(super) fn boards() -> Result<Vec<String>, TaskFailure> {
    Ok(list()?.boards)
}

/// Returns the board of the projects of this repository.
pub(super) fn board_of_projects() -> Result<String, TaskFailure> {
    Ok(list()?.board)
}

fn list() -> Result<LibraryList, TaskFailure> {
    toml::from_str(LIBRARIES).map_err(|source| TaskFailure::Recipe {
        path: "controller/bench/libraries.toml".into(),
        source: Box::new(source),
    })
}

impl SourceLibrary {
    /// Downloads the archive where it is not yet there, and unpacks it into a folder of its own.
    /// `cache` stays from one bench to the next.
    pub(super) fn unpacked(&self, cache: &Path) -> Result<PathBuf, TaskFailure> {
        let archive = cache.join(&self.archive);
        if !archive.is_file() {
            download(cache, &format!("{}={}", self.name, self.version))?;
        }
        let hashed = process::capture(Command::new("sha256sum").arg(&archive))?;
        let hashed = String::from_utf8_lossy(&hashed);
        if !hashed.starts_with(&self.sha256) {
            let (path, wanted) = (archive.display(), &self.sha256);
            let why = format!("{path} does not have the SHA-256 {wanted}; remove it and try again");
            return Err(TaskFailure::Because(why));
        }
        let folder = cache.join(&self.name);
        made(&folder)?;
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(&folder);
        process::run(tar.arg("--strip-components=1"))?;
        Ok(folder)
    }

    /// Writes the library's files into a project.
    pub(super) fn write(&self, unpacked: &Path, project: &Path) -> Result<(), TaskFailure> {
        for file in self.files.values() {
            let to = project.join(file);
            if let Some(parent) = to.parent() {
                made(parent)?;
            }
            fs::write(&to, self.source(unpacked, file)?).map_err(TaskFailure::io("write", &to))?;
        }
        Ok(())
    }

    /// Reads a file of a project, with the fixes that the package is older than.
    pub(super) fn source(&self, unpacked: &Path, file: &str) -> Result<String, TaskFailure> {
        let from = self.files.iter().find(|(_, to)| *to == file).map(|(from, _)| from);
        let path = unpacked.join(from.map_or(file, String::as_str));
        let bytes = fs::read(&path).map_err(TaskFailure::io("read", &path))?;
        let source = String::from_utf8_lossy(&bytes).into_owned();
        let mut missing = self.fix.iter().filter(|fix| fix.missing && fix.file == file);
        let fixed = missing.try_fold(source, |source, fix| fix.put_in(&source));
        fixed.map_err(|unfit| TaskFailure::Because(unfit.to_string()))
    }
}

/// Downloads the source of a package with an apt of its own: this host's stays as it is.
fn download(cache: &Path, package: &str) -> Result<(), TaskFailure> {
    let state = cache.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        made(&state.join(part))?;
    }
    for (name, text) in [("status", ""), ("sources.list", SOURCES)] {
        let path = state.join(name);
        fs::write(&path, text).map_err(TaskFailure::io("write", &path))?;
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.current_dir(cache).env("LC_ALL", "C.UTF-8").arg("-q");
        for (option, path) in [
            ("Dir::State", state.clone()),
            ("Dir::State::status", state.join("status")),
            ("Dir::Cache", state.join("cache")),
            ("Dir::Etc::SourceList", state.join("sources.list")),
            ("Dir::Etc::SourceParts", "/dev/null".into()),
        ] {
            apt.arg("-o").arg(format!("{option}={}", path.display()));
        }
        apt
    };
    process::narrate(apt().arg("update"), "apt-get update")?;
    process::narrate(apt().args(["source", "--tar-only", package]), "apt-get source")
}

pub(super) fn made(folder: &Path) -> Result<(), TaskFailure> {
    fs::create_dir_all(folder).map_err(TaskFailure::io("create", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_tests_of_ours_and_changes_files_that_it_has() {
        let libraries = libraries().unwrap();
        assert_eq!(libraries.len(), 3);
        for library in libraries {
            let has = |file: &String| library.files.values().any(|to| to == file);
            assert!(library.mutated.iter().all(has), "{}", library.name);
            assert!(library.fix.iter().all(|fix| has(&fix.file)), "{}", library.name);
            let folder = process::repository().join("firmware-fixtures/repair-libraries");
            for file in ["plan.toml", "held-out.toml", "check.toml", "test/calls.c"] {
                let path = folder.join(&library.name).join(file);
                assert!(path.is_file(), "{}", path.display());
            }
        }
    }
}
