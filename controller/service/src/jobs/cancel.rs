//! Cancellation of a job, by a FIFO of its own.
//!
//! # Design
//! *A cancellation passes everything else.* Input waits for a console that takes none, and events for a
//! caller that does not read them. The FIFO `cancel` carries nothing else, so its first byte is all that
//! it takes.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::libc;
use tokio::net::unix::pipe;
use tokio::time::{sleep, timeout};

use super::input::{STARTING, SendOrderError, UNREAD, has_no_reader};
use super::job::Job;

/// Name of the FIFO in the folder of a job.
pub(super) const CANCEL: &str = "cancel";

impl Job {
    /// Asks the job to end in order. Asking again is the same as asking once.
    ///
    /// # Errors
    /// The job has ended, or does not listen.
    pub async fn cancel(&self) -> Result<(), SendOrderError> {
        let path = self.folder.join(CANCEL);
        match timeout(UNREAD, asked(self, &path)).await {
            Err(_) => Err(SendOrderError::Unread),
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) if has_no_reader(&error) => Err(SendOrderError::Ended),
            Ok(Err(source)) => Err(SendOrderError::Fifo { path, source }),
        }
    }
}

async fn asked(job: &Job, path: &Path) -> io::Result<()> {
    loop {
        // Asked first: a worker that has ended meanwhile never listens.
        let alive = job.is_alive();
        let open = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
        match open.and_then(|mut fifo| fifo.write_all(b"\n")) {
            Err(error) if has_no_reader(&error) && alive => sleep(STARTING).await,
            // It is full of cancellations that the worker has not read yet.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            written => return written,
        }
    }
}

/// The cancellation that a worker may get.
pub struct JobCancellation {
    pipe: pipe::Receiver,
    path: PathBuf,
}

impl JobCancellation {
    /// Listens. Call within a tokio runtime that has I/O enabled.
    ///
    /// # Errors
    /// The FIFO cannot be opened.
    pub fn listen(folder: &Path) -> io::Result<Self> {
        let path = folder.join(CANCEL);
        // Opened for writing, too, so that it does not end with its first writer.
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&path)?;
        Ok(Self { pipe, path })
    }

    /// Waits until the job is to end; for ever if the FIFO fails, which is logged. Cancel-safe.
    pub async fn asked(&mut self) {
        let mut byte = [0];
        loop {
            let failed = match self.pipe.readable().await {
                Ok(()) => match self.pipe.try_read(&mut byte) {
                    Ok(1..) => return,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Ok(0) => io::ErrorKind::UnexpectedEof.into(),
                    Err(error) => error,
                },
                Err(error) => error,
            };
            tracing::warn!(path = %self.path.display(), error = %failed, "the job cannot be cancelled");
            std::future::pending().await
        }
    }
}
