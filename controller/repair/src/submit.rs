//! Patches of clients: what a run that waits for a patch takes from another process.
//!
//! A submission is a row of the journal and a file in the run's folder, nothing more: the run reviews
//! it like the proposal of any agent. What the policy refuses is refused here already, so that the
//! client learns of it while it can still answer.

use std::io;
use std::path::PathBuf;

use crate::journal::{Digest, Entry, Journal, JournalError, Request, SubmittedPatch};
use crate::patch::{Patch, PatchError};
use crate::policy::{Policy, review};
use crate::run::Run;
use crate::setup::RepairFolder;

/// Longest hypothesis that is kept, in bytes.
const MAX_HYPOTHESIS: usize = 2000;

/// Says why a submission is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The run does not wait for a patch.
    #[error("the run does not wait for a patch")]
    NotAwaited,
    /// Another client was first.
    #[error("another patch was submitted first")]
    Late,
    /// The text is no patch.
    #[error("this is no patch that can be used")]
    NoPatch(#[from] PatchError),
    /// The run has tried this change.
    #[error("the same change was proposed before")]
    Repeated,
    /// The policy of the run forbids the change.
    #[error("the policy refuses the patch: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// It changes files that are not there.
    #[error("the patch changes files that do not exist: {}", .0.join("; "))]
    Missing(Vec<String>),
    /// The diff cannot be kept.
    #[error("could not write {path}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Submits a patch to a run; returns the identity of the change. `files` are those of the base.
///
/// # Errors
/// The run waits for none, the patch cannot be used or is forbidden, or the disk refuses.
pub fn submit(
    journal: &mut Journal,
    (run, policy, files): (&Run, &Policy, &[String]),
    folder: &RepairFolder,
    diff: &str,
    hypothesis: &str,
) -> Result<String, SubmitError> {
    let answers = run.waits.clone().filter(|_| run.waits_for_patch() && run.ended.is_none());
    let answers = answers.ok_or(SubmitError::NotAwaited)?;
    if run.submitted.is_some() {
        return Err(SubmitError::Late);
    }
    let patch = Patch::read(diff)?;
    let id = patch.id();
    if run.patches.contains(&id) {
        return Err(SubmitError::Repeated);
    }
    let refusals = review(&patch, &policy.for_run(run)).refusals;
    if !refusals.is_empty() {
        return Err(SubmitError::Refused(refusals));
    }
    let missing = patch.missing_files(files);
    if !missing.is_empty() {
        return Err(SubmitError::Missing(missing));
    }
    // The form that git is given: what was reviewed, and nothing else.
    let diff = patch.to_string();
    let digest = Digest::of(diff.as_bytes()).to_string();
    let path = folder.submitted(&digest);
    folder.write(&path, diff.as_bytes()).map_err(|source| SubmitError::Write { path, source })?;
    let hypothesis = hypothesis[..hypothesis.floor_char_boundary(MAX_HYPOTHESIS)].to_owned();
    journal.append(&Entry::Request(Request::Submit(SubmittedPatch {
        answers,
        diff: digest,
        hypothesis,
    })))?;
    Ok(id)
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
