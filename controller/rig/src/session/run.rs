//! From request to record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::image::Image;
use jig_model::plan::{ActionKind, Plan};
use jig_model::profile::BoardProfile;
use jig_model::protocol::{DriverFactory, Host, ProcessLedger};
use jig_model::rig_file::{Canary, MissingPart, Needed, Place};
use jig_model::{Cause, ConsoleName, Fault, RunEvent, Verdict, VerdictKind};

use tracing::Instrument as _;

use super::images::{self, ImagesError, ReadImages};
use super::lab::{DutSpec, LabServices};
use super::ledger::RunEvents;
use super::preflight::{Preflight, Ready};
use super::recorder::HealthRecorder;
use super::retry_policy::RetryPolicy;
use super::run_driver::RunDriver;
use super::storage_retry::retried;
use crate::attempt::RunPatterns;
use crate::console::{ConsoleHandle, Syncing};
use crate::health::HealthStore;
use crate::report::combine;
use crate::store::{
    Clock, ImageRecord, LiveRun, NewRun, Places, PlanRecord, RunRecord, RunStore, StoreError,
    SystemClock,
};
use crate::workflow::CancelToken;

/// Is told what happens in a run, as it happens. Must not block.
pub trait Observer: Send + Sync {
    /// The run has a directory now.
    fn began(&self, run: &jig_model::RunId, dir: &Path);
    /// An event was recorded.
    fn event(&self, event: &RunEvent);
    /// A console is being captured; its log can be followed.
    fn console(&self, console: &ConsoleName, handle: &ConsoleHandle);
}

/// What to run, and where.
pub struct SessionRequest {
    /// The place.
    pub place: Arc<Place>,
    /// Its board.
    pub profile: Arc<BoardProfile>,
    /// What to do.
    pub plan: Plan,
    /// The command line's image.
    pub image: Option<PathBuf>,
    /// How many attempts to make; at least one is made.
    pub repeat: u32,
    /// How often the rig may be recovered on the way; as the profile says if nothing.
    pub max_recoveries: Option<u32>,
    /// The place's known-good image, where somebody declares one; its path resolved.
    pub canary: Option<Canary>,
}

/// What runs happen on.
#[derive(Clone)]
pub struct RunEnvironment<'a> {
    /// Where runs are kept.
    pub store: &'a RunStore,
    /// Binds the place.
    pub factory: &'a dyn DriverFactory,
    /// How long something of the lab may take to cycle the place's power, if anything switches
    /// it.
    pub outlet: Option<Duration>,
    /// Other places with the same kind of board, to fail over to.
    pub spare: &'a [DutSpec<'a>],
    /// The rest of the lab.
    pub lab: &'a dyn LabServices,
    /// Where the health of places is kept.
    pub health: Option<&'a HealthStore>,
    /// What places keep between runs; known-good images are kept and found there.
    pub places: Option<&'a Places>,
    /// Makes the host that a run's commands run on.
    pub host: &'a (dyn Fn(Arc<dyn ProcessLedger>) -> Box<dyn Host> + Sync),
    /// Folder of the built image sets.
    pub image_sets: &'a Path,
    /// The program's version, for the record.
    pub version: &'a str,
    /// The clock of the run, if it is not the machine's.
    pub clock: Option<Arc<dyn Clock>>,
}

/// Says why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The images are wrong.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The board lacks what the plan requires.
    #[error("board {board} does not fit plan {plan}: {missing}")]
    Unfit {
        /// The board.
        board: String,
        /// The plan.
        plan: String,
        /// What is missing.
        missing: String,
    },
    /// The place lacks a part that the plan needs.
    #[error(transparent)]
    Missing(#[from] MissingPart),
    /// The run's directory cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Images(error) => error.fault(),
            Self::Unfit { .. } | Self::Missing(_) => Fault::Profile,
            Self::Store(error) => error.fault(),
        }
    }
}

/// Makes a run.
///
/// An attempt that the rig spoiled is made again once the rig is recovered. If it cannot be
/// recovered, that ends the run: what the attempt would have shown is not known.
///
/// # Errors
/// The request is wrong, or the run could not be recorded. What went wrong in the run
/// itself is in its verdict.
pub async fn run(
    request: SessionRequest,
    environment: &RunEnvironment<'_>,
    observer: Arc<dyn Observer>,
    cancel: CancelToken,
) -> Result<RunRecord, SessionError> {
    check_requirements(&request)?;
    check_parts(&request)?;
    let look = Preflight::begin(environment.lab, &request);
    let given = request.image.as_deref();
    let (plan, profile, place) = (&request.plan, &request.profile, &request.place);
    let read = retried(|| images::read(plan, given, profile, place)).await?;
    let clock = environment.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
    let mut live = retried(|| {
        environment.store.begin(new_run(&request, &read, environment), Arc::clone(&clock))
    })
    .await?;
    observer.began(live.id(), live.dir().path());
    let span = tracing::info_span!("run", trace = %live.id());
    let images = keep(read, &live).await?;
    let events = RunEvents::new(&live, &observer);
    let recorder = HealthRecorder::new(environment.health, live.id().clone());
    let dut_spec = DutSpec {
        place: Arc::clone(&request.place),
        profile: Arc::clone(&request.profile),
        factory: environment.factory,
        outlet: environment.outlet,
        canary: request.canary.clone(),
    };
    let mut driver = RunDriver {
        environment,
        dut_spec,
        plan: &request.plan,
        images: &images,
        live: &mut live,
        patterns: Arc::new(RunPatterns::new(Arc::clone(&request.profile))),
        events,
        observer,
        cancel,
        retries: RetryPolicy::new(
            request.max_recoveries.unwrap_or(request.profile.recovery.max_recoveries),
        ),
        displaced: false,
        number: 0,
        syncing: Vec::new(),
        recorder: recorder.clone(),
    };
    let Ready { notes, unfit } = driver.ready(look).instrument(span.clone()).await;
    let turns = if unfit.is_none() { request.repeat.max(1) } else { 0 };
    let mut verdicts: Vec<Verdict> = unfit.into_iter().collect();
    let mut syncing = Vec::new();
    for _ in 0..turns {
        let verdict = driver.run_test().instrument(span.clone()).await?;
        let kind = verdict.kind;
        verdicts.push(verdict);
        // The logs of the attempt before were synced while this one ran.
        let logs = std::mem::take(&mut driver.syncing);
        let lost = durable(std::mem::replace(&mut syncing, logs)).await;
        if let Some(error) = lost {
            verdicts.push(error);
            break;
        }
        if matches!(kind, VerdictKind::EnvError | VerdictKind::Cancelled) {
            break;
        }
    }
    let put_back = driver.put_back().instrument(span.clone()).await?;
    syncing.append(&mut driver.syncing);
    verdicts.extend(durable(syncing).await);
    let (place, events) = (driver.dut_spec.place.name.clone(), Arc::clone(&driver.events));
    let mut verdict = combine(&verdicts);
    verdict.notes.extend(put_back);
    events.own_up(&mut verdict);
    verdict.notes.splice(0..0, notes);
    // The end is written once; that it can be is waited for before.
    drop(retried(|| live.update(|_| {})).await);
    let record = live.finish(verdict)?;
    if let Some(verdict) = &record.verdict {
        recorder.ended(&place, verdict, record.duration_ms.unwrap_or_default(), &events);
    }
    Ok(record)
}

/// Waits until an attempt's logs survive a power cut; returns what it means if they do not.
async fn durable(logs: Vec<Syncing>) -> Option<Verdict> {
    let mut failed = None;
    for log in logs {
        let state = log.done().await;
        // An earlier error is in the attempt's own verdict, and again here: it is the same.
        failed = failed.or(state.error);
    }
    let error = failed?;
    let summary = format!("a console's log could not be made durable: {error}");
    Some(Verdict::of(Cause::StorageFailed, summary))
}

fn new_run(
    request: &SessionRequest,
    read: &ReadImages,
    environment: &RunEnvironment<'_>,
) -> NewRun {
    let images = read.values().map(|read| ImageRecord {
        path: read.image.name.clone(),
        sha256: read.image.sha256.clone(),
        build_id: read.image.build_id.clone(),
    });
    NewRun {
        jig_version: environment.version.to_owned(),
        place: Some(request.place.name.clone()),
        board: Some(request.profile.id.clone()),
        plan: Some(PlanRecord {
            name: request.plan.name.to_string(),
            origin: request.plan.origin.clone(),
        }),
        images: images.collect(),
        host: BTreeMap::new(),
    }
}

/// Copies the images into the run: what runs are the bytes that were checked and hashed,
/// even if a build replaces the file a moment later.
async fn keep(
    read: ReadImages,
    live: &LiveRun,
) -> Result<BTreeMap<Option<PathBuf>, Image>, SessionError> {
    let mut kept = BTreeMap::new();
    for (number, (name, read)) in read.into_iter().enumerate() {
        // Flashers and emulators tell formats by the ending of the name.
        let file = format!("image-{}.{}", number + 1, read.image.format.extension());
        let path = live.dir().artefact_path(&file);
        let write = || std::fs::write(&path, &read.bytes);
        retried(|| write().map_err(|error| StoreError::writing(&path, error))).await?;
        kept.insert(name, Image { path, ..read.image });
    }
    Ok(kept)
}

/// Checks that the place has the parts that the plan's actions are done with.
fn check_parts(request: &SessionRequest) -> Result<(), MissingPart> {
    let (place, plan, board) = (&request.place, &request.plan, &request.profile);
    let by = format!("plan {}", plan.name);
    place.needs(Needed::Console, board, &by)?;
    let steps = plan.stages.iter().flat_map(|stage| &stage.steps);
    let actions = steps.flat_map(|step| &step.behaviors).flat_map(|behavior| &behavior.actions);
    for action in actions {
        let needed = match action.kind {
            ActionKind::Power { .. } => Needed::Boot,
            ActionKind::Reset => Needed::Reset,
            ActionKind::Deploy { .. } => Needed::Flasher,
            _ => continue,
        };
        place.needs(needed, board, &by)?;
    }
    Ok(())
}

fn check_requirements(request: &SessionRequest) -> Result<(), SessionError> {
    let (board, needs) = (&request.profile, &request.plan.requires);
    let mut missing = Vec::new();
    if !needs.boards.is_empty() && !needs.boards.contains(&board.id) {
        let wanted: Vec<_> = needs.boards.iter().map(ToString::to_string).collect();
        missing.push(format!("it is made for {}", wanted.join(", ")));
    }
    if !needs.arch.is_empty() && !needs.arch.contains(&board.arch) {
        let wanted: Vec<_> = needs.arch.iter().map(ToString::to_string).collect();
        missing.push(format!(
            "it is made for {} and the board is {}",
            wanted.join(", "),
            board.arch
        ));
    }
    let lacks: Vec<_> = needs.features.difference(&board.features).cloned().collect();
    if !lacks.is_empty() {
        missing.push(format!("the board lacks {}", lacks.join(", ")));
    }
    let has = |name: &ConsoleName| board.consoles.iter().any(|c| c.name == *name);
    let lacks: Vec<_> =
        needs.consoles.iter().filter(|name| !has(name)).map(ToString::to_string).collect();
    if !lacks.is_empty() {
        missing.push(format!("the board has no console {}", lacks.join(", ")));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(SessionError::Unfit {
        board: board.id.to_string(),
        plan: request.plan.name.to_string(),
        missing: missing.join("; "),
    })
}
