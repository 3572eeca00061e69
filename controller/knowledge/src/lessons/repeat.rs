//! A failure that was seen as often as the rules say, whatever became of it.

use super::{Lesson, symptom, what_failed};
use crate::observed::{ObservedEnd, ObservedRun};
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// Sums up a failure that was seen `count` times, this run included.
pub(crate) fn lesson(now: &ObservedRun, count: u64, repeats: u64) -> Option<Lesson> {
    let failure = now.failure.as_ref().filter(|_| count >= repeats && !now.drill)?;
    let rig = match now.end {
        ObservedEnd::Failed => false,
        ObservedEnd::RigFailed => true,
        ObservedEnd::Passed | ObservedEnd::Unclear => return None,
    };
    let place = now.place.as_deref().unwrap_or_default();
    let title = match rig {
        true => format!("{place}: {} again and again", failure.class),
        false => format!("{} again and again", what_failed(failure)),
    };
    let content = UnitContent {
        title,
        symptom: symptom(failure),
        evidence: failure.evidence.clone(),
        ..UnitContent::default()
    };
    let metadata = UnitMetadata {
        board: now.board.clone(),
        chip: now.chip.clone(),
        component: rig.then(|| format!("place {place}")),
        files: failure.files.clone(),
        class: Some(failure.class.clone()),
        signature: Some(failure.signature.clone()),
        tags: vec![if rig { "rig" } else { "repeated" }.to_owned()],
        confidence: 0.5,
        ..UnitMetadata::default()
    };
    let board = now.board.as_deref().unwrap_or_default();
    let id = UnitId::derived(&["repeated", board, &failure.signature]);
    let (at, by, trigger) = (now.at, now.by.clone(), CaptureTrigger::RepeatedFailure);
    let draft = Draft { id, content, metadata, at, by, trigger };
    Some(Lesson { draft, count: Some(count) })
}
