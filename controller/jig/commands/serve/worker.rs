//! Handle to a worker process.

use std::ffi::OsStr;

use jig_drivers::process::{DetachedEvent, DetachedProcess, DetachedRequest, Ending, SpawnError};
use jig_model::command::{Command, LineError, MOST_LINE, WorkerLine, to_line};

use crate::args::Common;
use crate::failure::chain;

/// Reason why a worker could not be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum WorkerError {
    /// The command cannot be serialised.
    #[error("write the command down")]
    Command(#[from] LineError),
    /// The process cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// What workers are started from.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerOrigin<'c> {
    pub(super) common: &'c Common,
    /// The program, found when the service began: an upgrade replaces the file, and this process cannot
    /// find the new one by itself.
    pub(super) program: &'c OsStr,
}

/// A process that carries out one command. Dropping the handle asks it to end; if this process
/// dies, it finishes in order.
pub(super) struct Worker {
    process: DetachedProcess,
    last: Option<WorkerLine>,
}

impl Worker {
    /// Starts a worker.
    pub(super) fn start(origin: WorkerOrigin<'_>, command: &Command) -> Result<Self, WorkerError> {
        let mut input = to_line(command)?.into_bytes();
        input.push(b'\n');
        let mut args = origin.common.again();
        args.push("worker".into());
        let program = origin.program.to_owned();
        let request = DetachedRequest { program, args, input, most_line: MOST_LINE };
        Ok(Self { process: DetachedProcess::start(request)?, last: None })
    }

    /// Asks it to end in order.
    pub(super) fn terminate(&self) {
        self.process.terminate();
    }

    /// Waits for its end and returns its reply or refusal; none if it crashed. Cancel-safe.
    pub(super) async fn last_word(&mut self) -> Option<WorkerLine> {
        while let Some(event) = self.process.next().await {
            match event {
                DetachedEvent::Line(line) => match WorkerLine::from_line(&line) {
                    Ok(WorkerLine::Event(_)) => {}
                    Ok(last) => self.last = Some(last),
                    Err(error) => {
                        tracing::warn!(error = chain(&error), "a worker is not understood")
                    }
                },
                DetachedEvent::Ended(Ending::Exited(_)) => {}
                DetachedEvent::Ended(Ending::Signalled(signal)) => {
                    tracing::warn!(%signal, "a worker was killed");
                }
            }
        }
        self.last.take()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.terminate();
    }
}
