//! TEST_SETUP: the place is fit for use, and a real board may be flashed. The image itself is put on
//! the board by the run of the plan, which reads it back.

use jig_model::command::{CheckCommand, Command, Reply};

use crate::journal::{Fact, StepResult};
use crate::machine::{RepairEvent, RepairSubState};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::{RepairSetup, RigFailure};
use crate::steps::{digest_of, failed, if_ended, part_done};

/// How long a board that another process uses is waited for, in milliseconds.
const WAIT_MS: u64 = 10 * 60 * 1000;

pub(super) async fn run(
    setup: &RepairSetup,
    run: &Run,
    part: Option<RepairSubState>,
) -> StepResult {
    match part {
        Some(RepairSubState::ResourceAlloc) => match checked(setup).await {
            Ok(state) => part_done(format!("the place is {state}")),
            Err(failure) => not_ready(failure),
        },
        Some(RepairSubState::FlashOrDeploy) => may_flash(setup, run),
        // The approval of a person may have come hours behind the first check.
        _ if setup.rig.is_real() => match checked(setup).await {
            Ok(state) => ready(&format!("the place is {state}, and ready for the image")),
            Err(failure) => not_ready(failure),
        },
        _ => ready("the place is ready for the image"),
    }
}

fn ready(why: &str) -> StepResult {
    StepResult::of(RepairEvent::EnvironmentReady, why)
}

fn not_ready(failure: RigFailure) -> StepResult {
    if let Some(ended) = if_ended(&failure) {
        return ended;
    }
    let class = if failure.wrong_input {
        ErrorClass::UnhandledException
    } else {
        ErrorClass::TestEnvFailure
    };
    failed(RepairEvent::EnvironmentFailed, class, failure.why)
}

/// Runs the health checks of the place.
async fn checked(setup: &RepairSetup) -> Result<String, RigFailure> {
    let check = CheckCommand { place: setup.place.clone(), wait_ms: Some(WAIT_MS) };
    match setup.clock.during(setup.rig.execute(Command::Check(check))).await {
        Ok(Reply::Checked(reply)) if reply.usable => Ok(reply.state),
        Ok(Reply::Checked(reply)) => {
            let bad = reply.checks.iter().find(|check| !check.ok);
            let why = bad.map_or(reply.state, |check| check.detail.clone());
            Err(RigFailure::new(format!("the place is not fit for use: {why}")))
        }
        Ok(_) => Err(RigFailure::new("the answer does not fit the command")),
        Err(refusal) => Err(RigFailure::refused(refusal)),
    }
}

/// A real board waits for an approval that is bound to patch, image and board.
fn may_flash(setup: &RepairSetup, run: &Run) -> StepResult {
    let diff = run.proposed.as_ref().map(|p| p.diff.as_str()).unwrap_or_default();
    let image = run.image.as_deref().unwrap_or_default();
    let digest = digest_of(&["flash", diff, image, setup.place.as_str()]);
    if let Some(why) = &run.rejected {
        let why = format!("a person refused to flash the board: {why}");
        return StepResult::of(RepairEvent::Abort, why);
    }
    if setup.rig.is_real() && setup.policy.approve_flash && !run.approved.contains(&digest) {
        let why = format!("flashing {} waits for an approval", setup.place);
        return part_done(why).with(Fact::Waits { digest });
    }
    part_done("the image may be put on the board")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_of_the_rig_is_recovered_as_one() {
        let failure = RigFailure::new("no answer");
        let class = |failure| match not_ready(failure).facts.as_slice() {
            [Fact::Failed { class }] => Some(*class),
            _ => None,
        };
        assert_eq!(class(failure.clone()), Some(ErrorClass::TestEnvFailure));
        let wrong = RigFailure { wrong_input: true, ..failure.clone() };
        assert_eq!(class(wrong), Some(ErrorClass::UnhandledException));
        let cancelled = RigFailure { cancelled: true, ..failure };
        assert_eq!(class(cancelled.clone()), None);
        assert_eq!(not_ready(cancelled).event, Some(RepairEvent::Abort));
    }
}
