//! RESULT_ANALYSIS: who is to blame for the result, and, where the tests pass, everything that a proof
//! must show: a clean build, the failure without the patch, the held-out plan.

use jig_model::chain;
use jig_model::command::PlanText;

use crate::git::GitError;
use crate::journal::{Fact, FailedBaseline, StepResult};
use crate::machine::RepairEvent;
use crate::policy::is_test;
use crate::proof::{PASSES, PlanRun, ProofFacts, proven};
use crate::recovery::ErrorClass;
use crate::run::{Attempt, Run};
use crate::setup::{PlanResult, RepairSetup, RigFailure};
use crate::steps::{failed, if_changed};
use crate::tests_ran::missing_tests;

/// Says why a proof could not be looked at.
enum Unproven {
    Rig(RigFailure),
    Changed(StepResult),
    Other(String),
}

impl From<RigFailure> for Unproven {
    fn from(failure: RigFailure) -> Self {
        Self::Rig(failure)
    }
}

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    // No patch is proposed twice, so its identity names the candidate.
    let patch = run.proposed.as_ref().map(|proposed| &proposed.patch);
    let here: Vec<_> = run.attempts.iter().filter(|one| Some(&one.patch) == patch).collect();
    let Some(last) = here.last() else {
        let why = "the candidate was not tested";
        return failed(RepairEvent::DecisionFailed, ErrorClass::AnalysisFailure, why);
    };
    if last.diagnostic {
        let shown = match &last.signature {
            Some(signature) => format!("with the diagnostic change it fails: {signature}"),
            // A print may well hide a failure of timing; it repairs none.
            None => "with the diagnostic change it passes".to_owned(),
        };
        return StepResult::of(RepairEvent::DecisionProduced, shown);
    }
    let in_a_row = here.iter().rev().take_while(|one| one.signature.is_none()).count();
    if in_a_row < PASSES {
        let counts = last.counts;
        let signature = last.signature.as_deref().unwrap_or("it passed, but not often enough");
        let reason = format!(
            "the firmware is to blame: {} of {} tests passed: {signature}",
            counts.passed, counts.total
        );
        return StepResult::of(RepairEvent::DecisionProduced, reason);
    }
    match proof(setup, run, &here).await {
        Ok(facts) => {
            let reason = match proven(&facts) {
                Ok(_) => "the repair is proven".to_owned(),
                Err(lacks) => lacks.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            };
            StepResult::of(RepairEvent::DecisionProduced, reason)
                .with(Fact::Proved(Box::new(facts)))
        }
        Err(Unproven::Rig(failure)) if failure.cancelled => {
            StepResult::of(RepairEvent::Abort, failure.why)
        }
        Err(Unproven::Rig(failure)) => {
            failed(RepairEvent::EnvironmentBlamed, ErrorClass::TestEnvFailure, failure.why)
        }
        Err(Unproven::Changed(ended)) => ended,
        Err(Unproven::Other(why)) => {
            failed(RepairEvent::DecisionFailed, ErrorClass::AnalysisFailure, why)
        }
    }
}

async fn proof(setup: &RepairSetup, run: &Run, here: &[&Attempt]) -> Result<ProofFacts, Unproven> {
    let Some(FailedBaseline { run: baseline, image: base_image, .. }) = &run.baseline else {
        return Err(Unproven::Other("there is no baseline".to_owned()));
    };
    let image = run.image.as_deref().unwrap_or_default();
    let runs = here.iter().map(|attempt| kept(setup, &attempt.run)).collect::<Result<_, _>>()?;
    // What git does beside a run of the rig costs no time of its own.
    let (cleaned, reverted) =
        tokio::join!(cleaned(setup, run), judged(setup, &setup.plan, base_image));
    cleaned.map_err(|error| Unproven::Other(chain(&error)))?;
    let reverted = reverted?;
    let clean_build = rebuilt(setup, run, image).await?;
    if let Some(ended) = if_changed(setup, run) {
        return Err(Unproven::Changed(ended));
    }
    let tree = setup.tree();
    let (changed, held_out) = tokio::join!(tree.changed_files(), async {
        match &setup.held_out {
            Some(plan) => judged(setup, plan, image).await.map(Some),
            None => Ok(None),
        }
    });
    let held_out = held_out?;
    let changed_protected = changed.map_err(|error| Unproven::Other(chain(&error)))?;
    let baseline = kept(setup, baseline)?;
    let reverted = Some(reverted);
    let tests_not_run = tests_not_run(setup, run, base_image, image).await?;
    Ok(ProofFacts {
        baseline,
        runs,
        clean_build,
        changed_protected,
        reverted,
        held_out,
        tests_not_run,
    })
}

/// Compares what the tests execute without and with the patch.
async fn tests_not_run(
    setup: &RepairSetup,
    run: &Run,
    base_image: &str,
    image: &str,
) -> Result<Option<Vec<String>>, Unproven> {
    let failed = |error: &dyn std::error::Error| Unproven::Other(chain(error));
    let files = setup.files(run).await.map_err(|error| failed(&error))?;
    let Some(base) = setup.covered(base_image, files, 1).await? else { return Ok(None) };
    // An image that never was complete says nothing; one that is no longer is made so by the patch.
    if !base.complete {
        return Ok(None);
    }
    let Some(patched) = setup.covered(image, files, PASSES).await? else { return Ok(None) };
    if !patched.complete {
        return Ok(Some(patched.limits));
    }
    let sources = setup.base_sources(run).await.map_err(|error| failed(&error))?;
    let policy = setup.policy.for_run(run);
    let missing = missing_tests(&base, &patched, &sources, |file| is_test(file, &policy));
    Ok(Some(missing))
}

fn kept(setup: &RepairSetup, run: &str) -> Result<PlanRun, Unproven> {
    let path = setup.folder.result(run);
    let result: PlanResult = setup
        .folder
        .read_json(&path)
        .map_err(|error| Unproven::Other(format!("{}: {error}", path.display())))?;
    Ok(result.for_proof())
}

async fn judged(setup: &RepairSetup, plan: &PlanText, image: &str) -> Result<PlanRun, Unproven> {
    Ok(setup.test(plan, image).await?.for_proof())
}

/// Leaves nothing but base and patch in the work tree.
async fn cleaned(setup: &RepairSetup, run: &Run) -> Result<(), GitError> {
    let commit = run.applied.as_ref().unwrap_or(&run.contract.base);
    let tree = setup.tree();
    setup.held.forget();
    tree.reset_files(commit).await?;
    tree.clean_ignored().await
}

/// Builds base and patch once more, with nothing else in the folder; tells whether that image is the
/// one that passed, or passes, too.
async fn rebuilt(setup: &RepairSetup, run: &Run, image: &str) -> Result<bool, Unproven> {
    let log = setup.folder.iteration(run.iteration).join("clean-build.log");
    let built = match setup.build(&setup.folder.tree(), &log).await {
        Ok(built) => built,
        Err(error) if error.blames_build() => return Ok(false),
        Err(error) => return Err(Unproven::Other(chain(&error))),
    };
    // A build that writes its time into the image makes another one each time. On a real board an
    // approval holds for one image alone.
    let may_run = !(setup.rig.is_real() && setup.policy.approve_flash);
    Ok(built.sha256 == image || may_run && judged(setup, &setup.plan, &built.sha256).await?.passed)
}
