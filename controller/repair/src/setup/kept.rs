//! Documents of the run's folder on which a proof rests: what is read again is what a step has written.
//! Agents have the rights of the user, who can write them; their digests are in the journal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RepairSetup;
use crate::journal::Digest;
use crate::run::Run;

/// SHA-256 of each document that was written since the last outcome, by its path below the folder of the
/// run.
#[derive(Debug, Default)]
pub struct KeptFiles(Mutex<BTreeMap<String, String>>);

impl KeptFiles {
    /// Returns what is to be put into the journal, and begins again with nothing.
    pub fn take(&self) -> BTreeMap<String, String> {
        std::mem::take(&mut *self.files())
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RepairSetup {
    /// Writes a document of the run's folder. Its digest goes into the journal with the outcome of the
    /// step.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep<T: Serialize>(&self, path: &Path, value: &T) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(value).map_err(io::Error::other)?;
        self.folder.write(path, &text)?;
        self.kept.files().insert(self.below(path), Digest::of(&text).to_string());
        Ok(())
    }

    /// Tells whether a step has kept a document.
    pub fn has_kept(&self, run: &Run, path: &Path) -> bool {
        let name = self.below(path);
        run.kept.contains_key(&name) || self.kept.files().contains_key(&name)
    }

    /// Reads a document that a step has kept.
    ///
    /// # Errors
    /// It is missing, damaged, or not the one that was written.
    pub fn kept<T: DeserializeOwned>(&self, run: &Run, path: &Path) -> io::Result<T> {
        let bytes = fs::read(path)?;
        let name = self.below(path);
        let new = self.kept.files().get(&name).cloned();
        match new.as_ref().or_else(|| run.kept.get(&name)) {
            Some(digest) if *digest == Digest::of(&bytes).to_string() => {
                serde_json::from_slice(&bytes).map_err(io::Error::other)
            }
            Some(_) => Err(io::Error::other("it is not what this run has written")),
            None => Err(io::Error::other("the journal does not say that this run has written it")),
        }
    }

    /// Returns the first document that is not the one that a step of the run has kept.
    ///
    /// # Errors
    /// A document cannot be read.
    pub fn changed_kept(&self, run: &Run) -> io::Result<Option<PathBuf>> {
        let mut kept = run.kept.clone();
        kept.extend(self.kept.files().clone());
        self.folder.first_other(kept.iter().map(|(name, digest)| (name.as_str(), Some(digest))))
    }

    fn below(&self, path: &Path) -> String {
        path.strip_prefix(self.folder.path()).unwrap_or(path).display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use jig_model::Cause;

    use super::*;
    use crate::setup_for_tests::{ScriptedBoard, TestSetup};

    #[tokio::test]
    async fn a_document_is_read_where_it_is_the_one_that_was_written() {
        let test = TestSetup::new(|_| ScriptedBoard::Ends(Cause::Passed)).await;
        let (setup, mut run) = (&test.setup, test.run());
        let path = setup.folder.coverage("image");
        setup.keep(&path, &"what was executed").unwrap();
        let read = |run: &Run| setup.kept::<String>(run, &path).map_err(|error| error.to_string());
        assert_eq!(read(&run).as_deref(), Ok("what was executed"));
        let kept = setup.kept.take();
        assert!(read(&run).unwrap_err().contains("the journal does not say"), "no outcome has it");
        run.kept.extend(kept);
        assert_eq!(read(&run).as_deref(), Ok("what was executed"));
        assert_eq!(setup.changed_kept(&run).unwrap(), None);
        fs::write(&path, "\"something else\"").unwrap();
        assert!(read(&run).unwrap_err().contains("not what this run has written"));
        assert_eq!(setup.changed_kept(&run).unwrap(), Some(path.clone()));
    }
}
