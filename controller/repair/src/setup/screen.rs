//! Trials of several candidates on an emulated board: the first in their order that makes the tests
//! pass is found, two at a time.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jig_model::chain;

use super::{BuildError, PlanResult, RepairSetup, RigFailure, most_beside};
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
    /// The base builds no more, either.
    #[error("the base does not build any more: {0}")]
    Host(String),
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
        let most = self.trial_time(run);
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
                    if self.passes(run, &tree, &path, patch, most).await? {
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

    /// Returns how long the tests of a candidate may take: a loop that never ends would cost the time
    /// limit of the plan, for each of dozens of candidates.
    fn trial_time(&self, run: &Run) -> Duration {
        if self.screen_place.is_some() {
            // How long the firmware takes at another place is not known.
            return Duration::MAX;
        }
        let shown = run.baseline.as_ref().map(|baseline| self.folder.result(&baseline.run));
        let known = shown.and_then(|path| self.kept(run, &path).ok());
        // A result of an older program does not tell its time.
        let known = known.filter(|result: &PlanResult| result.duration_ms > 0);
        known.map_or(Duration::MAX, |result| most_beside(&[result]))
    }

    /// Finds out that a candidate is to blame for its build, and not the host.
    async fn blamed(
        &self,
        run: &Run,
        (tree, folder): (&Git, &Path),
        log: &Path,
        error: BuildError,
    ) -> Result<(), ScreenError> {
        let said = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
        if error.needs_control(&said, self.files(run).await?) {
            let control = log.with_extension("control.log");
            if let Some(base) = self.build_base(run, tree, folder, &control).await? {
                return Err(ScreenError::Host(chain(&base)));
            }
        }
        if error.blames_build() { Ok(()) } else { Err(error.into()) }
    }

    /// Tells whether the tests pass with a patch.
    async fn passes(
        &self,
        run: &Run,
        tree: &Git,
        folder: &Path,
        patch: &Path,
        most: Duration,
    ) -> Result<bool, ScreenError> {
        tree.reset_hard(&run.contract.base).await?;
        if tree.apply(patch).await.is_err() {
            return Ok(false);
        }
        let log = patch.with_extension("log");
        let built = match self.build(folder, &log).await {
            Ok(built) => built,
            Err(error) => {
                self.blamed(run, (tree, folder), &log, error).await?;
                return Ok(false);
            }
        };
        for nth in 1.. {
            let result = self.try_out_within(&self.plan, &built.sha256, most).await?;
            // The firmware hangs, most likely; what is left of its time is for other candidates.
            let Some(result) = result else { return Ok(false) };
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

#[cfg(test)]
mod tests {
    use jig_model::{Cause, Verdict};

    use super::*;
    use crate::setup_for_tests::{ScriptedBoard, TestSetup, diff};

    fn board(source: &str) -> ScriptedBoard {
        match source {
            right if right.contains("return head + 1;") => ScriptedBoard::Ends(Cause::Passed),
            endless if endless.contains("return head + 9;") => ScriptedBoard::Hangs,
            _ => ScriptedBoard::Ends(Cause::TestFailed),
        }
    }

    /// A baseline that took so long.
    fn baseline(test: &TestSetup, duration_ms: u64) {
        let folder = &test.setup.folder;
        let result = PlanResult {
            run: "baseline".to_owned(),
            dir: folder.path().to_owned(),
            image: "base".to_owned(),
            verdict: Verdict::of(Cause::TestFailed, ""),
            duration_ms,
        };
        test.setup.keep(&folder.result("baseline"), &result).unwrap();
    }

    #[tokio::test]
    async fn a_candidate_that_hangs_costs_little_more_than_the_baseline() {
        let test = TestSetup::new(board).await;
        baseline(&test, 2000);
        let run = test.run();
        let most = test.setup.trial_time(&run);
        assert_eq!(most, Duration::from_secs(11));
        let (hangs, right) = (diff("head + 9"), diff("head + 1"));
        // A clock that leaps over each wait: only what never ends can take this long.
        tokio::time::pause();
        let diffs = [hangs.as_str(), &hangs, &hangs, &right];
        let trials = test.setup.screen(&run, diffs.into_iter()).await.unwrap();
        assert_eq!(trials, ScreenTrials { failed: 3, passed: true });
    }

    #[tokio::test]
    async fn without_a_known_time_a_candidate_has_that_of_the_run() {
        let test = TestSetup::new(board).await;
        assert_eq!(test.setup.trial_time(&test.run()), Duration::MAX);
        baseline(&test, 0);
        assert_eq!(test.setup.trial_time(&test.run()), Duration::MAX);
    }
}
