//! Where repair runs are: a folder each, beside the runs of the rig.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jig_lab::Catalogue;
use jig_model::Fault;
use jig_repair::driver_lock::DriverLockError;
use jig_repair::journal::{Journal, JournalError};
use jig_repair::policy::Policy;
use jig_repair::redact::Redactor;
use jig_repair::run::Run;
use jig_repair::setup::RepairFolder;
pub(super) use jig_repair::setup::{HELD_OUT, ORIGIN, PLAN, POLICY, TASK};
use jig_repair::task::RepairTask;
use jig_rig::store::id_to_try;

use serde::{Deserialize, Serialize};

use super::host::redactor_of;
use crate::args::Common;
use crate::failure::Failure;

/// What a run was begun with, beside the files that it copied.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    /// Top folder of the repository.
    pub(super) repo: PathBuf,
    /// Rig file and folder of profiles, where they were named.
    pub(super) rig: Option<PathBuf>,
    pub(super) boards: Option<PathBuf>,
    /// The rig elsewhere, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) there: Option<String>,
}

/// Returns the folder of all repair runs.
pub(super) fn root(common: &Common) -> Result<PathBuf, Failure> {
    // Runs of a rig elsewhere are copied into the same folder.
    let runs = Catalogue::load(&common.own_lab())?.runs_dir();
    let path = runs.join("repairs");
    std::path::absolute(&path).map_err(|error| unusable(&path, &error))
}

pub(super) fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Lab, format!("could not use {}: {error}", path.display()))
}

/// Makes the folder of a new run; its name sorts by the time.
pub(super) fn make(root: &Path) -> Result<(String, PathBuf), Failure> {
    make_at(root, jiff::Timestamp::now())
}

fn make_at(root: &Path, now: jiff::Timestamp) -> Result<(String, PathBuf), Failure> {
    fs::create_dir_all(root).map_err(|error| unusable(root, &error))?;
    for id in (0..1000).map_while(|n| id_to_try(now, n)) {
        let name = format!("r{id}");
        let path = root.join(&name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok((name, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unusable(&path, &error)),
        }
    }
    Err(Failure::new(Fault::Lab, format!("no name is free in {}", root.display())))
}

/// Lists the runs, newest first.
pub(super) fn names(root: &Path) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(root, &error)),
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with('r') && root.join(name).join("journal.db").is_file())
        .collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

/// Finds a run by its name, a beginning of it, or as `last`.
pub(super) fn find(common: &Common, wanted: &str) -> Result<(String, PathBuf), Failure> {
    let root = root(common)?;
    let mut names = names(&root)?;
    let help = "jig repair status lists the runs";
    if wanted == "last" {
        names.truncate(1);
    } else {
        names.retain(|name| name.starts_with(wanted) || name[1..].starts_with(wanted));
    }
    match names.as_slice() {
        [name] if !wanted.is_empty() => Ok((name.clone(), root.join(name))),
        [] => {
            let words = format!("there is no repair run {wanted:?} in {}", root.display());
            Err(Failure::new(Fault::Usage, words).help(help))
        }
        several => {
            let words = format!("{wanted:?} may be one of {} repair runs", several.len());
            Err(Failure::new(Fault::Usage, words).help(help))
        }
    }
}

/// Names a repair run and the runs of the rig that it has made, where there is one of this name.
pub(crate) fn rig_runs(common: &Common, wanted: &str) -> Option<(String, Vec<String>)> {
    // Others are names of runs of the rig, or beginnings of them.
    let wanted = Some(wanted).filter(|name| name.starts_with('r'))?;
    let (name, folder) = find(common, wanted).ok()?;
    let results = fs::read_dir(folder.join("results")).into_iter().flatten().flatten();
    let run = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_str()?.to_owned());
    let mut runs: Vec<_> = results.filter_map(run).collect();
    runs.sort_unstable();
    Some((name, runs))
}

/// Opens the journal of a run to read it, and folds it.
pub(super) fn open(folder: &Path) -> Result<(Journal, Run), Failure> {
    opened(folder, Redactor::default())
}

/// Opens the journal of a run to write a request into it, without the secrets of its agents.
pub(super) fn open_to_ask(folder: &Path) -> Result<(Journal, Run), Failure> {
    let path = folder.join(TASK);
    let text = fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
    let task = RepairTask::parse(TASK, &text).map_err(|bad| Failure::problems(vec![bad]))?;
    opened(folder, redactor_of(&task))
}

fn opened(folder: &Path, redactor: Redactor) -> Result<(Journal, Run), Failure> {
    let journal = Journal::open(folder, redactor)?;
    let rows = journal.rows()?;
    let run = Run::of(&rows).map_err(|error| Failure::of(Fault::Lab, &error))?;
    Ok((journal, run))
}

/// Refuses a run whose copies of the task's files are not those that it was begun with.
pub(super) fn as_begun(folder: &Path, run: &Run) -> Result<(), Failure> {
    let changed = RepairFolder::new(folder).changed_copy(&run.contract);
    match changed.map_err(|error| unusable(folder, &error))? {
        None => Ok(()),
        Some(path) => {
            let words = format!("{} is not what the run was begun with", path.display());
            let help = "nothing of it is used; begin the run again from its task";
            Err(Failure::new(Fault::Lab, words).help(help))
        }
    }
}

/// Reads where repository, rig and boards of a run are.
pub(super) fn origin_of(folder: &Path) -> Result<Origin, Failure> {
    let path = folder.join(ORIGIN);
    let text = fs::read_to_string(&path).map_err(|error| unusable(&path, &error))?;
    serde_json::from_str(&text).map_err(|error| Failure::of(Fault::Lab, &error))
}

/// Reads the policy of a run.
pub(super) fn policy_of(folder: &Path) -> Result<Policy, Failure> {
    let path = folder.join(POLICY);
    match fs::read_to_string(&path) {
        Ok(text) => Policy::parse(POLICY, &text).map_err(|bad| Failure::problems(vec![bad])),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Policy::default()),
        Err(error) => Err(unusable(&path, &error)),
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let fault = match &error {
            JournalError::Newer { .. } => Fault::Usage,
            _ => Fault::Lab,
        };
        let failure = Self::of(fault, &error);
        match error {
            JournalError::Newer { .. } => failure.help("use the jig that wrote it, or a newer one"),
            JournalError::Broken { .. } => {
                failure.help("nothing of it is used; begin the run again from its task")
            }
            _ => failure,
        }
    }
}

impl From<DriverLockError> for Failure {
    fn from(error: DriverLockError) -> Self {
        match &error {
            DriverLockError::Driven(_) => {
                Self::of(Fault::Usage, &error).help("jig repair watch RUN follows it")
            }
            DriverLockError::File { .. } => Self::of(Fault::Lab, &error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_the_time_within_a_second() {
        let root = tempfile::tempdir().unwrap();
        let at = |time: &str| make_at(root.path(), time.parse().unwrap()).unwrap().0;
        let made = ["50.000010Z", "50.070000Z", "50.070000Z", "50.900000Z", "51.000000Z"]
            .map(|seconds| at(&format!("2026-11-24T18:58:{seconds}")));
        assert!(made.is_sorted(), "{made:?}");
        assert_eq!(names(root.path()).unwrap(), [""; 0], "a folder without a journal is no run");
    }
}
