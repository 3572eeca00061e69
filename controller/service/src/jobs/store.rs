//! The folder of jobs: begin, find, list and remove.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jig_drivers::process::{UnattendedRequest, start_unattended};
use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::JobId;
use super::cancel::CANCEL;
use super::input::INPUT;
use super::job::{Job, JobError, JobSpec};

/// How long the folder of a job that has ended is kept: a caller that lost its connection over a
/// weekend still gets its answer.
const KEPT: Duration = Duration::from_secs(3 * 86_400);

/// Most jobs that are kept, however young.
const MOST_KEPT: usize = 500;

/// Marks a folder that is being built.
const NEW_PREFIX: &str = ".new-";

/// The program that carries out jobs: this one.
#[derive(Debug, Clone, Default)]
pub struct WorkerProgram {
    /// The program.
    pub program: OsString,
    /// What is said in front of `worker`: where the rig is described.
    pub args: Vec<OsString>,
    /// Its current folder, if not that of this process.
    pub folder: Option<PathBuf>,
    /// Variables of its environment that are not those of this process.
    pub variables: Vec<(OsString, OsString)>,
}

impl WorkerProgram {
    /// Sets the path that an option names.
    pub fn set(&mut self, option: &str, path: PathBuf) {
        match self.args.iter().position(|arg| arg == option) {
            Some(at) if at + 1 < self.args.len() => self.args[at + 1] = path.into(),
            _ => self.args.extend([option.into(), path.into()]),
        }
    }
}

/// A folder of jobs.
#[derive(Debug, Clone)]
pub struct JobStore {
    root: PathBuf,
    /// Set for good when no further job is to begin by way of this value and its clones.
    closed: Arc<AtomicBool>,
}

impl JobStore {
    /// Names a folder of jobs; it is made with the first one.
    pub fn new(root: PathBuf) -> Self {
        Self { root, closed: Arc::default() }
    }

    /// Refuses further jobs; those that were begun are still found. Holds for clones, too.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Begins a job, or finds it if it was begun before.
    ///
    /// # Errors
    /// The store is closed, the folder of the job cannot be made, or its process not be started.
    pub fn begin(
        &self,
        id: &JobId,
        spec: &JobSpec,
        worker: &WorkerProgram,
    ) -> Result<Job, JobError> {
        if let Ok(job) = self.open(id) {
            return Ok(job);
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(JobError::Closed);
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
        for name in [INPUT, CANCEL] {
            let fifo = hidden.join(name);
            match mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(JobError::file("make", &fifo, errno.into())),
            }
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
        let WorkerProgram { program, folder, variables, .. } = worker.clone();
        let request = UnattendedRequest { program, args, folder, variables, lock, output, errors };
        Ok(start_unattended(request)?)
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

/// Makes a folder that only this user sees.
fn private(path: &Path) -> Result<(), JobError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| JobError::file("make", path, error))
}
