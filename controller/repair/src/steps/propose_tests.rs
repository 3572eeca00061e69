//! Tests of what becomes of an agent's answer.

use std::sync::{Arc, Mutex};

use jig_model::Cause;
use jig_model::command::{Command, Refusal, Reply};
use jig_model::protocol::BoxFuture;

use super::*;
use crate::rig::RigDoor;
use crate::setup_for_tests::{ScriptedBoard, TestSetup, diff, proposals};

/// With this source the tests pass, with others they fail.
fn board(source: &str) -> ScriptedBoard {
    let right = source.contains("return head + 1;");
    ScriptedBoard::Ends(if right { Cause::Passed } else { Cause::TestFailed })
}

fn failure(result: &StepResult) -> Option<ErrorClass> {
    result.facts.iter().find_map(|fact| match fact {
        Fact::Failed { class } => Some(*class),
        _ => None,
    })
}

fn proposed(result: &StepResult) -> Option<&Proposed> {
    result.facts.iter().find_map(|fact| match fact {
        Fact::Proposed(proposed) => Some(proposed),
        _ => None,
    })
}

fn id(returned: &str) -> String {
    Patch::read(&diff(returned)).unwrap().id()
}

#[tokio::test]
async fn a_patch_that_the_policy_takes_is_kept_by_its_identity() {
    let mut test = TestSetup::new(board).await;
    test.answer(Ok(proposals(&["head + 3"])));
    let result = run(&test.setup, &test.run()).await;
    assert_eq!(result.event, Some(RepairEvent::PatchValid), "{}", result.reason);
    let Proposed { patch, agent, usage, diagnostic, .. } = proposed(&result).unwrap();
    assert_eq!((patch, agent.as_str(), *diagnostic), (&id("head + 3"), "script", false));
    assert_eq!(*usage, Usage { tokens: 10, micro_usd: 3 });
    let kept = fs::read_to_string(test.setup.folder.patch(patch)).unwrap();
    assert_eq!(kept, Patch::read(&diff("head + 3")).unwrap().to_string());
    assert_eq!(proposed(&result).unwrap().diff, Digest::of(kept.as_bytes()).to_string());
}

#[tokio::test]
async fn nothing_is_asked_once_a_limit_is_reached() {
    let mut test = TestSetup::new(board).await;
    test.answer(Ok(proposals(&["head + 3"])));
    let mut spent = test.run();
    spent.usage.tokens = spent.contract.limits.tokens;
    let result = run(&test.setup, &spent).await;
    assert_eq!(result.event, Some(RepairEvent::PatchInvalid));
    assert_eq!(result.facts, [Fact::Failed { class: ErrorClass::ModelFailure }]);
    assert!(result.reason.contains("tokens"), "{}", result.reason);
}

#[tokio::test]
async fn an_agent_without_an_answer_is_refused_and_paid_for() {
    let mut test = TestSetup::new(board).await;
    let usage = Usage { tokens: 5, micro_usd: 2 };
    test.answer(Err(AgentError { why: "no idea".to_owned(), usage }));
    let result = run(&test.setup, &test.run()).await;
    assert_eq!(result.event, Some(RepairEvent::PatchInvalid));
    assert_eq!(failure(&result), Some(ErrorClass::ModelFailure));
    assert!(result.facts.contains(&Fact::Used(usage)));
    let why = "script: no idea".to_owned();
    assert!(result.facts.contains(&Fact::Refused { patch: String::new(), why }));
}

#[tokio::test]
async fn proposals_that_cannot_be_used_are_refused_by_their_class() {
    let in_test = diff("head").replace("src/ring.c", "test/test_ring.c");
    for (text, class, words) in [
        ("no patch", ErrorClass::ModelFailure, ""),
        (in_test.as_str(), ErrorClass::PolicyViolation, "test/test_ring.c"),
        (&diff("head + 7"), ErrorClass::ModelFailure, "proposed before"),
    ] {
        let mut test = TestSetup::new(board).await;
        let mut answer = proposals(&["head"]);
        answer.proposals[0].diff = text.to_owned();
        test.answer(Ok(answer));
        let mut known = test.run();
        known.patches.insert(id("head + 7"));
        let result = run(&test.setup, &known).await;
        assert_eq!(result.event, Some(RepairEvent::PatchInvalid), "{text}");
        assert_eq!(failure(&result), Some(class), "{text}: {}", result.reason);
        assert!(result.reason.contains(words), "{text}: {}", result.reason);
        let refused = |fact: &Fact| matches!(fact, Fact::Refused { .. });
        assert_eq!(result.facts.iter().filter(|fact| refused(fact)).count(), 1, "{text}");
        assert!(result.facts.iter().any(|fact| matches!(fact, Fact::Used(_))), "{text}");
    }
}

#[tokio::test]
async fn of_several_the_first_that_passes_is_taken_and_those_before_it_are_not_tried_again() {
    let mut test = TestSetup::new(board).await;
    test.answer(Ok(proposals(&["head + 7", "head + 8", "head + 1", "head + 9"])));
    let mut known = test.run();
    known.screened.insert(id("head + 8"));
    let result = run(&test.setup, &known).await;
    assert_eq!(result.event, Some(RepairEvent::PatchValid), "{}", result.reason);
    assert_eq!(proposed(&result).unwrap().patch, id("head + 1"));
    let patches = vec![id("head + 7")];
    assert!(result.facts.contains(&Fact::Screened { patches }), "{:?}", result.facts);
}

#[tokio::test]
async fn where_no_proposal_passes_none_is_taken() {
    let mut test = TestSetup::new(board).await;
    test.answer(Ok(proposals(&["head + 7", "head + 8"])));
    let result = run(&test.setup, &test.run()).await;
    assert_eq!(result.event, Some(RepairEvent::PatchInvalid));
    assert_eq!(failure(&result), Some(ErrorClass::ModelFailure));
    let patches = vec![id("head + 7"), id("head + 8")];
    assert!(result.facts.contains(&Fact::Screened { patches }), "{:?}", result.facts);
}

#[tokio::test]
async fn a_rig_that_fails_below_the_trials_blames_no_proposal() {
    let mut test = TestSetup::new(|_| ScriptedBoard::Refuses).await;
    test.answer(Ok(proposals(&["head + 7", "head + 1"])));
    let result = run(&test.setup, &test.run()).await;
    assert_eq!(failure(&result), Some(ErrorClass::TestEnvFailure), "{}", result.reason);
    assert!(!result.facts.iter().any(|fact| matches!(fact, Fact::Screened { .. })));
}

#[tokio::test]
async fn a_client_is_waited_for_and_then_heard() {
    let test = TestSetup::new(board).await;
    let mut waits = test.run();
    let result = run(&test.setup, &waits).await;
    assert_eq!(result.event, None);
    let [Fact::Waits { digest }] = &result.facts[..] else { panic!("{:?}", result.facts) };
    let text = diff("head + 1");
    let sha256 = Digest::of(text.as_bytes()).to_string();
    let path = test.setup.folder.submitted(&sha256);
    test.setup.folder.write(&path, text.as_bytes()).unwrap();
    let hypothesis = "one too far".to_owned();
    let answers = digest.clone();
    waits.submitted = Some(SubmittedPatch { answers, diff: sha256, hypothesis });
    let result = run(&test.setup, &waits).await;
    assert_eq!(result.event, Some(RepairEvent::PatchValid), "{}", result.reason);
    assert_eq!(proposed(&result).unwrap().patch, id("head + 1"));
    // A file that was changed since is not what was submitted.
    test.setup.folder.write(&path, b"another").unwrap();
    let result = run(&test.setup, &waits).await;
    assert_eq!(result.event, Some(RepairEvent::PatchInvalid));
    assert!(result.reason.contains("not what was submitted"), "{}", result.reason);
}

#[test]
fn what_a_program_changes_of_a_checkout_is_named() {
    let state = |entries: &[&str]| Ok(entries.iter().map(|&entry| entry.to_owned()).collect());
    let hash = "0000000000000000000000000000000000000000";
    let edited = format!("1 .M N... 100644 100644 100644 {hash} {hash} src/a b.c");
    let clean = &["# branch.oid 12", "# branch.head main", "? out/"][..];
    assert_eq!(same_checkout(state(clean), state(clean)), Ok(()));
    for (after, shown) in [
        (&["# branch.oid 12", "# branch.head main", "? out/", &edited][..], "src/a b.c"),
        (&["# branch.oid 12", "# branch.head main"], "out/"),
        (&["# branch.oid 13", "# branch.head main", "? out/"], "branch.oid 12, branch.oid 13"),
    ] {
        let why = same_checkout(state(clean), state(after)).unwrap_err();
        assert_eq!(why, format!("the checkout of the user was changed while it ran: {shown}"));
    }
}

/// A rig whose place of the task is a real board; keeps where tests ran.
struct RealRig {
    rig: Arc<dyn RigDoor>,
    places: Mutex<Vec<String>>,
}

impl RigDoor for RealRig {
    fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Refusal>> {
        if let Command::Test(test) = &command {
            self.places.lock().unwrap().push(test.place.to_string());
        }
        self.rig.execute(command)
    }

    fn is_real(&self) -> bool {
        true
    }

    fn measures_coverage(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn candidates_for_a_real_board_are_tried_where_the_task_says_and_nowhere_else() {
    for (screen_on, chosen) in [(Some("emulated"), "head + 1"), (None, "head + 3")] {
        let mut test = TestSetup::new(board).await;
        let rig = Arc::new(RealRig { rig: Arc::clone(&test.setup.rig), places: Mutex::default() });
        test.setup.rig = Arc::clone(&rig) as _;
        test.setup.screen_place = screen_on.map(|place| place.to_owned().try_into().unwrap());
        test.answer(Ok(proposals(&["head + 3", "head + 1"])));
        let result = run(&test.setup, &test.run()).await;
        assert_eq!(proposed(&result).unwrap().patch, id(chosen), "{}", result.reason);
        let places = rig.places.lock().unwrap().clone();
        assert!(places.iter().all(|place| Some(place.as_str()) == screen_on), "{places:?}");
        assert_eq!(places.is_empty(), screen_on.is_none());
        assert_eq!(test.setup.flashes.take(), 0);
        // A single one that fails there is not flashed.
        test.answer(Ok(proposals(&["head + 3"])));
        let result = run(&test.setup, &test.run()).await;
        assert_eq!(proposed(&result).is_none(), screen_on.is_some(), "{}", result.reason);
    }
}
