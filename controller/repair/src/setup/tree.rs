//! The run's own work tree: which commit it is known to hold.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::RepairSetup;
use crate::git::{Git, GitError};

/// The commit that the work tree holds, as long as nothing but git has written to it since. It belongs
/// to the process that drives a run, and to no journal.
#[derive(Debug, Default)]
pub struct HeldCommit(Mutex<Option<String>>);

impl HeldCommit {
    /// A program may write to the work tree, so that nothing is known of it any more.
    pub fn forget(&self) {
        *self.held() = None;
    }

    /// Nothing but this commit and ignored files is in the work tree.
    pub fn learn(&self, commit: &str) {
        *self.held() = Some(commit.to_owned());
    }

    fn is(&self, commit: &str) -> bool {
        self.held().as_deref() == Some(commit)
    }

    fn held(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RepairSetup {
    /// Calls git in the run's own work tree.
    pub fn tree(&self) -> Git {
        self.git.at(&self.folder.tree())
    }

    /// Makes the work tree anew, at a commit.
    ///
    /// # Errors
    /// The repository or the folder cannot be used.
    pub async fn make_tree(&self, commit: &str) -> Result<(), GitError> {
        let path = self.folder.tree();
        self.held.forget();
        if path.exists() {
            self.git.work_tree_remove(&path).await?;
        }
        self.git.work_tree_add(&path, commit).await?;
        self.held.learn(commit);
        Ok(())
    }

    /// Makes the work tree and the index equal to a commit, without files that git neither tracks nor
    /// ignores. It starts no program where that is known to be so.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub async fn hold(&self, commit: &str) -> Result<(), GitError> {
        if self.held.is(commit) {
            return Ok(());
        }
        self.held.forget();
        self.tree().reset_hard(commit).await?;
        self.held.learn(commit);
        Ok(())
    }
}
