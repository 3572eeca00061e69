//! Carrying out a command from the command line: a runtime, signals, and the view of a run.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jig_lab::Lab;
use jig_model::Fault;
use jig_model::command::{Command, EventSink, Reply, RunReply};
use jig_model::exit::CANCELLED;
use jig_rig::store::{RunDir, RunEntry, RunRecord, RunStore};
use jig_rig::workflow::CancelToken;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::render::Screen;

/// Makes the runtime of a verb.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(Fault::Bug, &error))
}

/// Carries out a command; a signal cancels it.
pub(crate) fn execute(
    lab: &Lab,
    command: Command,
    events: Arc<dyn EventSink>,
) -> Result<Reply, Failure> {
    until_signalled(async |cancel| Ok(lab.execute(command, events, cancel).await?))
}

/// Does something within a runtime. The first signal asks it to stop in order; a repeated one ends
/// this process at once (see [`StopRequests`]). Emulators die with it, and the next start sweeps
/// the rest.
pub(crate) fn until_signalled<T>(
    work: impl AsyncFnOnce(CancelToken) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let cancel = CancelToken::new();
        cancel_on_signals(&cancel).map_err(|error| Failure::of(Fault::Bug, &error))?;
        work(cancel).await
    });
    // A thread that reads standard input or a broken disk may still wait for it, and is not
    // waited for.
    runtime.shutdown_background();
    done
}

fn cancel_on_signals(cancel: &CancelToken) -> std::io::Result<()> {
    let requests = Arc::new(Mutex::new(StopRequests::default()));
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signal, cancel) = (signal(kind)?, cancel.clone());
        let requests = Arc::clone(&requests);
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
                match requests.take(kind, Instant::now()) {
                    // The command may have cancelled itself, which is no signal.
                    StopAction::Cancel => cancel.cancel(),
                    StopAction::Nothing => {}
                    StopAction::Exit => std::process::exit(i32::from(CANCELLED)),
                }
            }
        });
    }
    Ok(())
}

/// How long signals of different kinds are one request: `make` passes SIGTERM on while the
/// terminal that closes sends SIGHUP.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// The signals that asked this process to stop.
#[derive(Debug, Default)]
struct StopRequests {
    first: Option<(SignalKind, Instant)>,
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopAction {
    /// Asks the command to stop in order.
    Cancel,
    /// Nothing: it belongs to the request before.
    Nothing,
    /// Ends this process at once.
    Exit,
}

impl StopRequests {
    fn take(&mut self, kind: SignalKind, now: Instant) -> StopAction {
        match self.first {
            None => {
                self.first = Some((kind, now));
                StopAction::Cancel
            }
            Some((first, at)) if kind != first && now.duration_since(at) < ONE_REQUEST => {
                StopAction::Nothing
            }
            Some(_) => StopAction::Exit,
        }
    }
}

/// Takes the answer to a command that makes a run, and opens the run.
pub(crate) fn ended_run(
    lab: &Lab,
    screen: &Screen,
    reply: Reply,
) -> Result<(RunDir, RunRecord), Failure> {
    let Reply::Run(RunReply { run, dir, not_struck, .. }) = reply else { return Err(unexpected()) };
    for fault in not_struck {
        screen.say(&format!("--inject {fault} has not struck: its moment did not come"));
    }
    // The folder of runs, or where a run is kept that lost its own.
    let runs = dir.parent().map_or_else(|| lab.catalogue().runs_dir(), Path::to_owned);
    let RunEntry { dir, record, .. } = RunStore::new(runs).open(run.as_str())?;
    Ok((dir, record?))
}

/// An answer to another question.
pub(crate) fn unexpected() -> Failure {
    Failure::new(Fault::Bug, "the answer does not fit the command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_signal_ends_the_process_and_two_at_once_are_one_request() {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut requests = StopRequests::default();
        assert_eq!(requests.take(terminate, at(0)), StopAction::Cancel);
        assert_eq!(requests.take(SignalKind::hangup(), at(5)), StopAction::Nothing);
        assert_eq!(requests.take(interrupt, at(999)), StopAction::Nothing);
        assert_eq!(requests.take(interrupt, at(1000)), StopAction::Exit);
        let mut requests = StopRequests::default();
        assert_eq!(requests.take(interrupt, at(0)), StopAction::Cancel);
        assert_eq!(requests.take(interrupt, at(1)), StopAction::Exit);
    }
}
