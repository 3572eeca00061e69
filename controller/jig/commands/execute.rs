//! Carrying out a command from the command line: a runtime, signals, and the view of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Does something within a runtime. The first signal asks it to stop in order; the second ends
/// this process at once. Emulators die with it, and the next start sweeps the rest.
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
    let signalled = Arc::new(AtomicBool::new(false));
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signal, cancel) = (signal(kind)?, cancel.clone());
        let signalled = Arc::clone(&signalled);
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                // The command may have cancelled itself, which is no signal.
                if signalled.swap(true, Ordering::Relaxed) {
                    std::process::exit(i32::from(CANCELLED));
                }
                cancel.cancel();
            }
        });
    }
    Ok(())
}

/// Takes the answer to a command that makes a run, and opens the run.
pub(crate) fn ended_run(
    lab: &Lab,
    screen: &Screen,
    reply: Reply,
) -> Result<(RunDir, RunRecord), Failure> {
    let Reply::Run(RunReply { run, not_struck, .. }) = reply else { return Err(unexpected()) };
    for fault in not_struck {
        screen.say(&format!("--inject {fault} has not struck: its moment did not come"));
    }
    let RunEntry { dir, record, .. } =
        RunStore::new(lab.catalogue().runs_dir()).open(run.as_str())?;
    Ok((dir, record?))
}

/// An answer to another question.
pub(crate) fn unexpected() -> Failure {
    Failure::new(Fault::Bug, "the answer does not fit the command")
}
