//! A failure that went away with another image: at the same place, by the same plan, in the same tests.

use super::{Lesson, short, symptom, what_failed};
use crate::observed::{ObservedEnd, ObservedFailure, ObservedImage, ObservedRun};
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// Compares a run with the last one of the same place, plan and file before it. `fixes` is how often this
/// failure has gone away before.
///
/// A pass with the same image is no fix: nothing has changed, so the failure is flaky or the rig's. Nor is
/// one in which the tests that had failed did not run.
pub(crate) fn lesson(before: &ObservedRun, now: &ObservedRun, fixes: u64) -> Option<Lesson> {
    if before.drill || now.drill || before.end != ObservedEnd::Failed {
        return None;
    }
    let failure = before.failure.as_ref()?;
    let trigger = match now.end {
        ObservedEnd::Passed if ran_again(failure, now) => CaptureTrigger::Success,
        ObservedEnd::Failed if mostly_fixed(failure, before, now) => CaptureTrigger::Partial,
        _ => return None,
    };
    let (old, new) = before.image.as_ref().zip(now.image.as_ref())?;
    if old.sha256 == new.sha256 || old.name != new.name {
        return None;
    }
    let left = now.failure.as_ref().filter(|_| trigger == CaptureTrigger::Partial);
    let more = left.map(|left| format!("; still failing: {}", super::some_of(&left.failed)));
    let content = UnitContent {
        title: match trigger {
            CaptureTrigger::Partial => {
                format!("{}: mostly fixed by a newer image", what_failed(failure))
            }
            _ => format!("{}: fixed by a newer image", what_failed(failure)),
        },
        symptom: symptom(failure),
        resolution: format!(
            "{} in run {} with {}; run {} had failed with {}{}",
            if left.is_some() { "more cases passed" } else { "passed" },
            now.run,
            told(new),
            before.run,
            told(old),
            more.unwrap_or_default()
        ),
        evidence: failure.evidence.clone(),
        ..UnitContent::default()
    };
    let metadata = UnitMetadata {
        board: now.board.clone(),
        chip: now.chip.clone(),
        files: failure.files.clone(),
        class: Some(failure.class.clone()),
        signature: Some(failure.signature.clone()),
        tags: vec!["image".to_owned()],
        // A person or the loop may find out what the change was; the pass itself was observed.
        confidence: if left.is_some() { 0.5 } else { 0.6 },
        ..UnitMetadata::default()
    };
    let id = unit_of(now.board.as_deref(), &failure.signature);
    let (at, by) = (now.at, now.by.clone());
    let draft = Draft { id, content, metadata, at, by, trigger };
    Some(Lesson { draft, count: Some(fixes.saturating_add(1)) })
}

/// Names the unit of a failure that went away with another image, on a kind of board.
pub(crate) fn unit_of(board: Option<&str>, signature: &str) -> UnitId {
    UnitId::derived(&["fixed-by-image", board.unwrap_or_default(), signature])
}

/// Tells whether the cases that had failed have passed.
fn ran_again(failure: &ObservedFailure, now: &ObservedRun) -> bool {
    failure.failed.iter().all(|name| now.passed.contains(name))
}

/// Tells whether more than half of the failed cases pass, and no other case fails.
fn mostly_fixed(failure: &ObservedFailure, before: &ObservedRun, now: &ObservedRun) -> bool {
    let fixed = failure.failed.iter().filter(|name| now.passed.contains(name)).count();
    let left = now.failure.as_ref().map_or(&[][..], |left| left.failed.as_slice());
    let is_new = |name: &&String| !failure.failed.contains(name);
    fixed * 2 > failure.failed.len()
        && !left.is_empty()
        && left.iter().filter(is_new).count() == 0
        && now.passed.len() > before.passed.len()
}

fn told(image: &ObservedImage) -> String {
    let mut text = format!("{} (sha256 {}", image.name, short(&image.sha256));
    if let Some(id) = &image.build_id {
        text.push_str(&format!(", build id {}", short(id)));
    }
    if let Some(commit) = &image.commit {
        text.push_str(&format!(", commit {}", short(commit)));
    }
    text.push(')');
    text
}
