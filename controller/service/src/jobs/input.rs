//! Input of a job, by its FIFO.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use nix::errno::Errno;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::time::{sleep, timeout};

use super::job::Job;
use crate::protocol::{LineReadError, LineReader};

/// Most bytes of input in one order: a line of it is written at once (`PIPE_BUF`, 4096 bytes), so that
/// lines of several writers do not mix.
pub const MOST_JOB_INPUT: usize = 2 << 10;

/// How long a worker may leave a FIFO unread.
pub(super) const UNREAD: Duration = Duration::from_secs(10);

/// Pause between two tries to open the FIFO of a worker that starts, which takes some milliseconds.
pub(super) const STARTING: Duration = Duration::from_millis(2);

/// Name of the FIFO in the folder of a job.
pub(super) const INPUT: &str = "input";

/// What a job is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOrder {
    /// Input, at most [`MOST_JOB_INPUT`] bytes.
    Input(Vec<u8>),
    /// There is no more input.
    End,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RawOrder {
    Input(String),
    End,
}

/// Says why a job was not told something.
#[derive(Debug, thiserror::Error)]
pub enum SendOrderError {
    /// Its process has ended, or has not begun to listen.
    #[error("the job has ended")]
    Ended,
    /// It does not read.
    #[error("the job has not listened for {} s", UNREAD.as_secs())]
    Unread,
    /// The FIFO cannot be used.
    #[error("write {}", path.display())]
    Fifo {
        /// Its path.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
}

/// The way by which a job is told something.
pub struct JobInputs {
    job: Job,
    path: PathBuf,
    pipe: Option<pipe::Sender>,
}

impl JobInputs {
    /// Names the way; nothing is opened yet.
    pub fn of(job: &Job) -> Self {
        Self { job: job.clone(), path: job.folder.join(INPUT), pipe: None }
    }

    /// Tells the job something.
    ///
    /// # Errors
    /// The job has ended, or does not listen.
    pub async fn send(&mut self, order: JobOrder) -> Result<(), SendOrderError> {
        let raw = match order {
            JobOrder::Input(bytes) => RawOrder::Input(BASE64_STANDARD.encode(bytes)),
            JobOrder::End => RawOrder::End,
        };
        let mut line = serde_json::to_vec(&raw).map_err(|error| SendOrderError::Fifo {
            path: self.path.clone(),
            source: error.into(),
        })?;
        line.push(b'\n');
        let sent = async {
            let pipe = match &mut self.pipe {
                Some(pipe) => pipe,
                none => none.insert(opened(&self.job, &self.path).await?),
            };
            pipe.write_all(&line).await
        };
        match timeout(UNREAD, sent).await {
            Err(_) => Err(SendOrderError::Unread),
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => match has_no_reader(&source) {
                true => Err(SendOrderError::Ended),
                false => Err(SendOrderError::Fifo { path: self.path.clone(), source }),
            },
        }
    }
}

/// Opens the FIFO of a job. A worker that has just been started may not listen yet.
async fn opened(job: &Job, path: &Path) -> io::Result<pipe::Sender> {
    loop {
        let alive = job.is_alive();
        match pipe::OpenOptions::new().open_sender(path) {
            Err(error) if has_no_reader(&error) && alive => sleep(STARTING).await,
            opened => return opened,
        }
    }
}

/// Tells whether no process has a FIFO open for reading.
pub(super) fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENXIO as i32) || error.kind() == io::ErrorKind::BrokenPipe
}

/// The orders that a worker gets.
pub struct JobOrders(LineReader<pipe::Receiver>);

impl JobOrders {
    /// Listens. Call within a tokio runtime that has I/O enabled.
    ///
    /// # Errors
    /// The FIFO cannot be opened.
    pub fn listen(folder: &Path) -> io::Result<Self> {
        // Opened for writing, too, so that it does not end with its first writer.
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(folder.join(INPUT))?;
        Ok(Self(LineReader::new(pipe)))
    }

    /// Waits for the next order; lines that are none are skipped. Cancel-safe.
    ///
    /// # Errors
    /// The FIFO cannot be read.
    pub async fn next(&mut self) -> Result<JobOrder, LineReadError> {
        loop {
            let Some(line) = self.0.next().await? else {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            };
            match serde_json::from_slice(&line) {
                Ok(RawOrder::Input(data)) => {
                    if let Ok(bytes) = BASE64_STANDARD.decode(data) {
                        return Ok(JobOrder::Input(bytes));
                    }
                }
                Ok(RawOrder::End) => return Ok(JobOrder::End),
                Err(_) => {}
            }
            tracing::warn!("a line of a job's input is no order");
        }
    }
}
