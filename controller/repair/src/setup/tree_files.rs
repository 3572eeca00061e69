//! The bytes of the run's own work tree, told without git.
//!
//! # Design
//! An agent has the rights of the user, and can have git take a work tree for clean that is not: by bits of
//! its index, by content filters and other settings of the repository, by another `.git`, by an object
//! that is not what its name says. So each file is compared with what the first step of the run has seen,
//! before any agent was asked, and with what the patch has made of its own files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RepairSetup;
use crate::git::GitError;
use crate::journal::Digest;
use crate::patch::Patch;
use crate::run::Run;

/// SHA-256 of each file, by its path below the work tree; `None` where there is none any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TreeFiles(BTreeMap<String, Option<String>>);

impl TreeFiles {
    /// Reads all files below a folder but its own `.git`.
    fn read(folder: &Path) -> io::Result<Self> {
        let (mut found, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next)? {
                let entry = entry?;
                let path = entry.path();
                if next == folder && entry.file_name() == ".git" {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap_or(&path);
                    found.insert(name.to_string_lossy().into_owned(), digest(&path)?);
                }
            }
        }
        Ok(Self(found))
    }

    /// Reads the named files below a folder.
    fn named<'n>(folder: &Path, names: impl Iterator<Item = &'n str>) -> io::Result<Self> {
        let read = |name: &str| Ok((name.to_owned(), digest(&folder.join(name))?));
        names.map(read).collect::<io::Result<_>>().map(Self)
    }

    /// Names the files of which these have other bytes.
    fn other(&self, now: &Self) -> Vec<String> {
        let digest = |files: &Self, name: &String| files.0.get(name).cloned().flatten();
        let names: BTreeSet<_> = self.0.keys().chain(now.0.keys()).collect();
        let differing = names.into_iter().filter(|name| digest(self, name) != digest(now, name));
        differing.cloned().collect()
    }
}

/// Returns the digest of a file; that of where it leads for a link.
fn digest(path: &Path) -> io::Result<Option<String>> {
    let about = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    Ok(Some(if about.is_file() {
        Digest::of(&fs::read(path)?).to_string()
    } else if about.is_symlink() {
        format!("link {}", Digest::of(fs::read_link(path)?.as_os_str().as_bytes()))
    } else {
        "no file".to_owned()
    }))
}

/// Says why the work tree does not hold the base.
#[derive(Debug, thiserror::Error)]
pub enum BaseTreeError {
    /// git cannot make it so.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A file cannot be read.
    #[error("the files of the work tree cannot be compared")]
    File(#[from] io::Error),
    /// Files have other bytes than at the beginning, and git makes them so.
    #[error(
        "{} had other bytes when the run began, and git does not bring them back: settings or objects \
         of the repository were changed",
        .0.join(", ")
    )]
    Other(Vec<String>),
}

impl RepairSetup {
    /// Remembers the files of the base. The work tree holds it and nothing else.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn keep_base_files(&self) -> io::Result<()> {
        self.keep(&self.base_files(), &TreeFiles::read(&self.folder.tree())?)
    }

    /// Remembers the files that a patch has changed. The work tree holds base and patch.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn keep_patched_files(&self, commit: &str, patch: &Patch) -> io::Result<()> {
        let names = patch.files.iter().flat_map(|file| [&file.old, &file.new]).flatten();
        let files = TreeFiles::named(&self.folder.tree(), names.map(String::as_str))?;
        self.keep(&self.folder.files(commit), &files)
    }

    /// Makes the files of the work tree those of the base, and sees for itself that they are: where git
    /// is wrong about its work tree, it gets a new one.
    ///
    /// # Errors
    /// [`BaseTreeError::Other`] where git makes other files of the base than at the beginning of the run.
    pub async fn hold_base(&self, run: &Run) -> Result<(), BaseTreeError> {
        self.hold(&run.contract.base).await?;
        if self.other_than_base(run)?.is_empty() {
            return Ok(());
        }
        self.make_tree(&run.contract.base).await?;
        let other = self.other_than_base(run)?;
        if other.is_empty() { Ok(()) } else { Err(BaseTreeError::Other(other)) }
    }

    /// Names files of the work tree that are neither those of the base nor those of the candidate. It
    /// holds the candidate, and nothing that was built.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn foreign_files(&self, run: &Run) -> io::Result<Vec<String>> {
        let Some(mut expected) = self.files_of_base(run)? else { return Ok(Vec::new()) };
        if let Some(commit) = &run.applied {
            let patched: TreeFiles = self.kept(run, &self.folder.files(commit))?;
            expected.0.extend(patched.0);
        }
        Ok(expected.other(&TreeFiles::read(&self.folder.tree())?))
    }

    /// Names files of the base that have other bytes; files that are built do not count.
    fn other_than_base(&self, run: &Run) -> io::Result<Vec<String>> {
        let Some(base) = self.files_of_base(run)? else { return Ok(Vec::new()) };
        let now = TreeFiles::named(&self.folder.tree(), base.0.keys().map(String::as_str))?;
        Ok(base.other(&now))
    }

    /// Returns the files of the base, unless an older program has begun the run.
    fn files_of_base(&self, run: &Run) -> io::Result<Option<TreeFiles>> {
        let path = self.base_files();
        if self.has_kept(run, &path) { self.kept(run, &path).map(Some) } else { Ok(None) }
    }

    fn base_files(&self) -> PathBuf {
        self.folder.files("base")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_are_missing_or_are_new_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for name in [".git", "src/a.c", "src/b.c", "c.c"] {
            write(name, name);
        }
        std::os::unix::fs::symlink("c.c", dir.path().join("link")).unwrap();
        let before = TreeFiles::read(dir.path()).unwrap();
        let again = TreeFiles::named(dir.path(), before.0.keys().map(String::as_str)).unwrap();
        assert_eq!((&before, before.other(&again)), (&again, vec![]));
        fs::remove_file(dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("src/a.c", dir.path().join("link")).unwrap();
        fs::remove_file(dir.path().join("c.c")).unwrap();
        write(".git", "another");
        write("src/a.c", "another");
        write("src/.git/config", "new");
        let now = TreeFiles::read(dir.path()).unwrap();
        assert_eq!(before.other(&now), ["c.c", "link", "src/.git/config", "src/a.c"]);
    }
}
