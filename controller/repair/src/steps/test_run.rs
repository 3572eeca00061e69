//! TEST_RUN: the plan runs with the candidate; where it passes, as often in a row as a proof needs.

use crate::convergence::ConvergenceCriteria;
use crate::journal::{Fact, StepResult};
use crate::machine::RepairEvent;
use crate::proof::PASSES;
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::RepairSetup;
use crate::steps::{failed, if_ended};

/// How often in a row a candidate passes: a result is stable that comes as often as the preset wants it.
pub(super) fn passes(setup: &RepairSetup) -> usize {
    PASSES.max(ConvergenceCriteria::of(setup.task.preset).stable_iterations_required)
}

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let Some(image) = &run.image else {
        let why = "there is no image to test";
        return failed(RepairEvent::RunnerFailed, ErrorClass::ArtifactMissing, why);
    };
    let diagnostic = run.proposed.as_ref().is_some_and(|proposed| proposed.diagnostic);
    let passes = if diagnostic { 1 } else { passes(setup) };
    let known = run.baseline.as_ref().map_or(0, |baseline| baseline.counts.total);
    let mut done = StepResult::of(RepairEvent::TestFinished, String::new());
    let mut recoveries = Vec::new();
    for nth in 1..=passes {
        let result = match setup.test(&setup.plan, image).await {
            Ok(result) => result,
            Err(failure) => {
                return if_ended(&failure).unwrap_or_else(|| {
                    failed(RepairEvent::RunnerFailed, ErrorClass::TestEnvFailure, failure.why)
                });
            }
        };
        let counts = result.counts(known);
        let signature = result.signature();
        let run = result.run.clone();
        done.evidence = result.evidence();
        done.reason = match &signature {
            None => format!("passed {nth} times in a row"),
            Some(signature) if nth == 1 => format!("failed: {signature}"),
            Some(signature) => format!("passed {} times, then failed: {signature}", nth - 1),
        };
        recoveries.extend(result.recovered());
        let ended = signature.is_some();
        done.facts.push(Fact::Tested { run, counts, signature });
        if ended {
            break;
        }
    }
    for how in recoveries {
        done.reason += &format!("; {how}");
    }
    done
}
