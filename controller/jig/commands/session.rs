//! RunDriver a run from the command line: a runtime, signals, and what is said meanwhile.

use std::sync::Arc;

use jig_drivers::inject::Injection;
use jig_lab::{Lab, RunError, RunOutcome};
use jig_model::Fault;
use jig_model::exit::CANCELLED;
use jig_rig::session::{Observer, SessionRequest};
use jig_rig::workflow::CancelToken;
use tokio::signal::unix::{SignalKind, signal};

use super::probe::runtime;
use crate::failure::Failure;
use crate::render::Screen;

/// Makes a run. `beside` is called within the runtime, before the run begins, for what has
/// to happen at the same time; `shown` returns when all of it has been shown.
pub(crate) fn session(
    lab: &Lab,
    screen: &Screen,
    request: SessionRequest,
    inject: Vec<Injection>,
    observer: Arc<dyn Observer>,
    beside: impl FnOnce(CancelToken),
    shown: impl FnOnce(),
) -> Result<RunOutcome, Failure> {
    recorded(screen, shown, async |cancel| {
        beside(cancel.clone());
        lab.run(request, inject, observer, screen, cancel).await
    })
}

/// Does what is recorded as a run until it ends or a signal cancels it.
pub(crate) fn recorded(
    screen: &Screen,
    shown: impl FnOnce(),
    work: impl AsyncFnOnce(CancelToken) -> Result<RunOutcome, RunError>,
) -> Result<RunOutcome, Failure> {
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let cancel = CancelToken::new();
        cancel_on_signals(cancel.clone()).map_err(|error| Failure::of(Fault::Bug, &error))?;
        work(cancel).await.map_err(Failure::from)
    });
    shown();
    // Standard input may still be waited for; the process is about to end.
    runtime.shutdown_background();
    let outcome = outcome?;
    for fault in &outcome.not_struck {
        screen.say(&format!("--inject {fault} has not struck: its moment did not come"));
    }
    Ok(outcome)
}

/// The first signal asks the run to stop in order; the second ends this process at once.
/// Emulators die with it, and the next start sweeps the rest.
fn cancel_on_signals(cancel: CancelToken) -> std::io::Result<()> {
    let mut signals = Vec::new();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        signals.push(signal(kind)?);
    }
    for mut signal in signals {
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signal.recv().await.is_some() {
                if cancel.is_cancelled() {
                    std::process::exit(i32::from(CANCELLED));
                }
                cancel.cancel();
            }
        });
    }
    Ok(())
}
