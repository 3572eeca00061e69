//! What every command that uses a board does around it: sweep, run, stop on signals, prune.

use std::sync::Arc;

use jig_model::Fault;
use jig_model::exit::CANCELLED;
use jig_rig::console::escape;
use jig_rig::session::{Bench, Observer, SessionRequest};
use jig_rig::store::{RunDir, RunRecord, RunStore, Swept, SweptOutcome};
use jig_rig::workflow::CancelToken;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Common;
use crate::catalogue::Catalogue;
use crate::failure::{Failure, chain};
use crate::render::Screen;
use crate::wire_up;

/// A run that has ended.
pub(crate) struct Outcome {
    pub(crate) record: RunRecord,
    pub(crate) dir: RunDir,
}

/// Worker threads: one for wires and one for what looks at them. Boards are slow; more
/// threads only cost memory.
const WORKERS: usize = 2;

/// Makes a run. `beside` is called within the runtime, before the run begins, for what has
/// to happen at the same time; `shown` returns when all of it has been shown.
pub(crate) fn session(
    common: &Common,
    catalogue: &Catalogue,
    screen: &Screen,
    request: SessionRequest,
    observer: Arc<dyn Observer>,
    beside: impl FnOnce(CancelToken) -> Result<(), Failure>,
    shown: impl FnOnce(),
) -> Result<Outcome, Failure> {
    let store = RunStore::new(catalogue.runs_dir(common));
    sweep(&store, screen);
    let bug = |error: std::io::Error| Failure::of(Fault::Bug, &error);
    let factory = wire_up::factory(&request.profile, &request.resource)?;
    let image_sets = Catalogue::images_dir();
    let image_sets = std::path::absolute(&image_sets).unwrap_or(image_sets);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .map_err(bug)?;
    let record = runtime.block_on(async {
        let cancel = CancelToken::new();
        stop_on_signals(cancel.clone()).map_err(bug)?;
        beside(cancel.clone())?;
        let bench = Bench {
            store: &store,
            factory,
            host: &wire_up::host,
            image_sets: &image_sets,
            version: env!("CARGO_PKG_VERSION"),
        };
        jig_rig::session::run(request, &bench, observer, cancel)
            .await
            .map_err(|error| Failure::of(error.fault(), &error))
    });
    shown();
    let record = record?;
    // Standard input may still be waited for; the process is about to end.
    runtime.shutdown_background();
    let entry = store.open(record.id.as_str()).map_err(|e| Failure::of(e.fault(), &e))?;
    if let Err(error) = store.prune(catalogue.retention(), jiff::Timestamp::now()) {
        tracing::warn!(error = chain(&error), "old runs were not removed");
    }
    Ok(Outcome { record, dir: entry.dir })
}

/// Cleans up after runs whose jig was killed, and says so.
fn sweep(store: &RunStore, screen: &Screen) {
    match store.sweep(jiff::Timestamp::now()) {
        Ok(swept) => {
            for run in swept {
                screen.say(&describe(&run));
            }
        }
        Err(error) => tracing::warn!(error = chain(&error), "earlier runs were not swept"),
    }
}

fn describe(run: &Swept) -> String {
    match &run.outcome {
        SweptOutcome::Abandoned(record) => {
            let killed = match record.killed.len() {
                0 => String::new(),
                n => format!(", {n} left-over processes ended"),
            };
            format!("run {} was killed before it ended; marked abandoned{killed}", run.id)
        }
        SweptOutcome::Left(error) => {
            format!("run {} could not be swept: {}", run.id, escape(chain(error).as_bytes()))
        }
    }
}

/// The first signal asks the run to stop in order; the second ends this process at once.
/// Emulators die with it, and the next start sweeps the rest.
fn stop_on_signals(cancel: CancelToken) -> std::io::Result<()> {
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
