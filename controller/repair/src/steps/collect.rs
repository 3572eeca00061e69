//! RESULT_COLLECTION: what the runs of the plan have left is complete: logs, rows, image.

use crate::journal::StepResult;
use crate::machine::{RepairEvent, RepairSubState};
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::{PlanResult, RepairSetup};
use crate::steps::{failed, part_done};

pub(super) async fn run(
    setup: &RepairSetup,
    run: &Run,
    part: Option<RepairSubState>,
) -> StepResult {
    let missing =
        |why: String| failed(RepairEvent::ArtifactsMissing, ErrorClass::ArtifactMissing, why);
    let Some(attempt) = run.attempts.last() else {
        return missing("no run of the plan is recorded".to_owned());
    };
    let path = setup.folder.result(&attempt.run);
    let result: PlanResult = match setup.kept(run, &path) {
        Ok(result) => result,
        Err(error) => return missing(format!("{}: {error}", path.display())),
    };
    match part {
        Some(RepairSubState::FetchLogs) => {
            let mut logs = result.verdict.evidence.iter().map(|one| result.dir.join(&one.file));
            match logs.find(|log| !log.is_file()) {
                Some(log) => missing(format!("{} is missing", log.display())),
                None => part_done(format!("the logs are in {}", result.dir.display())),
            }
        }
        Some(RepairSubState::Normalize) => {
            let counts = attempt.counts;
            part_done(format!("{} of {} tests passed", counts.passed, counts.total))
        }
        _ => {
            let image = setup.folder.image(&result.image);
            if run.image.as_ref() != Some(&result.image) || setup.made_image(&result.image).is_err()
            {
                return missing(format!("{} is not what was tested", image.display()));
            }
            let reason = "logs, results and image belong together";
            StepResult::of(RepairEvent::ResultNormalized, reason)
        }
    }
}

#[cfg(test)]
#[path = "collect_tests.rs"]
mod tests;
