//! Where sessions are: a folder each, beside the runs of the rig.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::Fault;
use jig_model::redact::Redactor;
use jig_operator::journal::{
    SessionJournal, SessionJournalError, SessionLock, SessionLockError, SessionRow,
};
use jig_operator::session::Session;
use jig_rig::store::id_to_try;

use crate::args::Common;
use crate::commands::rig::OpenRig;
use crate::failure::Failure;

/// Returns the folder of all sessions.
pub(super) fn root(common: &Common) -> Result<PathBuf, Failure> {
    let path = sessions_of(&OpenRig::open(common)?.runs_dir());
    std::path::absolute(&path).map_err(|error| unusable(&path, &error))
}

/// Returns the folder of the sessions beside a folder of runs.
pub(crate) fn sessions_of(runs: &Path) -> PathBuf {
    runs.join("sessions")
}

pub(super) fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Fault::Lab, format!("could not use {}: {error}", path.display()))
}

/// Removes from rows what secret variables of this process hold.
pub(super) fn redactor() -> Redactor {
    Redactor::new(secret_variables())
}

/// Lists the variables of this process that hold secrets, by their names.
pub(super) fn secret_variables() -> impl Iterator<Item = (String, String)> {
    let secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|word| name.contains(word))
    };
    std::env::vars_os().filter_map(move |(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        secret(&name).then_some((name, value))
    })
}

/// How the folder of a session that is being begun is named, in front of its name.
const BEGUN: &str = ".new-";

/// Since when a folder that is being begun is left over from a process that is gone.
const LEFT_OVER: Duration = Duration::from_secs(3600);

/// A session that is being begun. It is there, under its name, as soon as its first row is durable.
pub(super) struct NewSession {
    /// Its name, which sorts by the time.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The folder in which its journal is begun.
    pub(super) begun: PathBuf,
}

impl NewSession {
    /// Makes the folder in which a journal is begun.
    pub(super) fn make(root: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(root).map_err(|error| unusable(root, &error))?;
        sweep(root);
        let now = jiff::Timestamp::now();
        for id in (0..1000).map_while(|n| id_to_try(now, n)) {
            let name = format!("s{id}");
            let (folder, begun) = (root.join(&name), root.join(format!("{BEGUN}{name}")));
            if folder.exists() {
                continue;
            }
            match fs::create_dir(&begun) {
                Ok(()) => return Ok(Self { name, folder, begun }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unusable(&begun, &error)),
            }
        }
        Err(Failure::new(Fault::Lab, format!("no name is free in {}", root.display())))
    }

    /// Gives the folder its name.
    pub(super) fn there(&self) -> Result<(), Failure> {
        let root = self.folder.parent().unwrap_or(Path::new("."));
        let named = fs::rename(&self.begun, &self.folder);
        let named = named.and_then(|()| File::open(root)?.sync_all());
        named.map_err(|error| unusable(&self.folder, &error))
    }
}

/// Removes what processes have left that were killed while they began a session.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let begun = entry.file_name().to_str().is_some_and(|name| name.starts_with(BEGUN));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if begun && age().is_some_and(|age| age > LEFT_OVER) {
            // What cannot be removed is no session, and costs nothing but its place.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Lists the sessions, newest first.
pub(super) fn names(root: &Path) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unusable(root, &error)),
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with('s') && SessionJournal::is_in(&root.join(name)))
        .collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names)
}

/// Finds a session by its name, a beginning of it, or as `last`.
pub(super) fn find(common: &Common, wanted: &str) -> Result<(String, PathBuf), Failure> {
    let root = root(common)?;
    let mut names = names(&root)?;
    let help = "jig sessions ls lists the sessions";
    if wanted == "last" {
        names.truncate(1);
    } else if names.iter().any(|name| name == wanted) {
        names.retain(|name| name == wanted);
    } else {
        names.retain(|name| name.starts_with(wanted) || name[1..].starts_with(wanted));
    }
    match names.as_slice() {
        [name] if !wanted.is_empty() => Ok((name.clone(), root.join(name))),
        [] => {
            let words = format!("there is no session {wanted:?} in {}", root.display());
            Err(Failure::new(Fault::Usage, words).help(help))
        }
        several => {
            let words = format!("{wanted:?} may be one of {} sessions", several.len());
            Err(Failure::new(Fault::Usage, words).help(help))
        }
    }
}

/// Opens the journal of a session and folds it.
pub(super) fn open(folder: &Path) -> Result<(SessionJournal, Session, Vec<SessionRow>), Failure> {
    let journal = open_with(folder, redactor())?;
    let rows = journal.rows().map_err(journal_failure)?;
    let session = Session::of(&rows).map_err(|error| Failure::of(Fault::Lab, &error))?;
    Ok((journal, session, rows))
}

/// Opens the journal of a session, to write rows without what a redactor knows.
pub(super) fn open_with(folder: &Path, redactor: Redactor) -> Result<SessionJournal, Failure> {
    SessionJournal::open(folder, redactor).map_err(journal_failure)
}

/// Takes the right to drive a session.
pub(super) fn lock(folder: &Path) -> Result<SessionLock, Failure> {
    SessionLock::take(folder).map_err(|error| match &error {
        SessionLockError::Driven(_) => {
            Failure::of(Fault::Usage, &error).help("jig sessions cancel SESSION ends it")
        }
        SessionLockError::File { .. } => Failure::of(Fault::Lab, &error),
    })
}

pub(super) fn journal_failure(error: SessionJournalError) -> Failure {
    let fault = match &error {
        SessionJournalError::Newer { .. } => Fault::Usage,
        _ => Fault::Lab,
    };
    let failure = Failure::of(fault, &error);
    match error {
        SessionJournalError::Newer { .. } => {
            failure.help("use the jig that wrote it, or a newer one")
        }
        SessionJournalError::Broken { .. } => failure.help("nothing of it is used; ask again"),
        _ => failure,
    }
}
