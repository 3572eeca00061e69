//! From request to record: attempts, known-good images and recoveries, in the order that
//! [`RetryPolicy`] decides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jig_model::image::Image;
use jig_model::plan::{ActionKind, Plan, PowerOp};
use jig_model::profile::{BoardProfile, DeployMethod};
use jig_model::rig_file::{MissingPart, Needed, Place, ResetPart};
use jig_model::{
    Cause, ConsoleName, Fault, Note, PlaceName, Purpose, RunEvent, SessionTrace, Verdict,
    VerdictKind,
};
use tracing::Instrument as _;

use super::dut::{Attempted, Dut, Images, PlannedAttempt};
use super::environment::{DutSpec, Observer, RunEnvironment};
use super::images::{self, ImagesError, ReadImages};
use super::known_good::deploy_plan;
use super::preflight::{Preflight, PreflightResult};
use super::retry_policy::{NextAction, RetryPolicy, RetryStep};
use super::run_ladder::LadderOutcome;
use super::storage_retry::retried;
use crate::attempt::RunEventSink as _;
use crate::console::Syncing;
use crate::report::combine;
use crate::store::{
    ImageRecord, LiveRun, NewRun, PlanRecord, RunRecord, StoreError, SystemClock, host_name,
};
use crate::workflow::CancelToken;

/// What to run.
pub struct SessionRequest {
    /// The plan.
    pub plan: Plan,
    /// The command line's image.
    pub image: Option<PathBuf>,
    /// How many attempts to make; at least one is made.
    pub repeat: u32,
    /// How often the rig may be recovered on the way; as the profile says if nothing.
    pub max_recoveries: Option<u32>,
    /// The session that asks for the run, if one does.
    pub asked: Option<SessionTrace>,
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
    /// The plan resets a board that has no power.
    #[error(
        "plan {plan} resets the board of {place} while its power is off, as it is at the start"
    )]
    ResetsUnpowered {
        /// The plan.
        plan: String,
        /// The place.
        place: PlaceName,
    },
    /// The run's directory cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Images(error) => error.fault(),
            Self::Unfit { .. } | Self::ResetsUnpowered { .. } | Self::Missing(_) => Fault::Profile,
            Self::Store(error) => error.fault(),
        }
    }
}

/// Makes a run on a place.
///
/// An attempt that fails because of the rig is retried after the rig is recovered. A rig that
/// cannot be recovered ends the run, because nothing is known of the test.
///
/// # Errors
/// The request is wrong, or the run could not be recorded. What went wrong in the run
/// itself is in its verdict.
pub async fn run(
    spec: DutSpec<'_>,
    request: SessionRequest,
    environment: &RunEnvironment<'_>,
    observer: Arc<dyn Observer>,
    cancel: CancelToken,
) -> Result<RunRecord, SessionError> {
    let SessionRequest { plan, image, repeat, max_recoveries, asked } = request;
    check_requirements(&plan, &spec.profile)?;
    check_parts(&plan, &spec)?;
    check_power(&plan, &spec.place)?;
    let max_recoveries = max_recoveries.unwrap_or(spec.profile.recovery.max_recoveries);
    let look = Preflight::begin(environment.lab, &spec.place.name, max_recoveries > 0);
    let given = image.as_deref();
    let read = retried(|| images::read(&plan, given, &spec.profile, &spec.place)).await?;
    let clock = environment.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
    let live = retried(|| {
        let about = (environment.version, asked.clone());
        let new = new_run(&plan, &spec, &read, about);
        environment.store.begin(new, Arc::clone(&clock))
    })
    .await?;
    observer.began(live.id(), live.dir().path());
    let session_id = asked.as_ref().map(|asked| asked.session.as_str());
    let trace_id = asked.as_ref().map(|asked| asked.trace_id.as_str());
    let span = tracing::info_span!("run", trace = %live.id(), session_id, trace_id);
    let images = keep(read, &live).await?;
    let mut driver = RunDriver {
        dut: Dut::new(environment, spec, live, observer, cancel),
        plan: &plan,
        images: &images,
        retries: RetryPolicy::new(max_recoveries),
        took_ms: 0,
    };
    let (mut verdict, before) = driver.drive(look, repeat).instrument(span).await;
    let Dut { spec, events, recorder, mut live, .. } = driver.dut;
    events.note_injected(&mut verdict);
    verdict.notes.splice(0..0, before);
    // `finish` writes once and does not retry, so wait here until the record can be written.
    drop(retried(|| live.update(|_| {})).await);
    let record = live.finish(verdict)?;
    if let Some(verdict) = &record.verdict {
        let duration_ms = record.duration_ms.unwrap_or_default();
        recorder.ended(&spec.place.name, verdict, duration_ms, &events);
    }
    Ok(record)
}

/// A run in progress.
struct RunDriver<'a> {
    dut: Dut<'a>,
    plan: &'a Plan,
    images: &'a Images,
    /// Decides what is done after each attempt.
    retries: RetryPolicy,
    /// How long the last attempt of the test took, in milliseconds.
    took_ms: u64,
}

impl RunDriver<'_> {
    /// Makes all attempts that count, at least one; returns their verdict and the notes of
    /// preflight.
    async fn drive(&mut self, look: Preflight, repeat: u32) -> (Verdict, Vec<Note>) {
        let PreflightResult { notes, unfit, vouched } = look.end(&mut self.dut).await;
        if vouched {
            self.retries.vouch();
        }
        let turns = if unfit.is_none() { repeat.max(1) } else { 0 };
        let mut verdicts: Vec<Verdict> = unfit.into_iter().collect();
        let mut syncing = Vec::new();
        for turn in 1..=turns {
            self.dut.repetition = (turns > 1).then_some(turn);
            let verdict = self.run_test().await;
            let kind = verdict.kind;
            verdicts.push(verdict);
            // The logs of the previous attempt were synced while this one ran.
            let logs = std::mem::take(&mut self.dut.syncing);
            let lost = durable(std::mem::replace(&mut syncing, logs)).await;
            if let Some(error) = lost {
                verdicts.push(error);
                break;
            }
            if matches!(kind, VerdictKind::EnvError | VerdictKind::Cancelled) {
                break;
            }
        }
        let put_back = self.put_back().await;
        syncing.append(&mut self.dut.syncing);
        verdicts.extend(durable(syncing).await);
        let mut verdict = combine(&verdicts);
        verdict.notes.extend(put_back);
        (verdict, notes)
    }

    /// Attempts the test until an attempt counts; returns its verdict. Where the run's folder cannot
    /// be written meanwhile, what the test has shown is kept.
    async fn run_test(&mut self) -> Verdict {
        self.retries.begin();
        let mut step = match self.test().await {
            Ok(step) => step,
            Err(error) => return unwritable(&error, None),
        };
        loop {
            let RetryStep { verdict, next } = step;
            if let Err(error) = self.dut.amend(&verdict, next == NextAction::Again).await {
                return unwritable(&error, Some(verdict));
            }
            let taken = match next {
                next if next != NextAction::Done && self.dut.folder_is_gone() => {
                    Ok(self.retries.unrecorded(verdict.clone()))
                }
                NextAction::Done => {
                    let Self { plan, images, took_ms, .. } = self;
                    self.dut.remember(plan, images, verdict.kind, *took_ms).await;
                    return verdict;
                }
                NextAction::Again => self.test().await,
                NextAction::Recover => {
                    let outcome = self.recovery(verdict.cause).await;
                    Ok(self.retries.recovered(verdict.clone(), &outcome))
                }
                NextAction::Control => self.ask_known_good(verdict.clone()).await,
            };
            step = match taken {
                Ok(step) => step,
                Err(error) => return unwritable(&error, Some(verdict)),
            };
        }
    }

    /// Has the known-good image tell whether the rig works.
    async fn ask_known_good(&mut self, verdict: Verdict) -> Result<RetryStep, StoreError> {
        let control = self.dut.control().await?;
        if self.retries.contradicts_itself(&control) {
            self.dut.doubt(Some(u32::MAX)).await;
        }
        let step = self.retries.controlled(verdict, control);
        if step.next == NextAction::Again {
            let text = "made again: what was not seen may have been lost on the way";
            self.dut.events.emit(RunEvent::Note { text: text.to_owned() });
        }
        Ok(step)
    }

    /// Makes an attempt of the test.
    async fn test(&mut self) -> Result<RetryStep, StoreError> {
        let (plan, images) = (self.plan, self.images);
        let again = self.retries.makes_garbled_again();
        let trial = PlannedAttempt { purpose: Purpose::Test, plan, images, again };
        let Attempted { verdict, printed_out, believed, shown, duration_ms } =
            self.dut.attempt(trial).await?;
        self.took_ms = duration_ms;
        if let Some(shown) = shown {
            self.retries.shown(shown);
        }
        Ok(match printed_out && believed.is_none() {
            true => self.retries.printed_out(verdict),
            false => self.retries.attempted(verdict, believed),
        })
    }

    /// Recovers the rig.
    async fn recovery(&mut self, cause: Cause) -> LadderOutcome {
        // A proof needs a writable record. If it stays unwritable the proof fails; what the failed
        // attempt could not write does not matter.
        self.dut.writable().await;
        for log in std::mem::take(&mut self.dut.syncing) {
            drop(log.done().await);
        }
        self.dut.recover(cause).await
    }

    /// Puts the image of the test back on a board that keeps its flash, if the known-good image ran
    /// last; returns a note on whether that worked.
    async fn put_back(&mut self) -> Option<Note> {
        let deploy = self.dut.spec.profile.deploy_at(&self.dut.spec.place);
        let keeps = deploy.is_some_and(|deploy| match deploy.method() {
            DeployMethod::Probe | DeployMethod::Command | DeployMethod::Volume => true,
            DeployMethod::EmulatorLoader | DeployMethod::ImageSet => false,
        });
        let plan = deploy_plan(self.plan).filter(|_| keeps && self.dut.displaced)?;
        let (purpose, images) = (Purpose::Restore, self.images);
        let trial = PlannedAttempt { purpose, plan: &plan, images, again: false };
        let made = match self.dut.attempt(trial).await {
            Ok(made) => made.verdict,
            Err(error) => unwritable(&error, None),
        };
        // A plan that only deploys asks nothing of the target, and this verdict comes behind all others.
        let deployed = made.kind == VerdictKind::Pass || made.cause == Cause::NothingExpected;
        Some(match deployed {
            true => Note::PutBack,
            false => Note::NotPutBack { cause: made.cause, summary: made.summary },
        })
    }
}

/// Returns the verdict of a run whose folder cannot be written; what the test has shown is a note.
fn unwritable(error: &StoreError, shown: Option<Verdict>) -> Verdict {
    let mut verdict = Verdict::of(Cause::StorageFailed, jig_model::chain(error));
    if let Some(shown) = shown {
        (verdict.tests, verdict.notes) = (shown.tests, shown.notes);
        let seen = Note::Shown { cause: shown.cause, summary: shown.summary };
        verdict.notes.insert(0, seen);
    }
    verdict
}

/// Waits until the logs of an attempt are on disk; returns a verdict if that fails.
async fn durable(logs: Vec<Syncing>) -> Option<Verdict> {
    let mut failed = None;
    for log in logs {
        let state = log.done().await;
        // An error that the verdict of the attempt already reports is returned again.
        failed = failed.or(state.error);
    }
    let error = failed?;
    let summary = format!("a console's log could not be made durable: {error}");
    Some(Verdict::of(Cause::StorageFailed, summary))
}

fn new_run(
    plan: &Plan,
    spec: &DutSpec<'_>,
    read: &ReadImages,
    (version, asked): (&str, Option<SessionTrace>),
) -> NewRun {
    let images = read.values().map(|read| ImageRecord {
        path: read.image.name.clone(),
        sha256: read.image.sha256.clone(),
        build_id: read.image.build_id.clone(),
    });
    NewRun {
        identity: None,
        asked,
        jig_version: version.to_owned(),
        place: Some(spec.place.name.clone()),
        board: Some(spec.profile.id.clone()),
        plan: Some(PlanRecord { name: plan.name.to_string(), origin: plan.origin.clone() }),
        images: images.collect(),
        host: host_facts(spec),
    }
}

/// Notes what a result may depend on beside place, board and image.
fn host_facts(spec: &DutSpec<'_>) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("name".to_owned(), host_name())]);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    facts.extend(kernel.map(|kernel| ("kernel".to_owned(), kernel.trim().to_owned())));
    // Its serial number is part of the selector.
    let probe = spec.place.probe.as_ref();
    facts.extend(probe.map(|probe| ("probe".to_owned(), probe.selector.clone())));
    facts
}

/// Copies the images into the run, so that the bytes that run are those that were checked and
/// hashed, even if a build replaces the file a moment later.
async fn keep(read: ReadImages, live: &LiveRun) -> Result<Images, SessionError> {
    let mut kept = BTreeMap::new();
    for (number, (name, read)) in read.into_iter().enumerate() {
        // Flashers and emulators tell the format by the extension.
        let file = format!("image-{}.{}", number + 1, read.image.format.extension());
        let path = live.dir().artefact_path(&file);
        let write = || std::fs::write(&path, &read.bytes);
        retried(|| write().map_err(|error| StoreError::writing(&path, error))).await?;
        kept.insert(name, Image { path, ..read.image });
    }
    Ok(kept)
}

/// Checks that the place has the parts that the actions of the plan need.
fn check_parts(plan: &Plan, spec: &DutSpec<'_>) -> Result<(), MissingPart> {
    let (place, board) = (&spec.place, &spec.profile);
    let by = format!("plan {}", plan.name);
    place.needs(Needed::Console, board, &by)?;
    let steps = plan.stages.iter().flat_map(|stage| &stage.steps);
    let actions = steps.flat_map(|step| &step.behaviors).flat_map(|behavior| &behavior.actions);
    for action in actions {
        let needed = match action.kind {
            ActionKind::Power { .. } => Needed::Boot,
            ActionKind::Reset => Needed::Reset,
            ActionKind::Deploy { .. } => Needed::Flasher,
            ActionKind::Exec { .. }
            | ActionKind::Upload { .. }
            | ActionKind::Download { .. }
            | ActionKind::Reboot { .. } => Needed::Shell,
            _ => continue,
        };
        place.needs(needed, board, &by)?;
    }
    Ok(())
}

/// Checks that a board whose reset needs power has some at each reset: an attempt begins with the power
/// off. A line, an outlet or a program resets a board whatever has given it power.
fn check_power(plan: &Plan, place: &Place) -> Result<(), SessionError> {
    if !place.is_emulated() && place.reset_part() != Some(ResetPart::Probe) {
        return Ok(());
    }
    let steps = plan.stages.iter().flat_map(|stage| &stage.steps);
    let actions = steps.flat_map(|step| &step.behaviors).flat_map(|behavior| &behavior.actions);
    let mut on = false;
    for action in actions {
        match action.kind {
            ActionKind::Power { op } => on = op != PowerOp::Off,
            ActionKind::Reset if !on => {
                let (plan, place) = (plan.name.to_string(), place.name.clone());
                return Err(SessionError::ResetsUnpowered { plan, place });
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_requirements(plan: &Plan, board: &BoardProfile) -> Result<(), SessionError> {
    let needs = &plan.requires;
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
    let named = needs.consoles.union(&plan.ignore_reports_on);
    let has = |name: &ConsoleName| board.consoles.iter().any(|c| c.name == *name);
    let lacks: Vec<_> = named.filter(|name| !has(name)).map(ToString::to_string).collect();
    if !lacks.is_empty() {
        missing.push(format!("the board has no console {}", lacks.join(", ")));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(SessionError::Unfit {
        board: board.id.to_string(),
        plan: plan.name.to_string(),
        missing: missing.join("; "),
    })
}
