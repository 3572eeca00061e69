//! What a run of the repair loop has shown: a proven patch, a better one, or what did not help.

use super::{Lesson, short, symptom, what_failed};
use crate::observed::{ObservedPatch, ObservedRepair, RepairEnd};
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// What is learnt of a run, and whether its patch is proven.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RepairLesson {
    /// A patch that is proven, with the revert check.
    Proven(Box<Lesson>),
    /// A patch that fixes more than half, or attempts that did not help.
    Other(Box<Lesson>),
}

/// Returns the lesson of a run. `repeats` is the number of candidates with the same failure for which a
/// failure is worth remembering.
pub(crate) fn lesson(run: &ObservedRepair, repeats: u64) -> Option<RepairLesson> {
    if let Some(patch) = run.patch.as_ref().filter(|_| run.end.is_proven()) {
        return Some(RepairLesson::Proven(Box::new(patched(run, patch, CaptureTrigger::Success))));
    }
    if let Some(patch) = run.patch.as_ref().filter(|_| is_better(run)) {
        return Some(RepairLesson::Other(Box::new(patched(run, patch, CaptureTrigger::Partial))));
    }
    let signature = run.failure.signature.as_str();
    let same = run.attempts.iter().filter(|one| one.signature.as_deref() == Some(signature));
    let same: Vec<_> = same.collect();
    (same.len() as u64 >= repeats).then(|| {
        let patches: Vec<_> = same.iter().map(|one| short(&one.patch).to_owned()).collect();
        let did_not_help = format!(
            "{} patches of repair run {} did not help: {}",
            same.len(),
            run.run,
            super::some_of(&patches)
        );
        let content = UnitContent {
            title: format!("{}: not repaired", what_failed(&run.failure)),
            symptom: format!("{}\n{did_not_help}", symptom(&run.failure)),
            root_cause: suspected(run),
            evidence: run.failure.evidence.clone(),
            ..UnitContent::default()
        };
        let board = run.board.as_deref().unwrap_or_default();
        let id = UnitId::derived(&["unrepaired", board, signature]);
        let draft = draft(run, id, content, Vec::new(), 0.5, CaptureTrigger::RepeatedFailure);
        RepairLesson::Other(Box::new(Lesson { draft, count: None }))
    })
}

/// Tells whether more than half of what failed passes with the candidate that was tested last.
fn is_better(run: &ObservedRepair) -> bool {
    let Some(after) = run.after else { return false };
    let failed = run.before.total.saturating_sub(run.before.passed);
    let fixed = after.passed.saturating_sub(run.before.passed);
    fixed * 2 > failed && after.total >= run.before.total && after.passed < after.total
}

fn patched(run: &ObservedRepair, patch: &ObservedPatch, trigger: CaptureTrigger) -> Lesson {
    let proven = run.end.is_proven();
    let row = run.row.map(|row| format!(", row {row} of its journal")).unwrap_or_default();
    let tally = run.after.map(|after| format!("{} of {} tests pass", after.passed, after.total));
    let resolution = match run.end {
        RepairEnd::ProvenHeldOut => {
            "the patch below: the tests pass with it, fail without it, and a \
                                     held-out plan passes"
                .to_owned()
        }
        RepairEnd::Proven => {
            "the patch below: the tests pass with it and fail without it".to_owned()
        }
        RepairEnd::Unrepaired => {
            format!("the patch below helps in part: {}", tally.unwrap_or_default())
        }
    };
    let summary = patch.hypothesis.trim().to_owned();
    let content = UnitContent {
        title: match proven {
            true => format!("{}: repaired in {}", what_failed(&run.failure), files_of(patch)),
            false => {
                format!("{}: repaired in part in {}", what_failed(&run.failure), files_of(patch))
            }
        },
        summary_by_model: patch.by_model && !summary.is_empty(),
        summary,
        symptom: symptom(&run.failure),
        root_cause: suspected(run),
        resolution: format!("{resolution} (repair run {}{row})", run.run),
        diff: patch.diff.clone(),
        evidence: run.evidence.iter().chain(&run.failure.evidence).cloned().collect(),
        ..UnitContent::default()
    };
    let confidence = match run.end {
        RepairEnd::ProvenHeldOut => 0.9,
        RepairEnd::Proven => 0.8,
        RepairEnd::Unrepaired => 0.5,
    };
    let words: [&str; 3] = ["patch", &patch.identity, &run.failure.signature];
    let id = UnitId::derived(&words);
    let draft = draft(run, id, content, patch.files.clone(), confidence, trigger);
    Lesson { draft, count: None }
}

fn suspected(run: &ObservedRepair) -> String {
    run.suspect.as_ref().map(|line| format!("most suspected: {line}")).unwrap_or_default()
}

fn files_of(patch: &ObservedPatch) -> String {
    match patch.files.as_slice() {
        [] => "the sources".to_owned(),
        files => super::some_of(files),
    }
}

fn draft(
    run: &ObservedRepair,
    id: UnitId,
    content: UnitContent,
    files: Vec<String>,
    confidence: f64,
    trigger: CaptureTrigger,
) -> Draft {
    let metadata = UnitMetadata {
        board: run.board.clone(),
        chip: run.chip.clone(),
        files: files.into_iter().chain(run.failure.files.clone()).take(64).collect(),
        class: Some(run.failure.class.clone()),
        signature: Some(run.failure.signature.clone()),
        tags: vec!["repair".to_owned()],
        confidence,
        ..UnitMetadata::default()
    };
    Draft { id, content, metadata, at: run.at, by: run.by.clone(), trigger }
}
