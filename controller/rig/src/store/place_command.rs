//! What a command at a place leaves beside a run: evidence, and child processes.
//!
//! # Design
//! The folder is one per place, so what is kept of failures cannot pile up, and the next holder of
//! the place finds it. A command that was killed leaves the record of its children there; the next
//! holder of the place ends them, before anything uses the board.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ChildLedger, StoreError, sweep};

/// Name of the record of child processes in the folder.
const CHILDREN: &str = "children.jsonl";

/// The folder of one command at a place. Dropping it removes the folder.
pub struct PlaceCommand {
    folder: PathBuf,
    children: Arc<ChildLedger>,
    kept: bool,
}

impl PlaceCommand {
    /// Begins the folder anew.
    pub(super) fn begin(folder: PathBuf) -> Result<Self, StoreError> {
        remove(&folder).map_err(|error| StoreError::writing(&folder, error))?;
        fs::create_dir_all(&folder).map_err(|error| StoreError::writing(&folder, error))?;
        let children = Arc::new(ChildLedger::create(&folder.join(CHILDREN))?);
        Ok(Self { folder, children, kept: false })
    }

    /// Returns the folder, for evidence.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns where child processes are recorded.
    pub fn children(&self) -> Arc<ChildLedger> {
        Arc::clone(&self.children)
    }

    /// Keeps the evidence until the next command at the place; returns its folder.
    pub fn keep(mut self) -> PathBuf {
        self.kept = true;
        self.folder.clone()
    }
}

impl Drop for PlaceCommand {
    fn drop(&mut self) {
        // Jig ends its children itself, so their record goes in any case.
        let removed = match self.kept {
            true => fs::remove_file(self.folder.join(CHILDREN)),
            false => remove(&self.folder),
        };
        if let Err(error) = removed {
            tracing::debug!(%error, folder = %self.folder.display(), "the folder was not removed");
        }
    }
}

/// Returns the record of children that could not be ended. It lies beside the folder, which the
/// next command begins anew.
fn unended(folder: &Path) -> PathBuf {
    folder.with_extension("unended.jsonl")
}

/// Ends what a killed command has left running. The place is held. The record of a child that could
/// not be ended is kept, so that the next command tries again.
pub(super) fn end_children(folder: &Path) {
    for path in [unended(folder), folder.join(CHILDREN)] {
        if !path.exists() {
            continue;
        }
        let mut remarks = Vec::new();
        match sweep::kill_children(&path, &mut remarks) {
            Ok(killed) if remarks.is_empty() => {
                let killed: Vec<&str> = killed.iter().map(|child| child.what.as_str()).collect();
                tracing::info!(?killed, "ended what a killed command has left running");
                let _ = fs::remove_file(&path);
            }
            Ok(_) => {
                tracing::warn!(?remarks, "not all that a killed command left could be ended");
                keep(&path, &unended(folder));
            }
            Err(error) => {
                tracing::warn!(%error, "what a killed command left was not ended");
                keep(&path, &unended(folder));
            }
        }
    }
}

/// Moves a record to where the next command finds it. An earlier record there is replaced: it was
/// read just before, and a child that cannot be ended twice is left to a person.
fn keep(path: &Path, to: &Path) {
    if path != to
        && let Err(error) = fs::rename(path, to)
    {
        tracing::warn!(%error, "the record of children that were not ended is lost");
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    use jig_model::protocol::ProcessLedger as _;

    use super::*;

    /// Begins a command that starts a child and is killed.
    fn killed_command(folder: &Path) -> Child {
        let command = PlaceCommand::begin(folder.to_owned()).unwrap();
        let child = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        command.children().started(child.id().cast_signed(), "a program");
        std::mem::forget(command);
        child
    }

    #[test]
    fn what_a_killed_command_has_left_running_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("place");
        let mut child = killed_command(&folder);
        end_children(&folder);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(!folder.join(CHILDREN).exists() && !unended(&folder).exists());
        // Nothing is left to be ended.
        end_children(&folder);
    }

    #[test]
    fn children_that_cannot_be_ended_are_tried_again_by_the_next_command() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("place");
        let mut child = killed_command(&folder);
        let record = fs::read_to_string(folder.join(CHILDREN)).unwrap();
        // A newer Jig wrote it, so it cannot be read.
        let newer = record.replacen("\"version\":1", "\"version\":99", 1);
        assert_ne!(record, newer);
        fs::write(folder.join(CHILDREN), newer).unwrap();
        end_children(&folder);
        assert!(child.try_wait().unwrap().is_none());
        // The next command begins the folder anew.
        drop(PlaceCommand::begin(folder.clone()).unwrap());
        fs::write(unended(&folder), record).unwrap();
        end_children(&folder);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        assert!(!unended(&folder).exists());
    }
}
