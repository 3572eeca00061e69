//! Tests of what follows an error.

use std::fs;

use jig_model::Cause;

use super::*;
use crate::journal::Usage;
use crate::machine::RepairState;
use crate::proof::ProofFacts;
use crate::recovery::{ErrorClass, MAX_RETRIES};
use crate::run::StepError;
use crate::runs_for_tests::proof_facts;
use crate::setup::NamedAgent;
use crate::setup_for_tests::{ScriptedBoard, TestSetup, proposals};

async fn setup() -> TestSetup {
    TestSetup::new(|_| ScriptedBoard::Ends(Cause::TestFailed)).await
}

/// The run behind an error of a candidate that is applied.
fn failed(test: &TestSetup, class: ErrorClass, state: RepairState) -> Run {
    let mut run = test.run();
    run.error = Some(StepError { class, state, retries: 0 });
    run.applied = Some("candidate".to_owned());
    run.why = "it failed".to_owned();
    run
}

fn recovered(action: RecoveryAction, uses_iteration: bool) -> Fact {
    Fact::Recovered { action, uses_iteration }
}

#[tokio::test]
async fn a_build_that_failed_is_made_again_without_what_an_earlier_one_left() {
    let test = setup().await;
    let left = test.setup.folder.tree().join("build/old.o");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, "old").unwrap();
    let error = failed(&test, ErrorClass::BuildFailure, RepairState::BuildRun);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToBuild), "{}", result.reason);
    assert_eq!(result.facts, [recovered(RecoveryAction::CleanBuild, false)]);
    assert!(!left.exists());
}

#[tokio::test]
async fn a_patch_that_does_not_build_is_taken_back() {
    let test = setup().await;
    let source = test.setup.folder.tree().join("src/ring.c");
    let before = fs::read_to_string(&source).unwrap();
    fs::write(&source, "int broken\n").unwrap();
    let mut error = failed(&test, ErrorClass::BuildFailure, RepairState::BuildRun);
    error.error.as_mut().unwrap().retries = 1;
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToAnalysis), "{}", result.reason);
    assert_eq!(result.facts, [recovered(RecoveryAction::RollBack, true), Fact::RolledBack]);
    assert_eq!(fs::read_to_string(source).unwrap(), before);
}

#[tokio::test]
async fn a_rig_that_failed_is_recovered_without_an_iteration() {
    let test = setup().await;
    let error = failed(&test, ErrorClass::TestEnvFailure, RepairState::TestRun);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToTestSetup), "{}", result.reason);
    assert_eq!(result.facts, [recovered(RecoveryAction::RecoverRig, false)]);
}

#[tokio::test]
async fn a_rig_that_does_not_recover_ends_the_run() {
    let test = TestSetup::with_rig(|_| ScriptedBoard::Ends(Cause::TestFailed), false).await;
    let error = failed(&test, ErrorClass::TestEnvFailure, RepairState::TestRun);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert!(result.reason.contains("the rig does not recover"), "{}", result.reason);
    assert_eq!(result.facts, []);
}

#[tokio::test]
async fn an_agent_without_an_answer_is_asked_again_until_its_errors_are_too_many() {
    let mut test = setup().await;
    test.answer(Ok(proposals(&[])));
    let mut error = failed(&test, ErrorClass::ModelFailure, RepairState::PatchGeneration);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToAnalysis));
    assert_eq!(result.reason, "the last agent is asked again");
    assert_eq!(result.facts, [recovered(RecoveryAction::Degrade, true)]);
    error.error.as_mut().unwrap().retries = MAX_RETRIES - 1;
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert!(result.reason.contains("no agent is left"), "{}", result.reason);
}

#[tokio::test]
async fn every_agent_of_the_ladder_is_asked_before_the_run_ends() {
    let mut test = setup().await;
    test.answer(Ok(proposals(&[])));
    for name in ["b", "c", "d", "e"] {
        test.answer_by(name, |_| Ok(proposals(&[])));
    }
    let mut error = failed(&test, ErrorClass::ModelFailure, RepairState::PatchGeneration);
    error.strategy = 3;
    error.error.as_mut().unwrap().retries = MAX_RETRIES;
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToAnalysis), "{}", result.reason);
    assert_eq!(result.reason, "e is asked next");
    error.strategy = 4;
    error.error.as_mut().unwrap().retries = MAX_RETRIES + 1;
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable), "{}", result.reason);
}

#[tokio::test]
async fn templates_that_have_no_further_candidate_are_not_asked_again() {
    let mut test = setup().await;
    let source = PatchSource::Agent(Box::new(crate::agents::templates::TemplateAgent));
    test.setup.agents = vec![NamedAgent { name: "templates".to_owned(), source }];
    let error = failed(&test, ErrorClass::ModelFailure, RepairState::PatchGeneration);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable), "{}", result.reason);
    assert!(result.reason.contains("no agent is left"), "{}", result.reason);
}

#[tokio::test]
async fn the_lack_of_a_proof_comes_before_what_ended_the_run() {
    let mut test = setup().await;
    test.answer(Ok(proposals(&[])));
    let mut error = failed(&test, ErrorClass::ModelFailure, RepairState::PatchGeneration);
    error.proof = Some(ProofFacts { clean_build: false, ..proof_facts() });
    error.error.as_mut().unwrap().retries = MAX_RETRIES;
    let result = run(&test.setup, &error).await;
    let lack = "not proven: a clean build of base and patch gave another image; then: it failed";
    assert!(result.reason.starts_with(lack), "{}", result.reason);
}

#[tokio::test]
async fn errors_that_do_not_end_end_the_run_with_their_reason() {
    let test = setup().await;
    let mut error = failed(&test, ErrorClass::ArtifactMissing, RepairState::ResultCollection);
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToCollection));
    error.error.as_mut().unwrap().retries = MAX_RETRIES;
    let result = run(&test.setup, &error).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert_eq!(result.reason, "it failed (ARTIFACT_MISSING in RESULT_COLLECTION, 4 times)");
}

#[tokio::test]
async fn a_limit_comes_before_any_recovery() {
    let test = setup().await;
    let mut spent = failed(&test, ErrorClass::BuildFailure, RepairState::BuildRun);
    spent.usage = Usage { tokens: spent.contract.limits.tokens, micro_usd: 0 };
    let result = run(&test.setup, &spent).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert!(result.reason.contains("tokens"), "{}", result.reason);
    // The last iteration has no recovery that takes another one, but the rig is not paid for.
    let mut last = failed(&test, ErrorClass::BuildFailure, RepairState::BuildRun);
    last.iteration = last.contract.limits.iterations;
    let result = run(&test.setup, &last).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToBuild), "{}", result.reason);
    last.error.as_mut().unwrap().retries = 1;
    let result = run(&test.setup, &last).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert!(result.reason.ends_with("the last one ended with: it failed"), "{}", result.reason);
    let mut last = failed(&test, ErrorClass::TestEnvFailure, RepairState::TestRun);
    last.iteration = last.contract.limits.iterations;
    let result = run(&test.setup, &last).await;
    assert_eq!(result.event, Some(RepairEvent::RecoveredToTestSetup), "{}", result.reason);
}

#[tokio::test]
async fn a_run_without_an_error_is_not_recovered() {
    let test = setup().await;
    let result = run(&test.setup, &test.run()).await;
    assert_eq!(result.event, Some(RepairEvent::Unrecoverable));
    assert_eq!(result.reason, "no error is recorded");
}
