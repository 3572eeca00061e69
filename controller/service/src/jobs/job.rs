//! One job, by its folder.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jig_drivers::process::SpawnError;
use jig_model::command::{Command, CommandEvent, WorkerLine};
use jig_model::{Fault, Identity, LeaseId, RunId};
use serde::{Deserialize, Serialize};

use super::JobId;

/// Longest `job.json`: the longest command, and some more.
const MOST_SPEC: u64 = 3 << 20;

/// How much of a job's output is looked at for the run that it makes, in bytes.
const MOST_START: u64 = 16 << 10;

/// What a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// The command.
    pub command: Command,
    /// Who asked for it.
    pub by: Identity,
    /// Whether it is cancelled when its callers have been gone for a while.
    pub attached: bool,
    /// The lease that the command names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseId>,
}

/// Says why a job was not begun or found.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is no such job.
    #[error("there is no job {0}; jobs that have ended are kept for three days")]
    Unknown(JobId),
    /// No further job is begun.
    #[error("the service of this rig is stopping and begins no command; ask again in a minute")]
    Closed,
    /// A file of it cannot be used.
    #[error("{what} {}", path.display())]
    File {
        /// What was tried: `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
    /// What it is cannot be read.
    #[error("{} does not say what the job is", path.display())]
    Spec {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// Its process cannot be started.
    #[error("start the job's worker")]
    Worker(#[from] SpawnError),
}

impl JobError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unknown(_) => Fault::Usage,
            Self::Closed | Self::File { .. } | Self::Spec { .. } | Self::Worker(_) => Fault::Lab,
        }
    }

    pub(super) fn file(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { what, path: path.to_owned(), source }
    }
}

/// A job, by its folder.
#[derive(Debug, Clone)]
pub struct Job {
    pub(super) id: JobId,
    pub(super) folder: PathBuf,
}

impl Job {
    /// Names the folder of a job, as its worker is told it.
    pub fn in_folder(folder: &Path) -> Option<Self> {
        let id = folder.file_name()?.to_str()?.parse().ok()?;
        Some(Self { id, folder: folder.to_owned() })
    }

    /// Returns its name.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// Reads what it is.
    ///
    /// # Errors
    /// Its file cannot be read, or says something else.
    pub fn spec(&self) -> Result<JobSpec, JobError> {
        let path = self.folder.join("job.json");
        let text = jig_rig::store::read_whole(&path, MOST_SPEC)
            .map_err(|error| JobError::file("read", &path, error))?;
        serde_json::from_slice(&text).map_err(|source| JobError::Spec { path, source })
    }

    /// Reads the first lines of its output.
    fn first_lines(&self) -> Vec<WorkerLine> {
        let file = File::open(self.folder.join("out.jsonl"));
        let mut start = Vec::new();
        // A start that cannot be read has no lines.
        let _ = file.and_then(|file| file.take(MOST_START).read_to_end(&mut start));
        start.split(|&byte| byte == b'\n').map_while(|l| WorkerLine::from_line(l).ok()).collect()
    }

    /// Finds out which run it makes, by the first lines of its output.
    pub fn run(&self) -> Option<RunId> {
        self.first_lines().into_iter().find_map(|line| match line {
            WorkerLine::Event(CommandEvent::RunBegan { run, .. }) => Some(run),
            WorkerLine::Event(_) | WorkerLine::Reply(_) | WorkerLine::Refused(_) => None,
        })
    }

    /// Tells whether its process lives.
    pub fn is_alive(&self) -> bool {
        // Shared, so that two who ask at once do not take each other for the worker.
        self.is_locked("lock", File::try_lock_shared)
    }

    /// Tells whether a process follows it.
    pub fn is_followed(&self) -> bool {
        self.is_locked("followed", File::try_lock)
    }

    fn is_locked(&self, name: &str, probe: fn(&File) -> Result<(), TryLockError>) -> bool {
        let file = File::open(self.folder.join(name));
        file.is_ok_and(|file| matches!(probe(&file), Err(TryLockError::WouldBlock)))
    }
}
