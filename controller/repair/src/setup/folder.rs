//! The folder of a repair run: names of its files, and how they are written.
//!
//! Files are named by what they hold (a patch by its identity, an image by its hash, a test by its
//! run), so that a step that is carried out again writes the same file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::journal::{Contract, Digest};

/// The run's copy of the task: later changes of what the user wrote do not reach the run.
pub const TASK: &str = "task.toml";
/// Its copy of the plan.
pub const PLAN: &str = "plan.toml";
/// Its copy of the held-out plan.
pub const HELD_OUT: &str = "held-out.toml";
/// Its copy of the policy.
pub const POLICY: &str = "policy.toml";
/// Where repository, rig and boards are.
pub const ORIGIN: &str = "origin.json";

/// Files that stay as the run was begun with them.
const COPIES: [&str; 5] = [TASK, PLAN, HELD_OUT, POLICY, ORIGIN];

/// The folder of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairFolder(PathBuf);

impl RepairFolder {
    /// Names a folder; makes nothing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The run's own work tree.
    pub fn tree(&self) -> PathBuf {
        self.0.join("tree")
    }

    /// Temporary files of builds and of git.
    pub fn scratch(&self) -> PathBuf {
        self.0.join("scratch")
    }

    /// A patch, by its identity.
    pub fn patch(&self, id: &str) -> PathBuf {
        self.0.join("patches").join(format!("{id}.diff"))
    }

    /// The diff that a client has submitted, by its SHA-256.
    pub fn submitted(&self, sha256: &str) -> PathBuf {
        self.0.join("submitted").join(format!("{sha256}.diff"))
    }

    /// An image, by its SHA-256.
    pub fn image(&self, sha256: &str) -> PathBuf {
        self.0.join("images").join(format!("{sha256}.elf"))
    }

    /// What a run of a plan has shown, by the run.
    pub fn result(&self, run: &str) -> PathBuf {
        self.0.join("results").join(format!("{run}.json"))
    }

    /// What the plan executes of an image, by its SHA-256.
    pub fn coverage(&self, sha256: &str) -> PathBuf {
        self.0.join("coverage").join(format!("{sha256}.json"))
    }

    /// What each test of the plan executes of an image, by its SHA-256.
    pub fn test_coverage(&self, sha256: &str) -> PathBuf {
        self.0.join("coverage").join(format!("{sha256}-tests.json"))
    }

    /// Digests of files of the work tree: of the base, or of what a candidate changes, by its commit.
    pub fn files(&self, what: &str) -> PathBuf {
        self.0.join("files").join(format!("{what}.json"))
    }

    /// What an iteration has of its own: evidence for the agent, logs.
    pub fn iteration(&self, iteration: u64) -> PathBuf {
        self.0.join(format!("iteration-{iteration}"))
    }

    /// Lines that an iteration suspects, the most suspicious first.
    pub fn suspects(&self, iteration: u64) -> PathBuf {
        self.iteration(iteration).join("suspects.json")
    }

    /// What the analyst says of the failure that an iteration begins with.
    pub fn analysis(&self, iteration: u64) -> PathBuf {
        self.iteration(iteration).join("analysis.json")
    }

    /// The result document.
    pub fn document(&self) -> PathBuf {
        self.0.join("result.json")
    }

    /// The report for people.
    pub fn report(&self) -> PathBuf {
        self.0.join("report.md")
    }

    /// Returns the first copy that is not the one that the run was begun with: agents have the rights of
    /// the user, who can write them.
    ///
    /// # Errors
    /// A copy cannot be read.
    pub fn changed_copy(&self, contract: &Contract) -> io::Result<Option<PathBuf>> {
        if contract.copies.is_empty() {
            return Ok(None);
        }
        self.first_other(COPIES.into_iter().map(|name| (name, contract.copies.get(name))))
    }

    /// Returns the first of these files that has another digest than this; no digest is one of no file.
    pub(super) fn first_other<'a>(
        &self,
        files: impl Iterator<Item = (&'a str, Option<&'a String>)>,
    ) -> io::Result<Option<PathBuf>> {
        for (name, digest) in files {
            let path = self.0.join(name);
            let now = match fs::read(&path) {
                Ok(bytes) => Some(Digest::of(&bytes).to_string()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            if now.as_ref() != digest {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Makes the folders that every run has.
    ///
    /// # Errors
    /// One cannot be made.
    pub fn make(&self) -> io::Result<()> {
        ["patches", "images", "results", "scratch"]
            .into_iter()
            .try_for_each(|name| fs::create_dir_all(self.0.join(name)))
    }

    /// Writes a file as a whole: another one of this name is replaced at once.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        fs::write(&new, bytes)?;
        fs::rename(&new, path)
    }

    /// Writes a JSON document.
    ///
    /// # Errors
    /// As [`RepairFolder::write`].
    pub fn write_json<T: Serialize>(&self, path: &Path, value: &T) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        self.write(path, &text)
    }

    /// Reads a JSON document on which no proof rests; [`super::RepairSetup::kept`] reads the others.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn read_json<T: DeserializeOwned>(&self, path: &Path) -> io::Result<T> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_was_changed_added_or_removed_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = RepairFolder::new(dir.path());
        let at = |name: &str| dir.path().join(name);
        let mut contract = Contract::default();
        fs::write(at(POLICY), "anything").unwrap();
        assert_eq!(folder.changed_copy(&contract).unwrap(), None, "an older program wrote none");
        fs::remove_file(at(POLICY)).unwrap();
        for name in [TASK, PLAN, HELD_OUT, ORIGIN] {
            fs::write(at(name), name).unwrap();
            contract.copies.insert(name.to_owned(), Digest::of(name.as_bytes()).to_string());
        }
        let changed = || folder.changed_copy(&contract).unwrap();
        assert_eq!(changed(), None);
        fs::write(at(POLICY), "version = 1\n").unwrap();
        assert_eq!(changed(), Some(at(POLICY)));
        fs::remove_file(at(POLICY)).unwrap();
        fs::write(at(HELD_OUT), "passes").unwrap();
        assert_eq!(changed(), Some(at(HELD_OUT)));
        fs::remove_file(at(HELD_OUT)).unwrap();
        assert_eq!(changed(), Some(at(HELD_OUT)));
    }
}
