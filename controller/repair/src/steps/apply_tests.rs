//! Tests of how a patch becomes a commit.

use jig_model::Cause;

use super::*;
use crate::setup_for_tests::{ScriptedBoard, TestSetup, diff};

async fn setup() -> TestSetup {
    TestSetup::new(|_| ScriptedBoard::Ends(Cause::TestFailed)).await
}

fn failure(result: &StepResult) -> Option<ErrorClass> {
    result.facts.iter().find_map(|fact| match fact {
        Fact::Failed { class } => Some(*class),
        _ => None,
    })
}

#[tokio::test]
async fn a_patch_becomes_one_commit_on_the_base() {
    let test = setup().await;
    // What an earlier candidate has left in the work tree is no part of it.
    let source = test.setup.folder.tree().join("src/ring.c");
    fs::write(&source, "int left;\n").unwrap();
    let result = run(&test.setup, &test.proposed("script", &diff("head + 1"))).await;
    assert_eq!(result.event, Some(RepairEvent::WorkspaceUpdated), "{}", result.reason);
    let [Fact::Applied { commit, risk: 1 }] = &result.facts[..] else {
        panic!("{:?}", result.facts)
    };
    assert_eq!(*commit, test.setup.tree().head().await.unwrap());
    assert!(fs::read_to_string(source).unwrap().contains("return head + 1;"));
    let base = &test.repository.base;
    let changed = test.setup.tree().diff(base, 1 << 20).await.unwrap();
    assert_eq!(String::from_utf8(changed).unwrap().matches("\n@@ ").count(), 1);
    // The checkout of the user stays as it is.
    assert!(test.repository.git().is_clean().await.unwrap());
    assert_eq!(test.repository.git().head().await.unwrap(), *base);
}

#[tokio::test]
async fn a_patch_that_is_not_the_one_that_was_proposed_is_not_applied() {
    let test = setup().await;
    let proposed = test.proposed("script", &diff("head + 1"));
    let path = test.setup.folder.patch(&proposed.proposed.as_ref().unwrap().patch);
    test.setup.folder.write(&path, diff("head + 9").as_bytes()).unwrap();
    let result = run(&test.setup, &proposed).await;
    assert_eq!(result.event, Some(RepairEvent::ApplyFailed));
    assert_eq!(failure(&result), Some(ErrorClass::UnhandledException));
    assert_eq!(test.setup.tree().head().await.unwrap(), test.repository.base);
}

#[tokio::test]
async fn a_patch_of_the_same_identity_is_another_one() {
    let test = setup().await;
    let mut proposed = test.proposed(TEMPLATES, &diff("head + 1"));
    let result = run(&test.setup, &proposed).await;
    let [Fact::Waits { digest }] = &result.facts[..] else { panic!("{:?}", result.facts) };
    proposed.approved.insert(digest.clone());
    let path = test.setup.folder.patch(&proposed.proposed.as_ref().unwrap().patch);
    let moved = Patch::read(&diff("head + 1").replace("-3,4 +3,4", "-90,4 +90,4")).unwrap();
    assert_eq!(moved.id(), proposed.proposed.as_ref().unwrap().patch);
    test.setup.folder.write(&path, moved.to_string().as_bytes()).unwrap();
    let result = run(&test.setup, &proposed).await;
    assert_eq!(result.event, Some(RepairEvent::ApplyFailed), "{}", result.reason);
    assert!(result.reason.contains("is not the patch that was proposed"), "{}", result.reason);
}

#[tokio::test]
async fn what_git_has_committed_is_reviewed() {
    let test = setup().await;
    let (proposed, patch) = (test.run(), Patch::read(&diff("head + 1")).unwrap());
    let tree = test.setup.tree();
    let sources = test.setup.base_sources(&proposed).await.unwrap();
    for (file, words) in [
        ("src/ring.c", None),
        ("src/other.c", Some("src/other.c is no file of the patch")),
        (".github/workflows/a.yml", Some("is protected")),
    ] {
        tree.reset_hard(&test.repository.base).await.unwrap();
        let path = test.setup.folder.tree().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "int other;\n").unwrap();
        tree.run(["add", "--all"]).await.unwrap();
        let commit = tree.commit("by another program").await.unwrap();
        let found = as_reviewed(&test.setup, &proposed, &commit, &patch, &sources).await;
        match words {
            None => assert_eq!(found, Ok(())),
            Some(words) => {
                assert!(found.as_ref().is_err_and(|why| why.contains(words)), "{found:?}")
            }
        }
    }
}

#[tokio::test]
async fn a_template_waits_for_an_approval_of_this_patch_on_this_base() {
    let test = setup().await;
    let mut proposed = test.proposed(TEMPLATES, &diff("head + 1"));
    let result = run(&test.setup, &proposed).await;
    assert_eq!(result.event, None);
    let [Fact::Waits { digest }] = &result.facts[..] else { panic!("{:?}", result.facts) };
    assert!(result.reason.contains("of a template waits for an approval"), "{}", result.reason);
    proposed.approved.insert(digest.clone());
    // The approval of another patch counts for nothing.
    let mut other = test.proposed(TEMPLATES, &diff("head + 9"));
    other.approved.insert(digest.clone());
    assert_eq!(run(&test.setup, &other).await.event, None);
    let result = run(&test.setup, &proposed).await;
    assert_eq!(result.event, Some(RepairEvent::WorkspaceUpdated), "{}", result.reason);
}

#[tokio::test]
async fn what_a_person_rejects_is_refused_with_the_reason() {
    let test = setup().await;
    let mut proposed = test.proposed("script", &diff("head + 1"));
    proposed.rejected = Some("too clever".to_owned());
    let result = run(&test.setup, &proposed).await;
    assert_eq!(result.event, Some(RepairEvent::ApplyFailed));
    assert_eq!(failure(&result), Some(ErrorClass::PolicyViolation));
    assert!(result.reason.contains("too clever"), "{}", result.reason);
    assert_eq!(test.setup.tree().head().await.unwrap(), test.repository.base);
}

#[tokio::test]
async fn a_patch_of_a_file_that_does_not_exist_names_those_near_it() {
    let test = setup().await;
    for (file, words) in [
        ("lib/ring.c", "there is no lib/ring.c, but src/ring.c"),
        ("src/rings.c", "there is no src/rings.c; near it: src/ring.c"),
    ] {
        let text = diff("head + 1").replace("src/ring.c", file);
        let result = run(&test.setup, &test.proposed("script", &text)).await;
        assert_eq!(result.event, Some(RepairEvent::ApplyFailed));
        assert_eq!(failure(&result), Some(ErrorClass::PatchApplyFailure), "{}", result.reason);
        assert!(result.reason.contains(words), "{}", result.reason);
    }
}
