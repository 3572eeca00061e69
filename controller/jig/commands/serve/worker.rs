//! Handle to a worker process.

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

/// A process that carries out one command. Dropping the handle asks it to end; if this process
/// dies, it finishes in order.
pub(super) struct Worker {
    process: DetachedProcess,
    last: Option<WorkerLine>,
}

impl Worker {
    /// Starts a worker.
    pub(super) fn start(common: &Common, command: &Command) -> Result<Self, WorkerError> {
        let mut input = to_line(command)?.into_bytes();
        input.push(b'\n');
        let mut args = common.again();
        args.push("worker".into());
        let program = std::env::current_exe().unwrap_or_else(|_| "jig".into()).into();
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
