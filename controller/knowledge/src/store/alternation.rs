//! The revert check of a person: the old image failed, the new one passed, the old one failed again, and the
//! new one passed again.
//!
//! Owns the rule by which a fix that was seen in plain runs alone is proven. Refuses what chance may have done:
//! with a firmware that fails now and then, the same image also passes where it has failed.
//!
//! # Design
//! *Both images by their bytes.* A change between two builds is known by its two images. Another new image that
//! passes is another change, and another old one that fails is no revert.
//!
//! *Looked for in what is remembered of the place.* An image that has come to two ends in the same tests proves
//! nothing, however the runs alternate. Some dozen runs are read for that, which costs as much however long the
//! rig has worked.

use rusqlite::Connection;

use super::past;
use crate::observed::{ObservedEnd, ObservedFailure, ObservedRun};
use crate::unit::UnitId;

/// Runs of a place that are looked at for an image that has come to two ends.
const RUNS: u32 = 64;

/// Names the change that an image is.
pub(super) fn image_change(sha256: &str) -> String {
    format!("image:{sha256}")
}

/// Tells whether two runs repeat what two earlier ones have shown on the same kind of board: the same two
/// images, one failing with the same signature, then the other passing. `unit` has the fix.
pub(super) fn is_repeated(
    change: &Connection,
    (before, now): (&ObservedRun, &ObservedRun),
    unit: &UnitId,
) -> rusqlite::Result<bool> {
    let Some(failure) = &before.failure else { return Ok(false) };
    let Some((old, new)) = before.image.as_ref().zip(now.image.as_ref()) else { return Ok(false) };
    let (old, new) = (old.sha256.as_str(), new.sha256.as_str());
    let mut places = vec![now.clone()];
    for run in past::runs_of_fix(change, &image_change(new), unit)? {
        let Some(passed) = past::run_of(change, &run)?.filter(|run| run.at < before.at) else {
            continue;
        };
        let Some(failed) = past::before(change, &passed)? else { continue };
        if is_image(&failed, old) && signature_of(&failed) == Some(failure.signature.as_str()) {
            places.push(passed);
        }
    }
    if places.len() < 2 {
        return Ok(false);
    }
    let of_board = |run: &&ObservedRun| run.board == now.board && is_image(run, new);
    if past::failures_with(change, &failure.signature, RUNS)?.iter().any(|run| of_board(&run)) {
        return Ok(false);
    }
    for place in &places {
        let runs = past::runs_at(change, place, RUNS)?;
        if runs.iter().any(|run| is_doubtful(run, (old, new), failure)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells whether a run speaks against the old image always failing, or the new one always passing.
fn is_doubtful(run: &ObservedRun, (old, new): (&str, &str), failure: &ObservedFailure) -> bool {
    match run.end {
        ObservedEnd::Unclear => is_image(run, old) || is_image(run, new),
        // Another test may have failed, and what had failed before passes.
        ObservedEnd::Passed | ObservedEnd::Failed => {
            let fails_so = signature_of(run) == Some(failure.signature.as_str());
            is_image(run, old) && !fails_so && has_passed(run, failure)
        }
        ObservedEnd::RigFailed => false,
    }
}

/// Returns the failures that the image of a passed run has shown at the same place, in tests that pass now: it
/// fails now and then, so that no other image is proven to have fixed it.
pub(super) fn failures_that_pass(
    change: &Connection,
    now: &ObservedRun,
) -> rusqlite::Result<Vec<ObservedFailure>> {
    let Some(image) = now.image.as_ref().filter(|_| now.end == ObservedEnd::Passed) else {
        return Ok(Vec::new());
    };
    let mut failures: Vec<ObservedFailure> = Vec::new();
    for run in past::runs_at(change, now, RUNS)? {
        let failed = run.end == ObservedEnd::Failed && is_image(&run, &image.sha256);
        let Some(failure) = run.failure.filter(|_| failed) else { continue };
        let is_new = failures.iter().all(|known| known.signature != failure.signature);
        if is_new && has_passed(now, &failure) {
            failures.push(failure);
        }
    }
    Ok(failures)
}

fn is_image(run: &ObservedRun, sha256: &str) -> bool {
    run.image.as_ref().is_some_and(|image| image.sha256 == sha256)
}

fn signature_of(run: &ObservedRun) -> Option<&str> {
    let failed = run.failure.as_ref().filter(|_| run.end == ObservedEnd::Failed);
    failed.map(|failure| failure.signature.as_str())
}

fn has_passed(run: &ObservedRun, failure: &ObservedFailure) -> bool {
    failure.failed.iter().all(|name| run.passed.contains(name))
}
