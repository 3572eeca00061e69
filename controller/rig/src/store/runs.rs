//! The runs folder: begin, list and find runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::{Identity, RunId};
use nix::fcntl::{Flock, FlockArg};

use super::{Clock, LiveRun, NewRun, RunDir, RunRecord, StoreError, id};

/// How many ids an error message lists.
const SHOWN: usize = 5;

/// A folder of runs.
#[derive(Debug, Clone)]
pub struct RunStore {
    root: PathBuf,
    by: Option<Identity>,
}

/// One run of a listing.
#[derive(Debug)]
pub struct RunEntry {
    /// Its directory.
    pub dir: RunDir,
    /// Its record, or why that cannot be read.
    pub record: Result<RunRecord, StoreError>,
    /// Whether its jig is alive.
    pub live: bool,
}

/// What the lock of a run says.
pub(super) enum Lock {
    /// There is none: the run has ended.
    Gone,
    /// Another process holds it.
    Held,
    /// It was free and is ours now.
    Taken(Flock<File>),
}

/// Tries a run's lock. Looking shares it with other lookers; sweeping takes it alone.
pub(super) fn try_lock(path: &Path, how: FlockArg) -> Result<Lock, StoreError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Lock::Gone),
        Err(e) => return Err(StoreError::reading(path, e)),
    };
    match Flock::lock(file, how) {
        Ok(lock) => Ok(Lock::Taken(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(Lock::Held),
        Err((_, errno)) => Err(StoreError::reading(path, errno.into())),
    }
}

impl RunStore {
    /// Names a folder of runs; it is created with the first run.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        // What a run starts works in other directories, so its paths must not depend on one.
        let root = std::path::absolute(&root).unwrap_or(root);
        Self { root, by: None }
    }

    /// Sets who begins the runs, for their records.
    #[must_use]
    pub fn by(self, identity: Identity) -> Self {
        Self { by: Some(identity), ..self }
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Begins a run.
    ///
    /// # Errors
    /// Says why the folder cannot be written.
    pub fn begin(&self, new: NewRun, clock: Arc<dyn Clock>) -> Result<LiveRun, StoreError> {
        let identity = new.identity.or_else(|| self.by.clone());
        LiveRun::begin(&self.root, NewRun { identity, ..new }, clock)
    }

    /// Returns the directories whose names are run ids, newest first. Anything else in
    /// the folder, links included, is not ours and never touched.
    pub(super) fn dirs(&self) -> Result<Vec<RunDir>, StoreError> {
        let mut dirs = Vec::new();
        for (name, _) in self.folders()? {
            if let Ok(id) = name.parse::<RunId>()
                && id::started(&id).is_some()
            {
                dirs.push(RunDir::new(&self.root, id));
            }
        }
        dirs.sort_by(|a, b| b.id().cmp(a.id()));
        Ok(dirs)
    }

    /// Returns names and paths of the real directories in the folder; none if the folder
    /// does not exist, because then there has been no run.
    pub(super) fn folders(&self) -> Result<Vec<(String, PathBuf)>, StoreError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(StoreError::reading(&self.root, e)),
        };
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| StoreError::reading(&self.root, e))?;
            // An entry that vanishes while we look is no folder any more.
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Ok(name) = entry.file_name().into_string()
            {
                folders.push((name, entry.path()));
            }
        }
        Ok(folders)
    }

    /// Returns the ids of the runs, newest first, without reading any.
    ///
    /// # Errors
    /// Says why the folder itself cannot be read.
    pub fn ids(&self) -> Result<Vec<RunId>, StoreError> {
        Ok(self.dirs()?.into_iter().map(|dir| dir.id().clone()).collect())
    }

    /// Lists the runs, newest first; broken ones are listed as such.
    ///
    /// # Errors
    /// Says why the folder itself cannot be read.
    pub fn list(&self) -> Result<Vec<RunEntry>, StoreError> {
        Ok(self.dirs()?.into_iter().map(entry).collect())
    }

    /// Looks at the runs one after the other, newest first; broken ones are met as such. A run is
    /// read when the iterator reaches it.
    ///
    /// # Errors
    /// Says why the folder itself cannot be read.
    pub fn newest_first(&self) -> Result<impl Iterator<Item = RunEntry> + use<>, StoreError> {
        Ok(self.dirs()?.into_iter().map(entry))
    }

    /// Looks at the runs that are older than `before`, or at all of them, newest first, as
    /// [`RunStore::newest_first`].
    ///
    /// # Errors
    /// Says why the folder itself cannot be read.
    pub fn newest_before(
        &self,
        before: Option<&RunId>,
    ) -> Result<impl Iterator<Item = RunEntry> + use<>, StoreError> {
        let mut dirs = self.dirs()?;
        dirs.retain(|dir| before.is_none_or(|before| dir.id() < before));
        Ok(dirs.into_iter().map(entry))
    }

    /// Finds a run by its id, by a unique beginning of it, or as `last`.
    ///
    /// # Errors
    /// Says which runs it may mean, or which come near.
    pub fn open(&self, wanted: &str) -> Result<RunEntry, StoreError> {
        let mut dirs = self.dirs()?;
        let mut matching: Vec<usize> = if wanted == "last" {
            (0..dirs.len().min(1)).collect()
        } else {
            // A whole id is never a prefix of another: all have the same length.
            let fits = |at: &usize| {
                !wanted.is_empty()
                    && dirs.get(*at).is_some_and(|dir| dir.id().as_str().starts_with(wanted))
            };
            (0..dirs.len()).filter(fits).collect()
        };
        match (matching.pop(), matching.len()) {
            (Some(at), 0) => Ok(entry(dirs.swap_remove(at))),
            (Some(at), _) => {
                let all = matching.iter().chain([&at]).take(SHOWN);
                let ids = all.filter_map(|&at| dirs.get(at)).map(|dir| dir.id().to_string());
                Err(StoreError::Ambiguous { wanted: clip(wanted), matches: ids.collect() })
            }
            (None, _) => {
                let root = self.root.clone();
                let wanted = clip(wanted);
                let nearest = nearest(&wanted, &dirs);
                Err(StoreError::NotFound { wanted, root, nearest })
            }
        }
    }
}

impl RunDir {
    /// Tells whether the jig of the run is alive.
    pub fn is_live(&self) -> bool {
        matches!(try_lock(&self.lock_path(), FlockArg::LockSharedNonblock), Ok(Lock::Held))
    }
}

fn entry(dir: RunDir) -> RunEntry {
    let live = dir.is_live();
    RunEntry { record: dir.record(), live, dir }
}

/// Ids are short; what a user typed may not be.
fn clip(wanted: &str) -> String {
    wanted.chars().take(40).collect()
}

fn nearest(wanted: &str, dirs: &[RunDir]) -> Vec<String> {
    let mut scored: Vec<(f64, &RunDir)> = dirs
        .iter()
        .map(|dir| (strsim::jaro_winkler(wanted, dir.id().as_str()), dir))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    // Stable, so equally near runs stay newest first.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, dir)| dir.id().to_string()).collect()
}
