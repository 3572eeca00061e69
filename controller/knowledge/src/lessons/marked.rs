//! What a person marks in a run: the facts of its failure, for the person to add to.

use super::{symptom, what_failed};
use crate::observed::ObservedRun;
use crate::unit::{UnitContent, UnitMetadata};

/// Returns what a unit about a run says by itself; of a run without a failure only where it was.
pub fn marked(run: &ObservedRun) -> (UnitContent, UnitMetadata) {
    let mut content = UnitContent::default();
    let mut metadata = UnitMetadata {
        board: run.board.clone(),
        chip: run.chip.clone(),
        ..UnitMetadata::default()
    };
    if let Some(failure) = &run.failure {
        content.title = what_failed(failure);
        content.symptom = symptom(failure);
        content.evidence = failure.evidence.clone();
        metadata.files = failure.files.clone();
        metadata.class = Some(failure.class.clone());
        metadata.signature = Some(failure.signature.clone());
    }
    (content, metadata)
}
