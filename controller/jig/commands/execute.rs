//! Carrying out a command from the command line: a runtime, signals, and the view of a run.

use std::path::Path;
use std::sync::Arc;

use jig_model::Fault;
use jig_model::command::{Command, EventSink, Reply, RunReply};
use jig_rig::store::{RunDir, RunEntry, RunRecord, RunStore};
use jig_rig::workflow::CancelToken;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::rig::OpenRig;
use super::stop::cancel_on_signals;
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
    rig: &OpenRig,
    command: Command,
    events: Arc<dyn EventSink>,
) -> Result<Reply, Failure> {
    let (_, none) = mpsc::channel(1);
    until_signalled(async |cancel| rig.execute(command, none, events, cancel).await)
}

/// Does something within a runtime. The first signal asks it to stop in order; a repeated one ends
/// this process at once, also behind the work (see [`super::stop`]). Emulators die with it, and the next start sweeps
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

/// Takes the answer to a command that makes a run, and opens the run.
pub(crate) fn ended_run(
    rig: &OpenRig,
    screen: &Screen,
    reply: Reply,
) -> Result<(RunDir, RunRecord), Failure> {
    let Reply::Run(RunReply { run, dir, not_struck, .. }) = reply else { return Err(unexpected()) };
    for fault in not_struck {
        screen.say(&format!("--inject {fault} has not struck: its moment did not come"));
    }
    // The folder of runs, or where a run is kept that lost its own.
    let runs = dir.parent().map_or_else(|| rig.runs_dir(), Path::to_owned);
    let RunEntry { dir, record, .. } = RunStore::new(runs).open(run.as_str())?;
    Ok((dir, record?))
}

/// An answer to another question.
pub(crate) fn unexpected() -> Failure {
    Failure::new(Fault::Bug, "the answer does not fit the command")
}
