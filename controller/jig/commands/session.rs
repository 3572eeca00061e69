//! What every command that uses a board does around it: sweep, run, stop on signals, prune.

use std::sync::Arc;
use std::time::Duration;

use jig_drivers::inject::Injection;
use jig_model::exit::CANCELLED;
use jig_model::profile::BoardProfile;
use jig_model::protocol::DriverFactory;
use jig_model::rig_file::{Place, Resource};
use jig_model::{Fault, PlaceName};
use jig_rig::console::escape;
use jig_rig::health::{HealthState, HealthStore};
use jig_rig::session::{Bench, Observer, SessionRequest};
use jig_rig::store::{PlaceLock, Places, RunDir, RunRecord, RunStore, Swept, SweptOutcome};
use jig_rig::workflow::CancelToken;
use tokio::signal::unix::{SignalKind, signal};

use super::health::policy;
use super::inject::Faults;
use super::lab::{RigLab, Spares};
use super::power::InRun;
use super::turn;
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

/// What to run, and what is to fail in it.
pub(crate) struct Asked {
    pub(crate) request: SessionRequest,
    pub(crate) inject: Vec<Injection>,
}

impl From<SessionRequest> for Asked {
    fn from(request: SessionRequest) -> Self {
        Self { request, inject: Vec::new() }
    }
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
    asked: impl Into<Asked>,
    observer: Arc<dyn Observer>,
    beside: impl FnOnce(CancelToken) -> Result<(), Failure>,
    shown: impl FnOnce(),
) -> Result<Outcome, Failure> {
    let Asked { request, inject } = asked.into();
    let (place, profile) = catalogue.place(&request.place)?;
    let setting = Setting { place: &place, profile: &profile, inject, recovers: false };
    on_bench(common, catalogue, screen, setting, shown, async |bench, cancel| {
        beside(cancel.clone())?;
        jig_rig::session::run(request, bench, observer, cancel)
            .await
            .map_err(|error| Failure::of(error.fault(), &error))
    })
}

/// Where something is done that is recorded as a run.
pub(crate) struct Setting<'a> {
    pub(crate) place: &'a Place,
    pub(crate) profile: &'a Arc<BoardProfile>,
    /// What is to fail.
    pub(crate) inject: Vec<Injection>,
    /// Whether it is a recovery: a place that is out of service takes nothing else.
    pub(crate) recovers: bool,
}

/// Does what is recorded as a run, on a bench of a place and the rig round it.
pub(crate) fn on_bench(
    common: &Common,
    catalogue: &Catalogue,
    screen: &Screen,
    setting: Setting<'_>,
    shown: impl FnOnce(),
    work: impl AsyncFnOnce(&Bench<'_>, CancelToken) -> Result<RunRecord, Failure>,
) -> Result<Outcome, Failure> {
    let Setting { place, profile, inject, recovers } = setting;
    let health = store(catalogue, place);
    if !recovers {
        in_service(health.as_ref(), place)?;
    }
    let store = RunStore::new(catalogue.runs_dir(common));
    sweep(&store, screen);
    let bug = |error: std::io::Error| Failure::of(Fault::Bug, &error);
    let factory = wire_up::factory(profile, &place.resource)?;
    let faults = Faults::of(inject, place, profile)?;
    let between = faults.as_ref().map(Faults::between_devices);
    let outlet = InRun::of(catalogue, &place.name).map(|outlet| outlet.failing(between));
    let powered = outlet.as_ref().map(|outlet| outlet.before(factory));
    let factory = powered.as_ref().map_or(factory, |powered| powered as &dyn DriverFactory);
    let spares = Spares::of(catalogue, &place.name)?;
    let powered_spares = spares.powered(catalogue)?;
    let spare = spares.seats(catalogue, &powered_spares)?;
    let (lab, places) = (RigLab::new(catalogue, common), catalogue.places());
    let failing = faults.as_ref().map(|faults| faults.round(factory, outlet.is_some()));
    let factory = failing.as_ref().map_or(factory, |failing| failing as &dyn DriverFactory);
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
        // An emulated board is a new one for each run; of a real one there is one. With it go
        // those that lose their power together with it, in one order for all runs.
        if matches!(place.resource, Resource::Probe(_)) {
            let also = outlet.iter().flat_map(|outlet| &outlet.also);
            let mut names: Vec<&PlaceName> = also.chain([&place.name]).collect();
            names.sort();
            for place in names {
                lab.keep(vec![hold(&places, place, &cancel, screen).await?]);
            }
        }
        let bench = Bench {
            store: &store,
            factory,
            outlet: outlet.as_ref().map(|outlet| outlet.takes),
            spare: &spare,
            lab: &lab,
            places: Some(&places),
            health: health.as_ref(),
            host: &wire_up::host,
            image_sets: &image_sets,
            version: env!("CARGO_PKG_VERSION"),
            clock: faults.as_ref().map(Faults::clock),
        };
        let running = work(&bench, cancel);
        match &faults {
            Some(faults) => faults.beside(running).await,
            None => running.await,
        }
    });
    // Whoever waits for the place need not wait for what is shown, too.
    drop(lab);
    shown();
    for left in faults.iter().flat_map(Faults::left) {
        screen.say(&format!("--inject {left} has not struck: its moment did not come"));
    }
    let record = record?;
    // Standard input may still be waited for; the process is about to end.
    runtime.shutdown_background();
    let entry = store.open(record.id.as_str()).map_err(|e| Failure::of(e.fault(), &e))?;
    if let Err(error) = store.prune(catalogue.retention(), jiff::Timestamp::now()) {
        tracing::warn!(error = chain(&error), "old runs were not removed");
    }
    Ok(Outcome { record, dir: entry.dir })
}

/// Refuses a place that is out of service: what a run would show there proves nothing.
fn in_service(store: Option<&HealthStore>, place: &Place) -> Result<(), Failure> {
    let health = store.and_then(|store| store.of(&place.name).ok());
    let Some(health) = health.filter(|now| now.state == HealthState::Quarantined) else {
        return Ok(());
    };
    let name = &place.name;
    let since = health.since.map(|at| format!(" since {}", at.strftime("%Y-%m-%d %H:%M:%SZ")));
    let words = format!(
        "place {name} is out of service{}: {}",
        since.unwrap_or_default(),
        escape(health.why.as_bytes())
    );
    Err(Failure::new(Fault::Lab, words).help(format!("prove or recover it: jig recover -b {name}")))
}

/// Opens the health store for a place. It is a convenience: without it runs go on, and
/// `jig health` says what is wrong with it.
fn store(catalogue: &Catalogue, place: &Place) -> Option<HealthStore> {
    match HealthStore::open(&catalogue.health_store()) {
        Ok(store) => Some(store.with_policy(policy(place))),
        Err(error) => {
            tracing::warn!(error = chain(&error), "the health of places is not noted");
            None
        }
    }
}

/// How long a command waits for a place that somebody uses: long enough for the run before
/// in a loop of runs, short enough for a person who forgot a debugger.
const TURN: Duration = Duration::from_secs(30);

/// Takes a place for a run, unless somebody asks to stop first.
pub(crate) async fn hold(
    places: &Places,
    place: &PlaceName,
    cancel: &CancelToken,
    screen: &Screen,
) -> Result<PlaceLock, Failure> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => {
            Err(Failure::new(Fault::Cancelled, format!("gave up waiting for place {place}")))
        }
        taken = turn::take(places, place, TURN, screen) => taken.map_err(|e| turn::refused(&e)),
    }
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[tokio::test]
    async fn a_place_in_use_is_waited_for_until_somebody_asks_to_stop() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let place: PlaceName = "bench-1".parse().unwrap();
        let common = crate::args::Cli::parse_from(["jig", "--quiet", "boards"]).common;
        let screen = Screen::new(&common);
        let cancel = CancelToken::new();
        let lock = hold(&places, &place, &cancel, &screen).await.ok().unwrap();
        let waits = hold(&places, &place, &cancel, &screen);
        let (taken, ()) = tokio::join!(waits, async { cancel.cancel() });
        let failure = taken.err().unwrap();
        assert_eq!(failure.exit_code(), CANCELLED);
        drop(lock);
        assert!(hold(&places, &place, &CancelToken::new(), &screen).await.is_ok());
    }
}
