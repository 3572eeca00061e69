//! Following a job by its files.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jig_model::Fault;
use jig_model::command::{LineError, MOST_LINE, WorkerLine};

use super::job::{Job, JobError};
use crate::growing_file::GrowingFile;

/// How much of the standard error of a worker that has crashed is told.
const MOST_ERRORS: u64 = 2 << 10;

/// Says why a job cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum JobFollowError {
    /// Its files cannot be used.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A line of its output is not understood.
    #[error("byte {at} of the job's output is not understood")]
    Line {
        /// Where the line begins.
        at: u64,
        /// Why.
        source: LineError,
    },
    /// A line of its output is too long.
    #[error("the line at byte {at} of the job's output has no end")]
    TooLong {
        /// Where it begins.
        at: u64,
    },
}

impl JobFollowError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Job(error) => error.fault(),
            Self::Line { .. } | Self::TooLong { .. } => Fault::Lab,
        }
    }
}

/// What a job says or does next.
#[derive(Debug, Clone, PartialEq)]
pub enum JobNews {
    /// It says something; the next line begins at `next`.
    Line {
        /// Where the next line begins, in bytes.
        next: u64,
        /// What it says.
        line: Box<WorkerLine>,
    },
    /// It has ended, and everything that it said was told.
    Ended {
        /// The end of its standard error, if it has ended without an answer.
        crashed: Option<String>,
    },
}

/// Reads what a job says. While it lives, the job is followed.
pub struct JobFollower {
    job: Job,
    output: GrowingFile,
    path: PathBuf,
    /// Where `pending` begins.
    offset: u64,
    pending: Vec<u8>,
    answered: bool,
    _followed: File,
}

impl JobFollower {
    /// Follows a job from an offset of its output on.
    ///
    /// # Errors
    /// Its files cannot be opened.
    pub fn open(job: &Job, offset: u64) -> Result<Self, JobFollowError> {
        let folder = &job.folder;
        let opened = |name: &str| {
            let path = folder.join(name);
            File::open(&path).map_err(|error| JobError::file("read", &path, error))
        };
        let (output, followed) = (opened("out.jsonl")?, opened("followed")?);
        let path = folder.join("out.jsonl");
        let failed = |error| JobError::file("read", &path, error);
        followed.lock_shared().map_err(failed)?;
        let output = GrowingFile::new(output, offset);
        let job = job.clone();
        Ok(Self {
            job,
            output,
            path,
            offset,
            pending: Vec::new(),
            answered: false,
            _followed: followed,
        })
    }

    /// Waits for what comes next; nothing follows its end. Cancel-safe.
    ///
    /// # Errors
    /// The output cannot be read, or is not understood.
    pub async fn next(&mut self) -> Result<JobNews, JobFollowError> {
        loop {
            if let Some(news) = self.take_line()? {
                return Ok(news);
            }
            let bytes = self.output.next(|| self.job.is_alive()).await;
            match bytes.map_err(|error| JobError::file("read", &self.path, error))? {
                Some(bytes) => self.pending.extend_from_slice(&bytes),
                None => return Ok(JobNews::Ended { crashed: self.crashed() }),
            }
        }
    }

    fn take_line(&mut self) -> Result<Option<JobNews>, JobFollowError> {
        let at = self.offset;
        let Some(end) = memchr::memchr(b'\n', &self.pending) else {
            return match self.pending.len() > MOST_LINE {
                true => Err(JobFollowError::TooLong { at }),
                false => Ok(None),
            };
        };
        let line = WorkerLine::from_line(&self.pending[..end])
            .map_err(|source| JobFollowError::Line { at, source })?;
        self.answered |= !matches!(line, WorkerLine::Event(_));
        self.pending.drain(..=end);
        let len = u64::try_from(end).unwrap_or(u64::MAX);
        self.offset = at.saturating_add(len).saturating_add(1);
        Ok(Some(JobNews::Line { next: self.offset, line: Box::new(line) }))
    }

    fn crashed(&self) -> Option<String> {
        let errors = self.path.with_file_name("err.log");
        (!self.answered).then(|| end_of(&errors).unwrap_or_default())
    }
}

/// Reads the end of a text file.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(MOST_ERRORS)))?;
    let mut end = Vec::new();
    file.take(MOST_ERRORS).read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).trim().to_owned())
}
