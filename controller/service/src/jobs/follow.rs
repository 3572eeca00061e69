//! Following a job by its files.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::Fault;
use jig_model::command::{LineError, MOST_LINE, WorkerLine};
use tokio::time::sleep;

use super::job::{Job, JobError};

/// Shortest and longest pause between two looks at the output: short for the answer to a command that
/// takes some milliseconds, long for one that takes minutes.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(20);

/// Bytes read at once.
const STRIDE: usize = 64 << 10;

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
    output: File,
    path: PathBuf,
    /// Where `pending` begins.
    offset: u64,
    pending: Vec<u8>,
    answered: bool,
    pause: Duration,
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
        let (mut output, followed) = (opened("out.jsonl")?, opened("followed")?);
        let path = folder.join("out.jsonl");
        let failed = |error| JobError::file("read", &path, error);
        followed.lock_shared().map_err(failed)?;
        output.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let job = job.clone();
        Ok(Self {
            job,
            output,
            path,
            offset,
            pending: Vec::new(),
            answered: false,
            pause: SHORTEST,
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
            // Asked first: what was written before the end is read behind it.
            let alive = self.job.is_alive();
            if self.read()? {
                self.pause = SHORTEST;
            } else if !alive {
                return Ok(JobNews::Ended { crashed: self.crashed() });
            } else {
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST);
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

    /// Reads what has been written; tells whether there was anything.
    fn read(&mut self) -> Result<bool, JobFollowError> {
        let len = self.pending.len();
        self.pending.resize(len + STRIDE, 0);
        let read = self.output.read(&mut self.pending[len..]);
        self.pending.truncate(len + *read.as_ref().unwrap_or(&0));
        let read = read.map_err(|error| JobError::file("read", &self.path, error))?;
        Ok(read > 0)
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
