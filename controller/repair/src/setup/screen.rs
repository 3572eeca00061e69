//! Trials of several candidates on an emulated board: the first in their order that makes the tests
//! pass is found, two at a time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jig_model::command::RunOptions;

use super::{BuildError, RepairSetup, RigFailure};
use crate::git::{Git, GitError};
use crate::run::Run;

/// Runs of a candidate for which the rig may fail before the trials end.
const RIG_TRIES: usize = 2;

/// Says why no candidate could be tried.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// No work tree can be made.
    #[error("no work tree for a trial")]
    Git(#[from] GitError),
    /// A build cannot even begin.
    #[error("no build for a trial")]
    Build(#[from] BuildError),
    /// The rig failed.
    #[error("the rig failed during a trial: {0}")]
    Rig(#[from] RigFailure),
    /// A file cannot be written.
    #[error("no patch for a trial")]
    File(#[from] std::io::Error),
}

/// What trials have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenTrials {
    /// How many candidates, from the first, do not make the tests pass.
    pub failed: usize,
    /// Whether the next one does.
    pub passed: bool,
}

impl RepairSetup {
    /// Builds and runs candidates until one passes. It ends early when the time of the run is over.
    ///
    /// # Errors
    /// No candidate can be tried on this host or rig.
    pub async fn screen(
        &self,
        run: &Run,
        diffs: impl Iterator<Item = &str>,
    ) -> Result<ScreenTrials, ScreenError> {
        let folder = self.folder.scratch().join("trials");
        let mut patches = Vec::new();
        for (number, diff) in diffs.enumerate() {
            let path = folder.join(format!("{number}.diff"));
            self.folder.write(&path, diff.as_bytes())?;
            patches.push(path);
        }
        let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let untried = AtomicUsize::new(patches.len());
        let lane = async |lane: usize| -> Result<(), ScreenError> {
            let path = folder.join(format!("tree-{lane}"));
            self.drop_tree(&path).await?;
            let tree = self.git.work_tree_add(&path, &run.contract.base).await?;
            let tried = async {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let over =
                        found.load(Ordering::SeqCst) < number || self.time_left(run).is_zero();
                    let Some(patch) = patches.get(number).filter(|_| !over) else {
                        untried.fetch_min(number, Ordering::SeqCst);
                        return Ok(());
                    };
                    if self.passes(run, &tree, &path, patch).await? {
                        found.fetch_min(number, Ordering::SeqCst);
                    }
                }
            };
            let tried = tried.await;
            self.drop_tree(&path).await?;
            tried
        };
        let (first, second) = tokio::join!(lane(0), lane(1));
        first.and(second)?;
        // Nothing is left of them; what is chosen is kept by its identity.
        fs::remove_dir_all(&folder)?;
        let (found, untried) = (found.into_inner(), untried.into_inner());
        Ok(ScreenTrials { failed: found.min(untried), passed: found < untried })
    }

    async fn drop_tree(&self, path: &Path) -> Result<(), GitError> {
        if path.exists() || self.git.knows_tree(path).await? {
            self.git.work_tree_remove(path).await?;
        }
        Ok(())
    }

    /// Tells whether the tests pass with a patch.
    async fn passes(
        &self,
        run: &Run,
        tree: &Git,
        folder: &Path,
        patch: &Path,
    ) -> Result<bool, ScreenError> {
        tree.reset_hard(&run.contract.base).await?;
        if tree.apply(patch).await.is_err() {
            return Ok(false);
        }
        let built = match self.build(folder, &patch.with_extension("log")).await {
            Ok(built) => built,
            Err(error) if error.blames_build() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for nth in 1.. {
            let result = self.try_out(&self.plan, &built.sha256, RunOptions::default()).await?;
            if !result.blames_rig() {
                return Ok(result.passed());
            }
            if nth == RIG_TRIES {
                return Err(RigFailure::new(result.verdict.summary).into());
            }
        }
        Ok(false)
    }
}
