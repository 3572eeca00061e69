//! Calls that send more than one message.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_model::command::WorkerLine;
use jig_rig::store::RunDir;
use jig_rig::workflow::CancelToken;
use serde::Serialize;
use tokio::sync::{Notify, mpsc};

use super::refusal::refused;
use super::run_files::{self, RunFileError};
use crate::growing_file::GrowingFile;
use crate::jobs::{Job, JobFollower, JobNews};
use crate::protocol::{
    CallId, FollowFile, FollowedFile, JobEnd, JobLine, Nothing, Outgoing, RequestError,
};

/// The way to the caller of a stream. Waits for a caller that reads slowly.
#[derive(Clone)]
pub(super) struct StreamOut {
    pub(super) call: CallId,
    pub(super) out: mpsc::Sender<Vec<u8>>,
    /// The caller says nothing any more: what waits for more ends.
    pub(super) closed: CancelToken,
    /// A job of the caller has answered: its run has ended, and so do the files of that.
    pub(super) answered: Arc<Notify>,
}

impl StreamOut {
    /// Sends a notification; tells whether the connection still takes any.
    pub(super) async fn send(&self, method: &str, params: &impl Serialize) -> bool {
        match Outgoing::notification(method, params) {
            Ok(line) => self.out.send(line).await.is_ok(),
            Err(_) => false,
        }
    }
}

/// Tells what a job says, from an offset on.
pub(super) async fn follow_job(
    job: &Job,
    offset: u64,
    to: &StreamOut,
) -> Result<JobEnd, RequestError> {
    let mut follower =
        JobFollower::open(job, offset).map_err(|error| refused(&error, error.fault()))?;
    loop {
        let news = tokio::select! {
            biased;
            news = follower.next() => news.map_err(|error| refused(&error, error.fault()))?,
            () = to.closed.cancelled() => return Ok(JobEnd { crashed: None }),
        };
        match news {
            JobNews::Ended { crashed } => return Ok(JobEnd { crashed }),
            JobNews::Line { next, line } => {
                let is_answer = !matches!(*line, WorkerLine::Event(_));
                let line = JobLine { call: to.call, next, line: *line };
                if !to.send("job.line", &line).await {
                    return Ok(JobEnd { crashed: None });
                }
                if is_answer {
                    to.answered.notify_waiters();
                }
            }
        }
    }
}

/// Tells what a file of a run holds, from an offset on, until the run has ended.
pub(super) async fn follow_file(
    dir: &RunDir,
    follow: FollowFile,
    to: &StreamOut,
) -> Result<Nothing, RequestError> {
    let FollowFile { run: _, path, offset } = follow;
    let told = |error: RunFileError| refused(&error, error.fault());
    let file = run_files::open(dir.path(), &path).map_err(told)?;
    let mut file = GrowingFile::new(file, offset);
    loop {
        let offset = file.offset();
        let bytes = tokio::select! {
            biased;
            bytes = file.next(|| dir.is_live()) => bytes,
            () = to.answered.notified() => {
                file.look_soon();
                continue;
            }
            () = to.closed.cancelled() => return Ok(Nothing {}),
        };
        let bytes = bytes
            .map_err(|source| told(RunFileError::Read { path: dir.path().join(&path), source }))?;
        let Some(bytes) = bytes else { return Ok(Nothing {}) };
        let data = BASE64_STANDARD.encode(&bytes);
        if !to.send("run.data", &FollowedFile { call: to.call, offset, data }).await {
            return Ok(Nothing {});
        }
    }
}
