//! SUCCESS, FAILURE and ABORTED: the result document, the report for people, the diff; then nothing of
//! the run is left in the repository but the branch of a success.

mod document;
mod text;

use std::fs;

use jig_model::chain;

use crate::git::GitError;
use crate::journal::{Journal, StepResult};
use crate::localise::RankedSuspect;
use crate::machine::{RepairEvent, RepairState};
use crate::proof::proven;
use crate::run::Run;
use crate::setup::RepairSetup;

pub use document::{RepairDocument, RepairTransition, exit_code, look_at, warning};

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    // A run that was stopped stays a run that was stopped, whatever goes wrong here.
    let done = |reason| StepResult::of(RepairEvent::Reported, reason);
    let mut troubles = Vec::new();
    let is_proven = run.proof.as_ref().is_some_and(|facts| proven(facts).is_ok());
    let repaired = run.state == RepairState::Success && is_proven;
    let branch = format!("jig/repair/{}", setup.name);
    // What is no repair is kept as a patch, and is no branch of the user.
    let made = async {
        match run.applied.as_ref().filter(|_| repaired) {
            Some(commit) => setup.git.set_branch(&branch, commit).await,
            None => Ok(()),
        }
    };
    let (made, removed) = tokio::join!(made, remove_tree(setup));
    troubles.extend(made.and(removed).err().map(|error| chain(&error)));
    // The output of git passes through it.
    let _ = fs::remove_dir_all(setup.folder.scratch());
    let suspects = setup.folder.read_json(&setup.folder.suspects(run.iteration));
    let suspects: Vec<RankedSuspect> = suspects.unwrap_or_default();
    let rows = Journal::open(setup.folder.path(), setup.redactor.clone());
    let rows = rows.and_then(|journal| journal.rows()).unwrap_or_else(|error| {
        troubles.push(chain(&error));
        Vec::new()
    });
    let document = document::document(setup, run, repaired, (&suspects, &rows));
    // A patch is text: what is not was refused.
    let diff = document.diff.as_ref().and_then(|path| fs::read_to_string(path).ok());
    let parts = text::ReportParts {
        run,
        document: &document,
        suspects: &suspects,
        diff: diff.as_deref(),
        rows: &rows,
    };
    let text = text::markdown(&parts);
    let written = setup
        .folder
        .write_json(&setup.folder.document(), &document)
        .and_then(|()| setup.folder.write(&setup.folder.report(), text.as_bytes()));
    troubles.extend(written.err().map(|error| error.to_string()));
    if troubles.is_empty() {
        return done(format!("the report is {}", setup.folder.report().display()));
    }
    done(format!("the end is not complete: {}", troubles.join("; ")))
}

async fn remove_tree(setup: &RepairSetup) -> Result<(), GitError> {
    let path = setup.folder.tree();
    if path.exists() || setup.git.knows_tree(&path).await? {
        setup.git.work_tree_remove(&path).await?;
    }
    Ok(())
}
