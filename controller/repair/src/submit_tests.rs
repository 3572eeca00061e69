//! Tests of submissions: what is taken, and what is refused with nothing written.

use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::journal::{Contract, Effect, Fact, Intent, Outcome, StepResult, SubmittedPatch};
use crate::machine::{RepairEvent, RepairState};
use crate::redact::Redactor;

const DIFF: &str = "--- a/src/ring.c\n+++ b/src/ring.c\n@@ -1,3 +1,3 @@\n int full(void)\n {\n-    return count > 8;\n+    return count >= 8;\n";

/// A run that goes to PATCH_GENERATION; `waits` has it wait for a patch there.
fn journal(folder: &Path, waits: bool) -> Journal {
    let contract = Contract {
        goal: "the ring test passes".to_owned(),
        task: "00".to_owned(),
        base: "base".to_owned(),
        ..Contract::default()
    };
    let mut journal = Journal::begin(folder, contract, Redactor::default()).unwrap();
    let mut step = |state, event: Option<RepairEvent>, facts| {
        let (part, effect, input) = (None, Effect::Pure, String::new());
        journal.append(&Entry::Intent(Intent { state, part, effect, input, flashes: 0 })).unwrap();
        let result = StepResult { event, facts, ..StepResult::of(RepairEvent::Abort, "") };
        journal.append(&Entry::Outcome(Outcome { state, part, result })).unwrap();
    };
    step(RepairState::Init, Some(RepairEvent::ContextReady), Vec::new());
    step(RepairState::CodeAnalysis, Some(RepairEvent::PatchPlanned), Vec::new());
    if waits {
        let waits = Fact::Waits { digest: "wish".to_owned() };
        step(RepairState::PatchGeneration, None, vec![waits]);
    }
    journal
}

fn fold(journal: &Journal) -> Run {
    Run::of(&journal.rows().unwrap()).unwrap()
}

fn give(journal: &mut Journal, folder: &TempDir, diff: &str) -> Result<String, SubmitError> {
    let run = fold(journal);
    let files = RepairFolder::new(folder.path());
    let base = ["src/ring.c", "test/test_ring.c"].map(str::to_owned);
    let (policy, why) = (Policy::default(), "the bound is one too high");
    submit(journal, (&run, &policy, &base), &files, diff, why)
}

#[test]
fn a_patch_answers_the_run_that_waits_for_it_and_the_first_counts() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(folder.path(), true);
    assert!(!fold(&journal).is_answered());
    let id = give(&mut journal, &folder, DIFF).unwrap();
    let run = fold(&journal);
    assert!(run.is_answered());
    let submitted = run.submitted.unwrap();
    assert_eq!(submitted.hypothesis, "the bound is one too high");
    let kept = RepairFolder::new(folder.path()).submitted(&submitted.diff);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), Patch::read(DIFF).unwrap().to_string());
    assert_eq!(id, Patch::read(DIFF).unwrap().id());
    let late = give(&mut journal, &folder, DIFF);
    assert!(matches!(late, Err(SubmitError::Late)), "{late:?}");
}

#[test]
fn what_cannot_be_used_is_refused_and_leaves_nothing() {
    let elsewhere = DIFF.replace("src/ring.c", "lib/ring.c");
    let in_test = DIFF.replace("src/ring.c", "test/test_ring.c");
    for (waits, diff, words) in [
        (false, DIFF, "does not wait for a patch"),
        (true, "no diff at all", "no patch that can be used"),
        (true, in_test.as_str(), "is protected"),
        (true, elsewhere.as_str(), "do not exist: there is no lib/ring.c, but src/ring.c"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = journal(folder.path(), waits);
        let before = fold(&journal);
        let refused = give(&mut journal, &folder, diff).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
        assert_eq!(fold(&journal), before);
        assert!(!folder.path().join("submitted").exists());
    }
}

#[test]
fn a_diff_without_prefixes_is_kept_in_the_form_of_git_and_no_first_folder_is_taken_off() {
    let bare = DIFF.replace("a/src", "src").replace("b/src", "src");
    let outside =
        format!("--- /dev/null\n+++ x/.github/workflows/a.yml\n@@ -0,0 +1 @@\n+on: push\n{bare}");
    let policy = Policy::parse("policy.toml", "version = 1\nwrite_allow = [\"src/**\"]\n").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(folder.path(), true);
    let (run, files) = (fold(&journal), RepairFolder::new(folder.path()));
    let base = ["src/ring.c".to_owned()];
    let with = (&run, &policy, &base[..]);
    let refused = submit(&mut journal, with, &files, &outside, "").unwrap_err().to_string();
    assert!(refused.contains("x/.github/workflows/a.yml: the policy does not allow"), "{refused}");
    submit(&mut journal, with, &files, &bare, "").unwrap();
    let kept = std::fs::read_to_string(files.submitted(&fold(&journal).submitted.unwrap().diff));
    assert_eq!(kept.unwrap(), Patch::read(DIFF).unwrap().to_string());
}

#[test]
fn an_answer_to_another_wish_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(folder.path(), true);
    let (answers, diff) = ("an older wish".to_owned(), String::new());
    let late = Request::Submit(SubmittedPatch { answers, diff, hypothesis: String::new() });
    journal.append(&Entry::Request(late)).unwrap();
    assert!(!fold(&journal).is_answered());
}

#[test]
fn a_long_hypothesis_is_cut_at_a_character() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = journal(folder.path(), true);
    let run = fold(&journal);
    let files = RepairFolder::new(folder.path());
    let long = format!("x{}", "ü".repeat(5000));
    let base = ["src/ring.c".to_owned()];
    submit(&mut journal, (&run, &Policy::default(), &base), &files, DIFF, &long).unwrap();
    let kept = fold(&journal).submitted.unwrap().hypothesis;
    assert_eq!(kept.len(), MAX_HYPOTHESIS - 1);
}
