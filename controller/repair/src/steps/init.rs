//! INIT: the sandbox, the work tree, the build without a patch, and whether there is a failure to
//! repair: the required tests run three times before anything is changed.

use std::collections::BTreeSet;

use jig_model::chain;
use jig_model::program::ProgramError;

use crate::git::GitError;
use crate::journal::{Fact, FailedBaseline, StepResult, now_ms};
use crate::limits::limit_reached;
use crate::machine::RepairEvent;
use crate::policy::{Policy, is_test};
use crate::recovery::ErrorClass;
use crate::redact::Redactor;
use crate::run::Run;
use crate::setup::{BuildError, MeasuredTests, PlanResult, RepairSetup, RigFailure, most_beside};
use crate::steps::{failed, if_ended};
use crate::test_code::{TestCode, printing_code, test_files};
use crate::toolchain::MissingProgram;

/// Runs of the baseline.
const RUNS: usize = 3;

/// Runs that must fail in the same way.
const FAILURES: usize = 2;

/// Recoveries of the rig before the run is given up.
const RECOVERIES: usize = 2;

/// Most runs of a plan: those of the baseline, and each for which the rig failed.
pub(super) const MAX_FLASHES: u8 = (RUNS + RECOVERIES + 1) as u8;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    if let Err(error) = Policy::check_rules() {
        return stop(error.to_string());
    }
    if let Err(error) = Redactor::check_rules() {
        return stop(error.to_string());
    }
    // A step that was cut off has flashed the board, too.
    if let Some(limit) = limit_reached(run, now_ms()) {
        return stop(limit.to_string());
    }
    let gap =
        async { if setup.policy.sandbox { setup.programs.sandbox_gap().await } else { None } };
    // Each waits for another program.
    let tree = setup.make_tree(&run.contract.base);
    let (gap, tree, files) = tokio::join!(gap, tree, setup.files(run));
    if let Some(gap) = gap {
        let help = "write `sandbox = false` in the policy to build without one";
        return stop(format!("builds cannot be confined on this host: {gap} ({help})"));
    }
    if let Err(error) = tree {
        return stop(format!("no work tree can be made: {}", chain(&error)));
    }
    if let Err(error) = files {
        return stop(format!("the files cannot be listed: {}", chain(&error)));
    }
    if let Err(error) = setup.base_sources(run).await {
        return stop(format!("the sources cannot be read: {}", chain(&error)));
    }
    if let Err(error) = setup.keep_base_files() {
        return stop(format!("the files of the work tree cannot be read: {error}"));
    }
    let log = setup.folder.path().join("baseline-build.log");
    let built = match setup.build(&setup.folder.tree(), &log).await {
        Ok(built) => built,
        Err(error) => {
            let why = chain(&error);
            let fix = match &error {
                BuildError::Program(ProgramError::Missing { program, .. }) => {
                    MissingProgram { name: program.clone() }.fix()
                }
                _ => String::new(),
            };
            let mut ended =
                stop(format!("the repository does not build without a patch: {why}{fix}"));
            ended.evidence = vec![setup.evidence_of_build(&log)];
            return ended;
        }
    };
    // What git does beside a run of the rig costs no time of its own.
    let tree = setup.tree();
    let (results, rewritten) = tokio::join!(baseline(setup, &built.sha256), tree.changed_files());
    let results = match results {
        Ok(results) => results,
        Err(ended) => return ended,
    };
    let mut judged = judged(&results, built.sha256.clone());
    match rewritten {
        Ok(files) if files.is_empty() => {}
        Ok(files) => {
            let names: Vec<_> = files.iter().map(String::as_str).collect();
            let what = some(&names);
            judged.reason =
                format!("{}; the build rewrites {what}, which git tracks", judged.reason);
            judged.facts.push(Fact::Rewritten { files: files.into_iter().collect() });
        }
        Err(error) => return stop(format!("the work tree cannot be read: {}", chain(&error))),
    }
    let baseline = judged.facts.iter().find_map(|fact| match fact {
        Fact::Baseline(baseline) => Some(baseline.signature.clone()),
        _ => None,
    });
    if let Some(signature) = baseline {
        // A core that computes without a pause is traced at a small part of its speed.
        let most = most_beside(&results);
        let measured = measured(setup, run, &built.sha256, &signature);
        let measured = tokio::time::timeout(most, measured).await;
        let late = |_| RigFailure::new("it takes too long to measure");
        let mut found = None;
        match measured.map_err(late).flatten() {
            Ok((said, measured)) => {
                judged.reason = format!("{}; {said}", judged.reason);
                found = measured;
            }
            Err(failure) if failure.cancelled || failure.changed_file => {
                return if_ended(&failure).unwrap_or_else(|| stop(failure.why));
            }
            // What is not measured is told by the call graph.
            Err(failure) => {
                let why = failure.why;
                judged.reason =
                    format!("{}; what each test executes is unknown: {why}", judged.reason);
            }
        }
        match test_code(setup, run, &results, found.as_ref()).await {
            Ok(code) => {
                let files: Vec<_> = code.files.keys().map(String::as_str).collect();
                if !files.is_empty() {
                    judged.reason = format!("{}; tests are in {}", judged.reason, some(&files));
                }
                judged.facts.push(Fact::TestCode(code));
            }
            Err(error) => return stop(format!("the files cannot be listed: {}", chain(&error))),
        }
    }
    if setup.task.build.artifact.is_none() {
        judged.reason += &format!("; the image is {}", built.name.display());
    }
    if !setup.policy.sandbox {
        judged.reason += "; builds run without a sandbox, as the policy says";
    }
    judged
}

/// Runs the tests without a patch. The rig is recovered meanwhile where it fails.
async fn baseline(setup: &RepairSetup, image: &str) -> Result<Vec<PlanResult>, StepResult> {
    let mut results = Vec::new();
    let mut recoveries = 0;
    while results.len() < RUNS {
        let failure = match setup.test(&setup.plan, image).await {
            Ok(result) => {
                results.push(result);
                continue;
            }
            Err(failure) => failure,
        };
        if let Some(ended) = if_ended(&failure) {
            return Err(ended);
        }
        if failure.wrong_input {
            return Err(stop(failure.why));
        }
        let recovered = setup.recover_rig().await;
        recoveries += 1;
        if let Err(again) = recovered {
            return Err(rig_failed(format!("{}; {}", failure.why, again.why)));
        }
        if recoveries > RECOVERIES {
            return Err(rig_failed(failure.why));
        }
    }
    Ok(results)
}

/// Ends a run that cannot even begin.
fn stop(why: String) -> StepResult {
    failed(RepairEvent::UnhandledError, ErrorClass::UnhandledException, why)
}

/// Has the rig tell what each test executes, and says whether it did.
async fn measured(
    setup: &RepairSetup,
    run: &Run,
    image: &str,
    signature: &str,
) -> Result<(String, Option<MeasuredTests>), RigFailure> {
    if !setup.rig.measures_coverage() {
        return Ok(("what each test executes is not measured at this place".to_owned(), None));
    }
    let files = setup.files(run).await.map_err(|error| RigFailure::new(chain(&error)))?;
    let measured = setup.measure_tests(run, (image, signature), files).await?;
    let tests = &measured.tests;
    let failed = tests.iter().filter(|test| test.failed).count();
    let said = if failed == 0 {
        "no failed test is a function of its name, so what each executes is unknown".to_owned()
    } else {
        format!("what {} tests execute is measured, {failed} of which fail", tests.len())
    };
    Ok((said, Some(measured)))
}

/// Finds the code that decides what the tests say.
async fn test_code(
    setup: &RepairSetup,
    run: &Run,
    results: &[PlanResult],
    measured: Option<&MeasuredTests>,
) -> Result<TestCode, GitError> {
    let sources = setup.base_sources(run).await?;
    let cases = results.iter().flat_map(|result| &result.verdict.tests.cases);
    let cases: BTreeSet<_> = cases.map(|case| case.name.as_str()).collect();
    let functions = measured.iter().flat_map(|measured| &measured.functions);
    let functions = functions.flat_map(|(file, names)| names.iter().map(move |name| (file, name)));
    let files = test_files(&sources, functions, &cases);
    let printing = measured.map(|measured| {
        let mut known = run.clone();
        known.test_code.files.clone_from(&files);
        let policy = setup.policy.for_run(&known);
        let (by_test, executed) = (measured.clone().into(), measured.executed());
        let is_test = |file: &str| is_test(file, &policy);
        printing_code(&sources, is_test, &cases, &by_test, &executed)
    });
    Ok(TestCode { files, printing: printing.unwrap_or_default() })
}

/// Most names in a reason.
const MAX_NAMES: usize = 5;

fn some(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Ends a run whose rig does not work: nothing is known of the firmware.
fn rig_failed(why: String) -> StepResult {
    failed(RepairEvent::Abort, ErrorClass::TestEnvFailure, format!("the rig failed: {why}"))
}

/// Says whether there is a failure to repair.
fn judged(results: &[PlanResult], image: String) -> StepResult {
    let signatures: Vec<_> = results.iter().map(PlanResult::signature).collect();
    let refused = |why: String| StepResult::of(RepairEvent::BaselineRefused, why);
    if signatures.iter().all(Option::is_none) {
        return refused(format!("the tests pass without a patch, {RUNS} times of {RUNS}"));
    }
    let same = |a: &&Option<String>| {
        a.is_some() && signatures.iter().filter(|b| b == a).count() >= FAILURES
    };
    let Some(signature) = signatures.iter().find(same).cloned().flatten() else {
        let passed = signatures.iter().filter(|one| one.is_none()).count();
        let failures: Vec<_> = signatures.into_iter().flatten().collect();
        let failures = failures.join("; ");
        return refused(format!(
            "the tests are flaky without a patch: {passed} of {RUNS} runs passed, and no failure \
             came twice: {failures}"
        ));
    };
    let shown = results.iter().find(|result| result.signature().as_ref() == Some(&signature));
    let Some(shown) = shown else { return refused("the baseline has no failure".to_owned()) };
    let passed = results.iter().filter(|result| result.passed()).count();
    let known = results.iter().map(|result| result.counts(0).total).max().unwrap_or(0);
    let counts = shown.counts(known);
    let reason = if passed == 0 {
        format!("fails without a patch, {RUNS} times of {RUNS}: {signature}")
    } else {
        format!("fails without a patch, {FAILURES} times of {RUNS}: {signature}")
    };
    let recoveries = results.iter().filter_map(PlanResult::recovered);
    let reason = std::iter::once(reason).chain(recoveries).collect::<Vec<_>>().join("; ");
    let run = shown.run.clone();
    let fact =
        Fact::Baseline(FailedBaseline { counts, signature, run, image, silent: shown.is_silent() });
    let mut result = StepResult::of(RepairEvent::ContextReady, reason).with(fact);
    result.evidence = shown.evidence();
    result
}

#[cfg(test)]
mod tests {
    use jig_model::{Cause, Verdict};

    use super::*;

    fn result(cause: Cause, summary: &str) -> PlanResult {
        let mut verdict = Verdict::of(cause, summary);
        verdict.evidence = vec![jig_model::Evidence {
            file: "consoles/1/uart0.raw".into(),
            start: 0,
            end: 9,
            note: summary.to_owned(),
        }];
        let (run, image) = (summary.to_owned(), "base".to_owned());
        PlanResult { run, dir: "runs/1".into(), image, verdict, duration_ms: 0 }
    }

    #[test]
    fn a_failure_that_comes_twice_in_the_same_way_is_a_baseline() {
        let pass = || result(Cause::Passed, "passed");
        let fault = |what: &str| result(Cause::FaultBanner, what);
        for (results, event, words) in [
            ([pass(), pass(), pass()], RepairEvent::BaselineRefused, "pass without a patch, 3"),
            ([fault("a"), pass(), pass()], RepairEvent::BaselineRefused, "flaky"),
            ([fault("a"), fault("b"), fault("c")], RepairEvent::BaselineRefused, "flaky"),
            ([fault("a"), fault("a"), pass()], RepairEvent::ContextReady, "2 times of 3"),
            ([fault("a"), fault("b"), fault("b")], RepairEvent::ContextReady, "3 times of 3"),
            ([fault("a"), fault("a"), fault("a")], RepairEvent::ContextReady, "3 times of 3"),
        ] {
            let done = judged(&results, "base".to_owned());
            assert_eq!(done.event, Some(event), "{}", done.reason);
            assert!(done.reason.contains(words), "{:?} has no {words:?}", done.reason);
            let baseline = done.facts.iter().find_map(|fact| match fact {
                Fact::Baseline(baseline) => Some(baseline),
                _ => None,
            });
            assert_eq!(baseline.is_some(), event == RepairEvent::ContextReady);
            if let Some(baseline) = baseline {
                let shown = results.iter().find(|result| result.run == baseline.run).unwrap();
                assert_eq!(shown.signature().as_ref(), Some(&baseline.signature));
                assert!(!baseline.silent && !done.evidence.is_empty());
            }
        }
    }
}
