//! What every command that is recorded as a run does around it: sweep, hold, run, prune.

use std::sync::Arc;
use std::time::Duration;

use jig_drivers::inject::Injection;
use jig_model::command::{CommandEvent, EventSink, RunReply, SweptRun};
use jig_model::protocol::DriverFactory;
use jig_model::recovery::{RecoveryStep, Rung};
use jig_model::rig_file::Place;
use jig_model::{Fault, PlaceName, RunId, chain};
use jig_rig::health::{HealthState, HealthStore};
use jig_rig::report::RunReport;
use jig_rig::session::{
    DutSpec, Extent, Observer, RunEnvironment, SessionError, SessionRequest, recovery_rungs,
};
use jig_rig::store::{
    PlaceLock, PlaceLockError, RunRecord, RunStore, StoreError, Swept, SweptOutcome, lost_runs,
};
use jig_rig::workflow::CancelToken;

use crate::beside::{BoundPlace, RigBeside};
use crate::faults::Faults;
use crate::hold::hold;
use crate::{
    BindError, Catalogue, CatalogueError, InjectError, Lab, bind, coverage, health_subject,
};

/// How long a run waits for a place that another process uses: long enough for the run before
/// in a loop of runs, short enough for a person who forgot a debugger.
const WAIT: Duration = Duration::from_secs(30);

/// Says why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The place or its board is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The board cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A fault cannot be injected.
    #[error("--inject {0}")]
    Inject(#[source] InjectError),
    /// The place is out of service: what a run would show there proves nothing.
    #[error("place {place} is out of service{}: {why}", since_words(*since))]
    OutOfService {
        /// The place.
        place: PlaceName,
        /// Since when, if that is known.
        since: Option<jiff::Timestamp>,
        /// What took it out of service; may hold any text.
        why: String,
    },
    /// Another process uses the place.
    #[error(transparent)]
    Held(#[from] PlaceLockError),
    /// The caller cancelled the command while it waited for a place.
    #[error("gave up waiting for place {0}")]
    Cancelled(PlaceName),
    /// The request is wrong, or the run could not be recorded.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The run that has ended cannot be found again.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record of a run that has ended has no verdict.
    #[error("run {0} has ended without a verdict")]
    NoVerdict(RunId),
}

impl RunError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Bind(error) => error.fault(),
            Self::Inject(_) => Fault::Usage,
            Self::OutOfService { .. } => Fault::Lab,
            Self::Held(error) => error.fault(),
            Self::Cancelled(_) => Fault::Cancelled,
            Self::Session(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::NoVerdict(_) => Fault::Bug,
        }
    }
}

fn since_words(since: Option<jiff::Timestamp>) -> String {
    since.map_or_else(String::new, |at| format!(" since {}", at.strftime("%Y-%m-%d %H:%M:%SZ")))
}

/// Where something is done that is recorded as a run.
struct Setting {
    here: BoundPlace,
    /// What is to fail.
    inject: Vec<Injection>,
    /// Whether it is a recovery: a place that is out of service takes nothing else.
    recovers: bool,
}

impl Lab {
    /// Makes a run at a place.
    ///
    /// # Errors
    /// There was no run. What went wrong in one is in its verdict.
    pub(crate) async fn run(
        &self,
        here: BoundPlace,
        request: SessionRequest,
        inject: Vec<Injection>,
        observer: Arc<dyn Observer>,
        events: &dyn EventSink,
        cancel: CancelToken,
    ) -> Result<RunReply, RunError> {
        let setting = Setting { here, inject, recovers: false };
        self.in_environment(setting, events, cancel, async |spec, environment, cancel| {
            jig_rig::session::run(spec, request, environment, observer, cancel).await
        })
        .await
    }

    /// Asks a place whether it works, and recovers it as far as `extent` says. That is a run,
    /// and noted in the health of the place.
    ///
    /// # Errors
    /// There was no run.
    pub(crate) async fn recover(
        &self,
        place: &PlaceName,
        extent: Extent,
        observer: Arc<dyn Observer>,
        events: &dyn EventSink,
        cancel: CancelToken,
    ) -> Result<RunReply, RunError> {
        let setting = Setting { here: self.bind(place)?, inject: Vec::new(), recovers: true };
        self.in_environment(setting, events, cancel, async |spec, environment, cancel| {
            jig_rig::session::recover(spec, extent, environment, observer, cancel).await
        })
        .await
    }

    /// Returns the recovery steps of a place in their order, and how long they may take together.
    ///
    /// # Errors
    /// The place is not known, or its board cannot be bound.
    pub(crate) fn recovery_ladder(
        &self,
        place: &PlaceName,
        from: Option<RecoveryStep>,
    ) -> Result<(Vec<Rung>, Duration), RunError> {
        let here = self.bind(place)?;
        Ok(recovery_rungs(&here.dut_spec(&here.parts), &RigBeside::new(self, false), from))
    }

    /// Does what is recorded as a run, on a place and the rig round it.
    async fn in_environment(
        &self,
        setting: Setting,
        events: &dyn EventSink,
        cancel: CancelToken,
        work: impl AsyncFnOnce(
            DutSpec<'_>,
            &RunEnvironment<'_>,
            CancelToken,
        ) -> Result<RunRecord, SessionError>,
    ) -> Result<RunReply, RunError> {
        let Setting { mut here, inject, recovers } = setting;
        // The board of another process proves nothing of its place.
        let held = here.parts.held.is_some();
        let health = if held { None } else { self.health_of(&here.place) };
        let health = match health {
            Some(store) if !recovers => in_service(store, &here.place)?,
            health => health,
        };
        let by = self.catalogue.user().identity.clone();
        let store = RunStore::new(self.catalogue.runs_dir()).by(by);
        sweep(&store, events);
        let faults = Faults::of(inject, &here.place, &here.profile, &self.program)
            .map_err(RunError::Inject)?;
        let between = faults.as_ref().map(Faults::between_devices);
        here.parts.context.between = between;
        let by_device = here.outlet.is_some();
        let failing = faults.as_ref().map(|faults| faults.round(&here.parts, by_device));
        let factory: &dyn DriverFactory = &here.parts;
        let factory = failing.as_ref().map_or(factory, |failing| failing as &dyn DriverFactory);
        let mut spares = if held { Vec::new() } else { self.spares(&here)? };
        spares.iter_mut().for_each(|spare| spare.parts.code.clone_from(&here.parts.code));
        let spare: Vec<_> = spares.iter().map(|spare| spare.dut_spec(&spare.parts)).collect();
        let (lab, places) = (RigBeside::new(self, held), self.catalogue.places());
        // An emulated board is a new one for each run; of a real one there is one. With it go
        // those that lose their power together with it, in one order for all runs. The holder of a
        // board has its lock.
        if !here.place.is_emulated() && !held {
            let also = here.outlet.iter().flat_map(|outlet| &outlet.also);
            let mut names: Vec<&PlaceName> = also.chain([&here.place.name]).collect();
            names.sort();
            for place in names {
                lab.keep(vec![hold_or_cancel(&self.catalogue, place, &cancel, events).await?]);
            }
        }
        let environment = RunEnvironment {
            store: &store,
            spare: &spare,
            lab: &lab,
            places: Some(&places),
            health: health.as_ref(),
            host: &bind::host,
            image_sets: &self.catalogue.images_dir(),
            version: env!("CARGO_PKG_VERSION"),
            clock: faults.as_ref().map(Faults::clock),
        };
        let running = Box::pin(work(here.dut_spec(factory), &environment, cancel));
        let record = match &faults {
            Some(faults) => faults.beside(running).await,
            None => running.await,
        };
        // The place is released here: the next user need not wait for the rest.
        drop(lab);
        let record = record?;
        let id = record.id.as_str();
        let dir = store.open(id).or_else(|_| RunStore::new(lost_runs()).open(id))?.dir;
        if let Some(code) = &here.parts.code
            && let Err(error) = coverage::keep(&dir, &record, code)
        {
            tracing::warn!(error = chain(&error), "the coverage of the run was not kept");
        }
        self.catalogue.knowledge().note_seen(&dir, &record).await;
        if let Err(error) = store.prune(self.catalogue.retention(), jiff::Timestamp::now()) {
            tracing::warn!(error = chain(&error), "old runs were not removed");
        }
        let exit_code = RunReport::of(&record).exit_code();
        let verdict = record.verdict.ok_or_else(|| RunError::NoVerdict(record.id.clone()))?;
        let (run, dir) = (record.id, dir.path().to_owned());
        let not_struck = faults.iter().flat_map(Faults::left).collect();
        Ok(RunReply { run, dir, verdict, exit_code, not_struck })
    }

    /// Opens the notes of health for a place. They are a convenience: without them runs go on,
    /// and `jig health` says what is wrong with them.
    ///
    /// A chip on a probe has none: its name says nothing of the probe, so the next command of the name may
    /// be about another board.
    fn health_of(&self, place: &Place) -> Option<HealthStore> {
        if place.name.chip().is_some() {
            return None;
        }
        match self.health_store() {
            Ok(store) => {
                // The run may move to another place.
                let all = self.catalogue.rig.places.iter().chain([place]);
                Some(store.about(all.map(|place| (place.name.clone(), health_subject(place)))))
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "{UNKNOWN_HEALTH}");
                None
            }
        }
    }
}

const UNKNOWN_HEALTH: &str = "the health of the place is unknown, and this run is not noted in it";

/// Refuses a place that is out of service. Returns the store if it can be used: each further
/// question to one that is locked would take its whole time-out.
fn in_service(store: HealthStore, place: &Place) -> Result<Option<HealthStore>, RunError> {
    let health = match store.of(&place.name) {
        Ok(health) => health,
        Err(error) => {
            tracing::warn!(error = chain(&error), "{UNKNOWN_HEALTH}");
            return Ok(None);
        }
    };
    match Some(health).filter(|now| now.state == HealthState::Quarantined) {
        None => Ok(Some(store)),
        Some(health) => Err(RunError::OutOfService {
            place: place.name.clone(),
            since: health.since,
            why: health.why,
        }),
    }
}

/// Takes a place for a run, unless the caller cancels first.
async fn hold_or_cancel(
    catalogue: &Catalogue,
    place: &PlaceName,
    cancel: &CancelToken,
    events: &dyn EventSink,
) -> Result<PlaceLock, RunError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(RunError::Cancelled(place.clone())),
        held = hold(catalogue, place, WAIT, events) => Ok(held?),
    }
}

/// Cleans up after runs whose process was killed, and says so.
fn sweep(store: &RunStore, events: &dyn EventSink) {
    match store.sweep(jiff::Timestamp::now()) {
        Ok(swept) => swept.into_iter().for_each(|run| {
            let Swept { id: run, outcome } = run;
            events.event(CommandEvent::Swept(match outcome {
                SweptOutcome::Abandoned(record) => {
                    SweptRun { run, killed: record.killed.len(), error: None }
                }
                SweptOutcome::Left(error) => {
                    SweptRun { run, killed: 0, error: Some(chain(&error)) }
                }
            }));
        }),
        Err(error) => tracing::warn!(error = chain(&error), "earlier runs were not swept"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::LabConfig;

    #[derive(Default)]
    struct Told(Mutex<Vec<CommandEvent>>);

    impl EventSink for Told {
        fn event(&self, event: CommandEvent) {
            self.0.lock().unwrap().push(event);
        }
    }

    #[tokio::test]
    async fn a_place_in_use_is_waited_for_until_the_caller_cancels() {
        let state = tempfile::tempdir().unwrap();
        let config = LabConfig { state: Some(state.path().to_owned()), ..LabConfig::default() };
        let places = Catalogue::load(&config).unwrap();
        let place: PlaceName = "bench-1".parse().unwrap();
        let (told, cancel) = (Told::default(), CancelToken::new());
        let lock = hold_or_cancel(&places, &place, &cancel, &told).await.unwrap();
        let waits = hold_or_cancel(&places, &place, &cancel, &told);
        let (taken, ()) = tokio::join!(waits, async { cancel.cancel() });
        assert!(matches!(taken, Err(RunError::Cancelled(name)) if name == place));
        drop(lock);
        assert!(hold_or_cancel(&places, &place, &CancelToken::new(), &told).await.is_ok());
    }
}
