//! Runs of a plan at the rig.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jig_model::command::{Command, PlanText, Refusal, Reply, RunOptions, TestCommand};
use jig_model::{Fault, PlaceName, VerdictKind};
use tokio::time::{Instant, timeout};

use super::{PlanResult, RepairSetup};
use crate::journal::Digest;

/// Time of a run beside three times that of the slowest run without a patch: an emulator that starts
/// while others run, or that is traced, is slower.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns the time for a run that is not expected to take much longer than these.
pub fn most_beside(known: &[PlanResult]) -> Duration {
    let slowest = known.iter().map(|result| result.duration_ms).max().unwrap_or(0);
    Duration::from_millis(slowest).saturating_mul(3) + MARGIN
}

/// Says that the rig did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct RigFailure {
    /// Why; may quote hostile text.
    pub why: String,
    /// The user has called the run off.
    pub cancelled: bool,
    /// Something that the user wrote is wrong, and no recovery helps.
    pub wrong_input: bool,
    /// A file of the run is not what the run has made: what it does would be told of another firmware.
    pub changed_file: bool,
}

impl RigFailure {
    /// The rig failed.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), cancelled: false, wrong_input: false, changed_file: false }
    }

    /// The rig refused a command.
    pub fn refused(refusal: Refusal) -> Self {
        let wrong_input = matches!(refusal.fault, Fault::Usage | Fault::Profile);
        let cancelled = refusal.fault == Fault::Cancelled;
        let problems = refusal.problems.iter().map(|problem| problem.message.clone());
        let why = std::iter::once(refusal.message).chain(problems).collect::<Vec<_>>().join(": ");
        Self { cancelled, wrong_input, ..Self::new(why) }
    }
}

impl RepairSetup {
    /// Runs a plan with an image of the run's folder, and keeps the result.
    ///
    /// # Errors
    /// There is no result of the firmware: the rig failed, or did not accept the command.
    pub async fn test(&self, plan: &PlanText, image: &str) -> Result<PlanResult, RigFailure> {
        let result = self.try_out(plan, image, RunOptions::default()).await?;
        let path = self.folder.result(&result.run);
        let kept = self.keep(&path, &result);
        kept.map_err(|error| RigFailure::new(format!("{}: {error}", path.display())))?;
        match result.verdict.kind {
            VerdictKind::EnvError => Err(RigFailure::new(result.verdict.summary)),
            VerdictKind::Cancelled => {
                Err(RigFailure { cancelled: true, ..RigFailure::new(result.verdict.summary) })
            }
            _ => Ok(result),
        }
    }

    /// Runs a plan once; a fault strikes where it is to.
    ///
    /// # Errors
    /// The rig did not accept the command.
    pub async fn try_out(
        &self,
        plan: &PlanText,
        image: &str,
        options: RunOptions,
    ) -> Result<PlanResult, RigFailure> {
        let inject = self.faults.take();
        self.run_plan(plan, image, RunOptions { inject, ..options }).await
    }

    /// Runs a plan once where candidates are tried, and ends it where it takes longer than `most`: then
    /// there is no result. A run that a fault may strike has its time.
    ///
    /// # Errors
    /// The rig did not accept the command.
    pub(super) async fn try_out_within(
        &self,
        plan: &PlanText,
        image: &str,
        most: Duration,
    ) -> Result<Option<PlanResult>, RigFailure> {
        let inject = self.faults.take();
        let may_be_struck = !inject.is_empty();
        let options = RunOptions { inject, ..RunOptions::default() };
        let place = self.trial_place().unwrap_or(&self.place);
        let run = self.run_plan_at(place, plan, image, options);
        if may_be_struck {
            return run.await.map(Some);
        }
        timeout(most, run).await.ok().transpose()
    }

    /// Returns the path of an image of the run's folder, which is named by its SHA-256: the one that was
    /// built, tested or approved.
    ///
    /// # Errors
    /// It is missing, or another one.
    pub fn made_image(&self, image: &str) -> Result<PathBuf, RigFailure> {
        let path = self.folder.image(image);
        let bytes = fs::read(&path)
            .map_err(|error| RigFailure::new(format!("{}: {error}", path.display())))?;
        if Digest::of(&bytes).to_string() == image {
            return Ok(path);
        }
        let why = format!("{} is not the image that was built", path.display());
        Err(RigFailure { changed_file: true, ..RigFailure::new(why) })
    }

    /// Runs a plan once, as the options say.
    pub(super) async fn run_plan(
        &self,
        plan: &PlanText,
        image: &str,
        options: RunOptions,
    ) -> Result<PlanResult, RigFailure> {
        self.run_plan_at(&self.place, plan, image, options).await
    }

    async fn run_plan_at(
        &self,
        place: &PlaceName,
        plan: &PlanText,
        image: &str,
        options: RunOptions,
    ) -> Result<PlanResult, RigFailure> {
        let command = Command::Test(TestCommand {
            place: place.clone(),
            plan: plan.clone(),
            image: Some(self.made_image(image)?),
            options,
        });
        if self.rig.is_real() && *place == self.place {
            self.flashes.add();
        }
        let begun = Instant::now();
        match self.clock.during(self.rig.execute(command)).await {
            Ok(Reply::Run(mut reply)) => {
                self.faults.put_back(std::mem::take(&mut reply.not_struck));
                Ok(PlanResult::of(reply, image, begun.elapsed()))
            }
            Ok(_) => Err(RigFailure::new("the answer does not fit the command")),
            Err(refusal) => Err(RigFailure::refused(refusal)),
        }
    }
}
