//! What a command at a place leaves beside a run: evidence, and child processes.
//!
//! # Design
//! The folder is one per place, so what is kept of failures cannot pile up, and the next holder of
//! the place finds it. A command that was killed leaves the record of its children there; whoever
//! takes the place next ends them, before anything uses the board.

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

/// Ends what a killed command has left running. The place is held.
pub(super) fn end_children(folder: &Path) {
    let (path, mut remarks) = (folder.join(CHILDREN), Vec::new());
    if !path.exists() {
        return;
    }
    match sweep::kill_children(&path, &mut remarks) {
        Ok(killed) => {
            let killed: Vec<&str> = killed.iter().map(|child| child.what.as_str()).collect();
            tracing::info!(?killed, ?remarks, "ended what a killed command has left running");
            let _ = fs::remove_file(&path);
        }
        Err(error) => tracing::warn!(%error, "what a killed command left was not ended"),
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
