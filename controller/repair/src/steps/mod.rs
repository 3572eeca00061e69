//! The steps: the work of each state of a run. No step knows another one; what they share is in
//! [`crate::setup`], and what they learn from each other is in the journal.

mod analyse_code;
mod analyse_result;
mod apply;
mod build_run;
mod build_setup;
mod collect;
mod converge;
mod explain;
mod impact;
mod init;
mod propose;
mod recover;
mod report;
mod test_run;
mod test_setup;

use std::time::Duration;

use crate::drive::{RepairStep, RepairSteps, StepFuture};
use crate::journal::{Digest, Effect, Fact, StepResult};
use crate::machine::{RepairEvent, RepairState, RepairSubState};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::{RepairSetup, RigFailure};

pub use report::{RepairDocument, RepairTransition, exit_code, look_at, warning};

/// How long a step may take that starts nothing.
const SHORT: Duration = Duration::from_secs(120);

/// The steps of a run.
pub struct Steps(
    /// What they share.
    pub RepairSetup,
);

/// What a step does: a future of the run's state.
type Work = for<'a> fn(&'a RepairSetup, &'a Run, Option<RepairSubState>) -> StepFuture<'a>;

struct Step<'s> {
    setup: &'s RepairSetup,
    part: Option<RepairSubState>,
    effect: Effect,
    flashes: u8,
    limit: Duration,
    work: Work,
}

impl RepairStep for Step<'_> {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn flashes(&self) -> u8 {
        self.flashes
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn run<'a>(&'a self, run: &'a Run) -> StepFuture<'a> {
        Box::pin(async move {
            let mut result = (self.work)(self.setup, run, self.part).await;
            let flashes = self.setup.flashes.take();
            result.facts.extend(std::iter::repeat_n(Fact::Flashed, flashes));
            let kept = self.setup.kept.take().into_iter();
            result.facts.extend(kept.map(|(file, sha256)| Fact::Kept { file, sha256 }));
            let waited = self.setup.clock.take().as_millis();
            if waited > 0 {
                let ms = u64::try_from(waited).unwrap_or(u64::MAX);
                result.facts.push(Fact::Waited { ms });
            }
            result
        })
    }
}

impl RepairSteps for Steps {
    fn step(&self, state: RepairState, part: Option<RepairSubState>) -> Box<dyn RepairStep + '_> {
        use RepairState as S;
        let setup = &self.0;
        // The candidate, and the base as a control.
        let build = setup.task.build.timeout * 2 + SHORT;
        // The rig ends its runs itself; this is for a rig that does not.
        let rig = Duration::from_secs(setup.task.limits.wall_s) + SHORT;
        let explained = SHORT + setup.analyst.as_ref().map_or(Duration::ZERO, |one| one.time());
        let (effect, limit, work): (_, _, Work) = match state {
            S::Init => (Effect::Device, rig, |setup, run, _| Box::pin(init::run(setup, run))),
            S::CodeAnalysis => (Effect::Idempotent, explained, |setup, run, part| {
                Box::pin(analyse_code::run(setup, run, part))
            }),
            S::PatchGeneration => {
                (Effect::Idempotent, rig, |setup, run, _| Box::pin(propose::run(setup, run)))
            }
            S::PatchApply => {
                (Effect::Idempotent, SHORT, |setup, run, _| Box::pin(apply::run(setup, run)))
            }
            S::BuildSetup => {
                (Effect::Idempotent, SHORT, |setup, run, _| Box::pin(build_setup::run(setup, run)))
            }
            S::BuildRun => {
                (Effect::Idempotent, build, |setup, run, _| Box::pin(build_run::run(setup, run)))
            }
            S::TestSetup => {
                // The board is used by the first part alone; the others decide.
                let first = part == state.sub_states().first().copied();
                let effect = if first { Effect::Device } else { Effect::Pure };
                (effect, rig, |setup, run, part| Box::pin(test_setup::run(setup, run, part)))
            }
            S::TestRun => {
                (Effect::Device, rig, |setup, run, _| Box::pin(test_run::run(setup, run)))
            }
            S::ResultCollection => {
                (Effect::Pure, SHORT, |setup, run, part| Box::pin(collect::run(setup, run, part)))
            }
            S::ResultAnalysis => {
                (Effect::Device, rig, |setup, run, _| Box::pin(analyse_result::run(setup, run)))
            }
            S::ConvergenceCheck => {
                (Effect::Pure, SHORT, |setup, run, _| Box::pin(converge::run(setup, run)))
            }
            S::ErrorRecovery => {
                (Effect::Idempotent, rig, |setup, run, _| Box::pin(recover::run(setup, run)))
            }
            S::Success | S::Failure | S::Aborted | S::Idle => {
                (Effect::Idempotent, SHORT, |setup, run, _| Box::pin(report::run(setup, run)))
            }
        };
        let flashes = match state {
            _ if !setup.rig.is_real() => 0,
            S::Init => init::MAX_FLASHES,
            S::TestRun => u8::try_from(test_run::passes(setup)).unwrap_or(u8::MAX),
            S::ResultAnalysis => analyse_result::MAX_FLASHES,
            _ => 0,
        };
        Box::new(Step { setup, part, effect, flashes, limit, work })
    }
}

/// Makes the result of a step that failed.
fn failed(event: RepairEvent, class: ErrorClass, why: impl Into<String>) -> StepResult {
    StepResult::of(event, why).with(Fact::Failed { class })
}

/// Ends a run whose own copies of the task's files are not those that it was begun with, or whose results
/// are not those that it has kept: what it is held to, or has seen, is not known.
fn if_changed(setup: &RepairSetup, run: &Run) -> Option<StepResult> {
    let copy = setup.folder.changed_copy(&run.contract).map(|path| (path, "was begun with"));
    let changed = copy.and_then(|changed| match changed {
        (None, _) => Ok((setup.changed_kept(run)?, "has written")),
        (Some(_), _) => Ok(changed),
    });
    let why = match changed {
        Ok((None, _)) => return None,
        Ok((Some(path), made)) => format!("{} is not what the run {made}", path.display()),
        Err(error) => format!("the run's own files cannot be read: {error}"),
    };
    Some(failed(RepairEvent::Abort, ErrorClass::PolicyViolation, why))
}

/// Ends a run that the user has called off, or whose image is not the one that was built.
fn if_ended(failure: &RigFailure) -> Option<StepResult> {
    let why = failure.why.clone();
    if failure.cancelled {
        return Some(StepResult::of(RepairEvent::Abort, why));
    }
    failure.changed_file.then(|| failed(RepairEvent::Abort, ErrorClass::PolicyViolation, why))
}

/// Returns what an answer is bound to; any change of it voids the answer.
fn digest_of(parts: &[&str]) -> String {
    Digest::of(parts.join("\n").as_bytes()).to_string()
}

/// Makes the result of a part of a state behind which the next part follows.
fn part_done(reason: impl Into<String>) -> StepResult {
    StepResult { event: None, ..StepResult::of(RepairEvent::Abort, reason) }
}

#[cfg(test)]
#[path = "journey_tests.rs"]
mod journey_tests;
