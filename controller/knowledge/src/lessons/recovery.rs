//! Which step of recovery helps against which failure of which place.

use super::Lesson;
use crate::observed::{ObservedRecovery, ObservedRun, rig_signature};
use crate::unit::{CaptureTrigger, Draft, UnitContent, UnitId, UnitMetadata};

/// Sums up a step that worked `worked` times of `taken`.
pub(crate) fn lesson(
    now: &ObservedRun,
    place: &str,
    step: &ObservedRecovery,
    (worked, taken): (u64, u64),
) -> Lesson {
    let ObservedRecovery { cause, step, .. } = step;
    let title = match worked {
        0 => format!("{place}: {step} does not help against {cause}, 0 of {taken}"),
        _ => format!("{place}: {step} recovers from {cause}, {worked} of {taken}"),
    };
    let helps = worked > 0;
    let content = UnitContent {
        title,
        symptom: format!("the rig fails at {place}: {cause}"),
        resolution: match helps {
            true => format!("jig recover -b {place} --from {step}"),
            false => String::new(),
        },
        ..UnitContent::default()
    };
    let metadata = UnitMetadata {
        board: now.board.clone(),
        component: Some(format!("place {place}")),
        class: Some(cause.clone()),
        signature: Some(rig_signature(cause, place)),
        tags: vec!["recovery".to_owned(), "rig".to_owned()],
        // The share of proofs, as far as so few of them tell: Laplace's rule of succession.
        confidence: (worked as f64 + 1.0) / (taken as f64 + 2.0),
        ..UnitMetadata::default()
    };
    let id = UnitId::derived(&["recovery", place, cause, step]);
    let trigger = CaptureTrigger::Threshold;
    let draft = Draft { id, content, metadata, at: now.at, by: now.by.clone(), trigger };
    Lesson { draft, count: Some(taken) }
}
