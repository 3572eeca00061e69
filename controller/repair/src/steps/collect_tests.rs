//! Tests of what must be there of a run of the plan.

use std::fs;

use jig_model::{Cause, Evidence, Verdict};

use super::*;
use crate::convergence::TestCounts;
use crate::journal::{Digest, Fact};
use crate::run::Attempt;
use crate::runs_for_tests::attempt;
use crate::setup_for_tests::{ScriptedBoard, TestSetup};

const LAST: Option<RepairSubState> = None;

/// A run whose candidate was tested, and everything that this has left.
async fn tested() -> (TestSetup, Run) {
    let test = TestSetup::new(|_| ScriptedBoard::Ends(Cause::TestFailed)).await;
    let folder = &test.setup.folder;
    let dir = folder.path().join("runs/1");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("uart0.raw"), "FAIL\n").unwrap();
    let image = Digest::of(b"image").to_string();
    folder.write(&folder.image(&image), b"image").unwrap();
    let mut verdict = Verdict::of(Cause::TestFailed, "a test failed");
    let note = "FAIL".to_owned();
    verdict.evidence = vec![Evidence { file: "uart0.raw".into(), start: 0, end: 5, note }];
    let run = "1".to_owned();
    let result = PlanResult { run, dir, image: image.clone(), verdict, duration_ms: 1 };
    test.setup.keep(&folder.result("1"), &result).unwrap();
    let mut run = test.run();
    let one = attempt("patch", TestCounts { passed: 2, total: 3 }, Some("FAIL"));
    run.attempts.push(Attempt { run: "1".to_owned(), ..one });
    run.image = Some(image);
    (test, run)
}

#[track_caller]
fn is_missing(result: &StepResult, words: &str) {
    assert_eq!(result.event, Some(RepairEvent::ArtifactsMissing), "{}", result.reason);
    assert_eq!(result.facts, [Fact::Failed { class: ErrorClass::ArtifactMissing }]);
    assert!(result.reason.contains(words), "{}", result.reason);
}

#[tokio::test]
async fn a_complete_result_is_taken_part_by_part() {
    let (test, tested) = tested().await;
    let logs = run(&test.setup, &tested, Some(RepairSubState::FetchLogs)).await;
    assert_eq!(logs.event, None, "{}", logs.reason);
    let counts = run(&test.setup, &tested, Some(RepairSubState::Normalize)).await;
    assert_eq!((counts.event, counts.reason.as_str()), (None, "2 of 3 tests passed"));
    let all = run(&test.setup, &tested, LAST).await;
    assert_eq!(all.event, Some(RepairEvent::ResultNormalized), "{}", all.reason);
}

#[tokio::test]
async fn a_run_that_was_not_made_has_no_result() {
    let (test, mut tested) = tested().await;
    tested.attempts.clear();
    is_missing(&run(&test.setup, &tested, LAST).await, "no run of the plan is recorded");
}

#[tokio::test]
async fn each_artefact_that_is_missing_is_named() {
    let (test, tested) = tested().await;
    let folder = &test.setup.folder;
    let log = folder.path().join("runs/1/uart0.raw");
    fs::remove_file(&log).unwrap();
    let result = run(&test.setup, &tested, Some(RepairSubState::FetchLogs)).await;
    is_missing(&result, "uart0.raw is missing");
    // Another image, which has the name of the one that was tested.
    let image = folder.image(tested.image.as_ref().unwrap());
    fs::write(&image, "another image").unwrap();
    is_missing(&run(&test.setup, &tested, LAST).await, "is not what was tested");
    fs::remove_file(image).unwrap();
    is_missing(&run(&test.setup, &tested, LAST).await, "is not what was tested");
    fs::write(folder.result("1"), "{").unwrap();
    let result = run(&test.setup, &tested, Some(RepairSubState::FetchLogs)).await;
    is_missing(&result, "1.json");
}

#[tokio::test]
async fn a_result_of_another_image_is_none() {
    let (test, mut tested) = tested().await;
    tested.image = Some("another".to_owned());
    is_missing(&run(&test.setup, &tested, LAST).await, "is not what was tested");
}
