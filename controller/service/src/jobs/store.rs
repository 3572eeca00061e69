//! The folder of jobs: begin, find, list and remove.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_drivers::process::{SpawnError, UnattendedRequest, start_unattended};
use jig_model::Fault;
use jig_model::command::{Command, WorkerLine};
use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::{Deserialize, Serialize};

use super::{JobFollowError, JobFollower, JobId, JobInputs};

/// How long the folder of a job that has ended is kept: a caller that lost its connection over a
/// weekend still gets its answer.
const KEPT: Duration = Duration::from_secs(3 * 86_400);

/// Most jobs that are kept, however young.
const MOST_KEPT: usize = 500;

/// Marks a folder that is being built.
const NEW_PREFIX: &str = ".new-";

/// Longest `job.json`: the longest command, and some more.
const MOST_SPEC: u64 = 3 << 20;

/// How much of a job's output is looked at for the run that it makes, in bytes.
const MOST_START: u64 = 16 << 10;

/// The program that carries out jobs: this one.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program.
    pub program: OsString,
    /// What is said in front of `worker`: where the rig is described.
    pub args: Vec<OsString>,
}

/// What a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// The command.
    pub command: Command,
    /// Who asked for it; may hold any text.
    pub by: String,
    /// Whether it is cancelled when its callers have been gone for a while.
    pub attached: bool,
}

/// Says why a job was not begun or found.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is no such job.
    #[error("there is no job {0}; jobs that have ended are kept for three days")]
    Unknown(JobId),
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
            Self::File { .. } | Self::Spec { .. } | Self::Worker(_) => Fault::Lab,
        }
    }

    pub(super) fn file(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { what, path: path.to_owned(), source }
    }
}

/// A folder of jobs.
#[derive(Debug, Clone)]
pub struct JobStore {
    root: PathBuf,
}

/// A job, by its folder.
#[derive(Debug, Clone)]
pub struct Job {
    id: JobId,
    folder: PathBuf,
}

impl JobStore {
    /// Names a folder of jobs; it is made with the first one.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Begins a job, or finds it if it was begun before.
    ///
    /// # Errors
    /// Its folder cannot be made, or its process not be started.
    pub fn begin(
        &self,
        id: &JobId,
        spec: &JobSpec,
        worker: &WorkerProgram,
    ) -> Result<Job, JobError> {
        if let Ok(job) = self.open(id) {
            return Ok(job);
        }
        self.remove_old();
        let hidden = self.root.join(format!("{NEW_PREFIX}{id}"));
        private(&hidden)?;
        let job = Job { id: id.clone(), folder: self.root.join(id.as_str()) };
        let begun = self.build(&hidden, &job, spec, worker);
        if begun.is_err() {
            let _ = fs::remove_dir_all(&hidden);
        }
        begun.map(|()| job)
    }

    fn build(
        &self,
        hidden: &Path,
        job: &Job,
        spec: &JobSpec,
        worker: &WorkerProgram,
    ) -> Result<(), JobError> {
        let made = |name: &str| {
            let path = hidden.join(name);
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
            file.map_err(|error| JobError::file("write", &path, error))
        };
        let path = hidden.join("job.json");
        let text = serde_json::to_vec(spec)
            .map_err(|source| JobError::Spec { path: path.clone(), source })?;
        made("job.json")?
            .write_all(&text)
            .map_err(|error| JobError::file("write", &path, error))?;
        let fifo = hidden.join("input");
        match mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(JobError::file("make", &fifo, errno.into())),
        }
        let (output, errors, lock) = (made("out.jsonl")?, made("err.log")?, made("lock")?);
        made("followed")?;
        private(&hidden.join("outputs"))?;
        match lock.try_lock() {
            Ok(()) => {}
            // Another process builds the same job at this moment.
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(JobError::file("lock", &hidden.join("lock"), error));
            }
        }
        match fs::rename(hidden, &job.folder) {
            Ok(()) => {}
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                let _ = fs::remove_dir_all(hidden);
                return Ok(());
            }
            Err(error) => return Err(JobError::file("make", &job.folder, error)),
        }
        let mut args = worker.args.clone();
        args.extend(["worker".into(), "--job".into(), job.folder.clone().into()]);
        let program = worker.program.clone();
        Ok(start_unattended(UnattendedRequest { program, args, lock, output, errors })?)
    }

    /// Returns the path by which a job writes a file for its caller; `name` is one component.
    pub fn output(&self, id: &JobId, name: &str) -> PathBuf {
        self.root.join(id.as_str()).join("outputs").join(name)
    }

    /// Finds a job.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn open(&self, id: &JobId) -> Result<Job, JobError> {
        let folder = self.root.join(id.as_str());
        match folder.is_dir() {
            true => Ok(Job { id: id.clone(), folder }),
            false => Err(JobError::Unknown(id.clone())),
        }
    }

    /// Lists the jobs, the newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<Job>, JobError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(JobError::file("read", &self.root, error)),
        };
        let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut ids: Vec<JobId> = ids.collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        Ok(ids.into_iter().filter_map(|id| self.open(&id).ok()).collect())
    }

    /// Removes jobs that ended long ago, and folders that were never finished.
    fn remove_old(&self) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        let old = |path: &Path, age: Duration| {
            let changed = fs::metadata(path).and_then(|about| about.modified());
            changed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since > age))
        };
        for entry in entries.filter_map(Result::ok) {
            let unfinished = entry.file_name().to_string_lossy().starts_with(NEW_PREFIX);
            if unfinished && old(&entry.path(), Duration::from_secs(60)) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let jobs = self.list().unwrap_or_default();
        for (number, job) in jobs.iter().enumerate() {
            let due = number >= MOST_KEPT || old(&job.folder.join("out.jsonl"), KEPT);
            if due && !job.is_alive() {
                let _ = fs::remove_dir_all(&job.folder);
            }
        }
    }
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
    pub fn first_lines(&self) -> Vec<WorkerLine> {
        let file = File::open(self.folder.join("out.jsonl"));
        let mut start = Vec::new();
        // A start that cannot be read has no lines.
        let _ = file.and_then(|file| file.take(MOST_START).read_to_end(&mut start));
        start.split(|&byte| byte == b'\n').map_while(|l| WorkerLine::from_line(l).ok()).collect()
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

    /// Follows it from an offset of its output on.
    ///
    /// # Errors
    /// Its files cannot be opened.
    pub fn follow(&self, offset: u64) -> Result<JobFollower, JobFollowError> {
        JobFollower::open(&self.folder, offset)
    }

    /// Returns the way by which it is given input.
    pub fn inputs(&self) -> JobInputs {
        JobInputs::new(self.clone(), self.folder.join("input"))
    }
}

/// Makes a folder that only this user sees.
fn private(path: &Path) -> Result<(), JobError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| JobError::file("make", path, error))
}
