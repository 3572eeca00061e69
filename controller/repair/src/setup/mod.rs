//! What the steps of a run share: the task, the folders, the work tree, the build, the rig.

mod build;
mod busy;
mod coverage;
mod diagnosis;
mod faults;
mod folder;
mod image_files;
mod kept;
mod plan_run;
mod screen;
mod sources;
mod test;
mod tree;
mod tree_files;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jig_model::PlaceName;
use jig_model::command::{Command, PlanText, RecoverCommand, RecoverExtent, Reply};
use jig_model::program::Programs;

pub use build::{BuildError, BuiltImage};
pub use busy::BusyClock;
pub use coverage::{MeasuredTest, MeasuredTests};
pub use faults::InjectedFaults;
pub use folder::{HELD_OUT, ORIGIN, PLAN, POLICY, RepairFolder, TASK};
pub use kept::KeptFiles;
pub use plan_run::{PlanResult, first_bad_line, verdict_signature};
pub use screen::{ScreenError, ScreenTrials};
pub use sources::{BaseSources, KnownBase};
pub use test::{RigFailure, most_beside};
pub use tree::HeldCommit;
pub use tree_files::BaseTreeError;

use crate::agents::RepairAgent;
use crate::agents::analyst::FailureAnalyst;
use crate::git::{Git, GitError};
use crate::journal::now_ms;
use crate::known::KnownFailures;
use crate::machine::RepairState;
use crate::policy::Policy;
use crate::redact::Redactor;
use crate::rig::RigDoor;
use crate::run::Run;
use crate::task::RepairTask;

/// An agent of the ladder.
pub struct NamedAgent {
    /// Its name in the task.
    pub name: String,
    /// Where its patches come from.
    pub source: PatchSource,
}

/// Where the patches of an agent come from.
pub enum PatchSource {
    /// It is asked for them.
    Agent(Box<dyn RepairAgent>),
    /// Clients submit them while the run waits.
    Clients,
}

/// Everything that a run works with and that is not its state.
pub struct RepairSetup {
    /// Name of the run.
    pub name: String,
    /// The task.
    pub task: RepairTask,
    /// Where the firmware runs.
    pub place: PlaceName,
    /// Where candidates are tried before `place`, a real board, is flashed; no flashing is counted there.
    pub screen_place: Option<PlaceName>,
    /// The plan whose tests must pass.
    pub plan: PlanText,
    /// The plan that decides at the end.
    pub held_out: Option<PlanText>,
    /// What may change.
    pub policy: Policy,
    /// The run's own files.
    pub folder: RepairFolder,
    /// The ladder of agents, in order; never empty.
    pub agents: Vec<NamedAgent>,
    /// Explains failures before patches are asked for, if the task names one.
    pub analyst: Option<Box<dyn FailureAnalyst>>,
    /// The rig.
    pub rig: Arc<dyn RigDoor>,
    /// What the lab knows of failures.
    pub known: Arc<dyn KnownFailures>,
    /// Runs builds.
    pub programs: Arc<dyn Programs>,
    /// Calls git in the user's repository, which only gets a branch.
    pub git: Git,
    /// Value of `PATH` for builds.
    pub search_path: OsString,
    /// Removes secrets from what agents see.
    pub redactor: Redactor,
    /// Documents that were written since the last outcome.
    pub kept: KeptFiles,
    /// Counts how often the board was flashed.
    pub flashes: Flashes,
    /// What is known of the base.
    pub base: KnownBase,
    /// What the work tree holds.
    pub held: HeldCommit,
    /// How long builds, the rig and agents take.
    pub clock: BusyClock,
    /// How the rig is made to fail.
    pub faults: InjectedFaults,
}

/// How often a real board was flashed since this was last asked.
#[derive(Debug, Default)]
pub struct Flashes(AtomicUsize);

impl Flashes {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number, and begins again with none.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl RepairSetup {
    /// Returns the agent whose turn it is: the last one stays when the ladder is at its end.
    pub fn agent(&self, run: &Run) -> &NamedAgent {
        let last = self.agents.len() - 1;
        let rung = usize::try_from(run.strategy).unwrap_or(usize::MAX);
        &self.agents[rung.min(last)]
    }

    /// Tells whether the agent whose turn it is is asked for a change that shows the failure.
    pub fn asks_for_diagnosis(&self, run: &Run) -> bool {
        diagnosis::is_wanted(run)
            && match &self.agent(run).source {
                PatchSource::Agent(agent) => agent.can_diagnose(),
                PatchSource::Clients => true,
            }
    }

    /// Returns where candidates are tried, of which one is chosen; nowhere where it would wear out a
    /// board.
    pub fn trial_place(&self) -> Option<&PlaceName> {
        self.screen_place.as_ref().or((!self.rig.is_real()).then_some(&self.place))
    }

    /// Tells whether tokens and money of the agent whose turn it is are known.
    pub fn counts_usage(&self, run: &Run) -> bool {
        match &self.agent(run).source {
            PatchSource::Agent(agent) => agent.counts_usage(),
            // A client pays for itself.
            PatchSource::Clients => true,
        }
    }

    /// Returns how long the run may still take.
    pub fn time_left(&self, run: &Run) -> Duration {
        run.time_left(now_ms())
    }

    /// Makes the run's work tree where there is none, such as behind a fork: at the commit of the
    /// candidate, or at the base. One that there is loses the locks of a driver that was killed; the
    /// caller is the only one that drives the run.
    ///
    /// # Errors
    /// The repository or the folder cannot be used.
    pub async fn ensure_tree(&self, run: &Run) -> Result<(), GitError> {
        let path = self.folder.tree();
        let begun = run.baseline.is_some() && run.state != RepairState::Idle;
        if !begun {
            return Ok(());
        }
        if path.is_dir() && self.git.knows_tree(&path).await? {
            return self.tree().unlock_tree().await;
        }
        if path.exists() {
            self.git.work_tree_remove(&path).await?;
        }
        let commit = run.applied.as_ref().unwrap_or(&run.contract.base);
        self.git.work_tree_add(&path, commit).await?;
        Ok(())
    }

    /// Has the rig recover the place.
    ///
    /// # Errors
    /// The place does not work, and why.
    pub async fn recover_rig(&self) -> Result<String, RigFailure> {
        let extent = RecoverExtent::Recover;
        let command = Command::Recover(RecoverCommand { place: self.place.clone(), extent });
        match self.clock.during(self.rig.execute(command)).await {
            Ok(Reply::Run(ended)) if ended.exit_code == jig_model::exit::PASS => {
                Ok(ended.verdict.summary)
            }
            Ok(Reply::Run(ended)) => Err(RigFailure::new(ended.verdict.summary)),
            Ok(_) => Err(RigFailure::new("the answer does not fit the command")),
            Err(refusal) => Err(RigFailure::refused(refusal)),
        }
    }
}
