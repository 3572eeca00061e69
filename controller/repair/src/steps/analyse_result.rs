//! RESULT_ANALYSIS: who is to blame for the result, and, where the tests pass, everything that a proof
//! must show: a clean build, the failure without the patch, the held-out plan.

use jig_model::chain;
use jig_model::command::PlanText;

use crate::git::GitError;
use crate::journal::{Fact, FailedBaseline, StepResult};
use crate::localise::MeasuredCoverage;
use crate::machine::RepairEvent;
use crate::policy::{is_test, may_write};
use crate::proof::{PASSES, PlanRun, ProofFacts, proven};
use crate::recovery::ErrorClass;
use crate::run::{Attempt, Run};
use crate::setup::{PlanResult, RepairSetup, RigFailure};
use crate::steps::{failed, if_changed, if_ended};
use crate::test_code::function_names;
use crate::tests_ran::{KnownTests, missing_tests};

/// Most runs of a plan on a real board: the base, a clean build, the held-out plan.
pub(super) const MAX_FLASHES: u8 = 3;

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
        Err(Unproven::Rig(failure)) => if_ended(&failure).unwrap_or_else(|| {
            failed(RepairEvent::EnvironmentBlamed, ErrorClass::TestEnvFailure, failure.why)
        }),
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
    let runs =
        here.iter().map(|attempt| kept(setup, run, &attempt.run)).collect::<Result<_, _>>()?;
    // What git does beside a run of the rig costs no time of its own.
    let (cleaned, reverted) =
        tokio::join!(cleaned(setup, run), judged(setup, &setup.plan, base_image));
    cleaned.map_err(|error| Unproven::Other(chain(&error)))?;
    let reverted = reverted?;
    let foreign_files =
        setup.foreign_files(run).map_err(|error| Unproven::Other(error.to_string()))?;
    let clean_build = rebuilt(setup, run, image).await?;
    if let Some(ended) = if_changed(setup, run) {
        return Err(Unproven::Changed(ended));
    }
    let (changed, held_out) = tokio::join!(changed(setup, run), async {
        match &setup.held_out {
            Some(plan) => judged(setup, plan, image).await.map(Some),
            None => Ok(None),
        }
    });
    let held_out = held_out?;
    let (changed, rewritten) = changed.map_err(|error| Unproven::Other(chain(&error)))?;
    let policy = setup.policy.for_run(run);
    let protected = |files: Vec<String>| -> Vec<String> {
        files.into_iter().filter(|file| !may_write(file, &policy)).collect()
    };
    let (changed_protected, rewritten_protected) = (protected(changed), protected(rewritten));
    let baseline = kept(setup, run, baseline)?;
    let reverted = Some(reverted);
    let (tests_not_run, not_measured) = match compared(setup, run, base_image, image).await? {
        Executed::NotMeasurable => (None, None),
        Executed::Incomplete(limits) => (None, Some(limits)),
        Executed::Compared(missing) => (Some(missing), None),
    };
    Ok(ProofFacts {
        baseline,
        runs,
        clean_build,
        changed_protected,
        reverted,
        held_out,
        tests_not_run,
        rewritten_protected,
        foreign_files,
        not_measured,
    })
}

/// Lists the files that the candidate changes of the base, and those that its build rewrites beside
/// them: that of the base leaves them as they are.
async fn changed(setup: &RepairSetup, run: &Run) -> Result<(Vec<String>, Vec<String>), GitError> {
    let base = &run.contract.base;
    // The repository of the user has to have the commit: the branch will be made there.
    let changed = setup.git.files_between(base, run.applied.as_ref().unwrap_or(base)).await?;
    let mut rewritten = setup.tree().changed_files().await?;
    rewritten.retain(|file| !run.rewritten.contains(file));
    Ok((changed, rewritten))
}

/// What the tests execute without and with the patch.
enum Executed {
    /// It cannot be measured here.
    NotMeasurable,
    /// It could be measured at the baseline, and now it cannot.
    Incomplete(String),
    /// Functions that are executed without the patch and not with it.
    Compared(Vec<String>),
}

/// Compares what the tests execute without and with the patch.
async fn compared(
    setup: &RepairSetup,
    run: &Run,
    base_image: &str,
    image: &str,
) -> Result<Executed, Unproven> {
    let failed = |error: &dyn std::error::Error| Unproven::Other(chain(error));
    let files = setup.files(run).await.map_err(|error| failed(&error))?;
    let Some(base) = setup.covered(run, base_image, files, 1).await? else {
        return Ok(Executed::NotMeasurable);
    };
    // An image that never was complete says nothing; one that is no longer is made so by the patch.
    if !base.complete {
        let before = setup.measured_tests(run, base_image);
        return Ok(match before.is_some_and(|measured| measured.complete) {
            true => Executed::Incomplete(base.limits.join("; ")),
            false => Executed::NotMeasurable,
        });
    }
    let Some(patched) = setup.covered(run, image, files, PASSES).await? else {
        return Ok(Executed::NotMeasurable);
    };
    if !patched.complete {
        return Ok(Executed::Incomplete(patched.limits.join("; ")));
    }
    let sources = setup.base_sources(run).await.map_err(|error| failed(&error))?;
    let policy = setup.policy.for_run(run);
    let known = known_tests(setup, run, base_image);
    let is_test = |file: &str| is_test(file, &policy);
    let missing = missing_tests(&base, &patched, &sources, is_test, &known);
    Ok(Executed::Compared(missing))
}

/// Returns what is known of the tests of the baseline.
fn known_tests(setup: &RepairSetup, run: &Run, base_image: &str) -> KnownTests {
    let shown = run.baseline.as_ref().map(|baseline| setup.folder.result(&baseline.run));
    let shown: Option<PlanResult> = shown.and_then(|path| setup.kept(run, &path).ok());
    let cases = shown.iter().flat_map(|result| &result.verdict.tests.cases);
    let names = cases.flat_map(|case| function_names(&case.name)).collect();
    let measured = setup.measured_tests(run, base_image).map(MeasuredCoverage::from);
    let lines = measured.into_iter().flat_map(|measured| measured.tests);
    KnownTests { names, lines: lines.flat_map(|test| test.lines).collect() }
}

fn kept(setup: &RepairSetup, run: &Run, id: &str) -> Result<PlanRun, Unproven> {
    let path = setup.folder.result(id);
    let result: PlanResult = setup
        .kept(run, &path)
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
    tree.clean_ignored().await?;
    // What earlier builds have left in their home is no part of base and patch.
    setup.drop_build_home().await
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

#[cfg(test)]
mod tests {
    use jig_model::Cause;

    use super::*;
    use crate::setup_for_tests::{ScriptedBoard, TestSetup};

    #[tokio::test]
    async fn files_that_a_candidate_changes_are_told_from_those_that_its_build_rewrites() {
        let test = TestSetup::new(|_| ScriptedBoard::Ends(Cause::Passed)).await;
        let (tree, mut run) = (test.setup.tree(), test.run());
        let write = |file: &str| std::fs::write(test.setup.folder.tree().join(file), "other\n");
        write("link.ld").unwrap();
        tree.run(["add", "--all"]).await.unwrap();
        run.applied = Some(tree.commit("a candidate").await.unwrap());
        write("src/ring.c").unwrap();
        let both = || (vec!["link.ld".to_owned()], vec!["src/ring.c".to_owned()]);
        assert_eq!(changed(&test.setup, &run).await.unwrap(), both());
        run.rewritten.insert("src/ring.c".to_owned());
        assert_eq!(changed(&test.setup, &run).await.unwrap(), (both().0, Vec::new()));
    }
}
