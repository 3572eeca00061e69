//! Where the record of a run goes whose own folder cannot take it.
//!
//! A run's folder may be deleted while the run goes on, by a clean-up of the host or by hand. The
//! verdict is then all that is left, and it is kept: in the run's folder, made anew, else in a
//! folder for temporary files.

use std::fs::{DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use jig_model::{Cause, Note, Verdict, VerdictKind};

use super::disk::Durability;
use super::{RunDir, RunRecord, StoreError};

/// Returns the folder of this user's records that could not be kept in their runs folder.
pub fn lost_runs() -> PathBuf {
    std::env::temp_dir().join(format!("jig-lost-runs-{}", nix::unistd::getuid()))
}

/// Saves the record of a run elsewhere, under the verdict that its storage failed.
pub(super) fn put_aside(
    record: &mut RunRecord,
    dir: &RunDir,
    error: StoreError,
) -> Result<(), StoreError> {
    let spare = RunDir::new(&lost_runs(), dir.id().clone());
    let shown = record.verdict.take();
    for place in [dir, &spare] {
        record.conclude(lost(shown.clone(), dir, place));
        if place.path() == spare.path() && !is_own(&lost_runs()) {
            continue;
        }
        let folder = DirBuilder::new().recursive(true).mode(0o750).create(place.path());
        if folder.is_ok() && record.write(&place.record_path(), Durability::PowerCut).is_ok() {
            return Ok(());
        }
    }
    Err(error)
}

/// Makes a folder that belongs to this user, or tells whether there is one: in a folder for
/// temporary files another user may have put a link of that name.
fn is_own(folder: &Path) -> bool {
    let made = DirBuilder::new().mode(0o750).create(folder);
    let about = folder.symlink_metadata();
    let own = |about: Metadata| about.is_dir() && about.uid() == nix::unistd::getuid().as_raw();
    made.is_ok() || about.is_ok_and(own)
}

/// Returns the verdict of a run whose folder was lost; the run's own verdict is a note.
fn lost(shown: Option<Verdict>, dir: &RunDir, kept: &RunDir) -> Verdict {
    let summary = format!(
        "the run folder {} was deleted or cannot be written, so the logs are incomplete; the \
         verdict is kept in {} (run the test again, with a runs folder that nothing cleans up \
         meanwhile)",
        dir.path().display(),
        kept.record_path().display()
    );
    let mut verdict = Verdict::of(Cause::StorageFailed, summary);
    if let Some(shown) = shown {
        verdict.tests = shown.tests;
        verdict.notes = shown.notes;
        if shown.kind != VerdictKind::EnvError {
            let seen = Note::Shown { cause: shown.cause, summary: shown.summary };
            verdict.notes.insert(0, seen);
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_of_this_user_takes_records() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        assert!(is_own(&at("new")) && is_own(&at("new")));
        std::os::unix::fs::symlink(at("new"), at("link")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        assert!(!is_own(&at("link")) && !is_own(&at("file")) && !is_own(&at("none/below")));
        if nix::unistd::getuid().is_root() {
            std::os::unix::fs::chown(at("new"), Some(1), None).unwrap();
            assert!(!is_own(&at("new")));
        }
    }
}
