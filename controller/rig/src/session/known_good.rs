//! The known-good image of a place: which image becomes it, and how it is run.
//!
//! # Design
//! A real place has only the image that it declares, because the flash of a board belongs to its
//! user. An emulated place has the one that it declares, else the one that Jig brings along for its
//! kind of board, else a quick image that has passed there three times in a row and never failed.
//! What a failure of each proves stands in `accusation`. A kept image that fails after every
//! recovery, while every check passes, is no longer used.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jig_model::image::Image;
use jig_model::known_good;
use jig_model::pattern::Pattern;
use jig_model::plan::{ActionKind, Plan, PowerOp, RunWaits, default_plan};
use jig_model::{PlaceName, Purpose, RunEvent, Strictness, VerdictKind};
use tokio::time::{Instant, sleep};

use super::accusation::{ImageOrigin, ImageRuns, NextProof, Proven};
use super::dut::{Dut, Images, PlannedAttempt};
use super::images::{self, ReadImage};
use super::step_outcome::KnownGoodFailure;
use super::storage_retry::retried;
use crate::attempt::RunEventSink as _;
use crate::health::examine;
use crate::store::{KnownFormat, KnownGood, Passed, StoreError};

/// Longest run whose image becomes the known-good image: each proof of the rig takes as long.
const LONGEST: Duration = Duration::from_secs(10);

/// Time-out of a known-good image, as a multiple of the time that it took when it passed: a busy
/// host is slower.
const TIMEOUT: u32 = 10;
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(60);

/// Time-out of Jig's own image, which takes some 0.2 s on an idle host.
const SHIPPED: Duration = Duration::from_secs(20);

/// How long another process may keep the notes on known-good images: it copies an image at most.
const BUSY: Duration = Duration::from_secs(2);
/// Pause between two tries to note a failure.
const MOMENT: Duration = Duration::from_millis(10);

/// How long one check of the host or the board may take before a kept image is run again.
const CHECK: Duration = Duration::from_secs(20);

/// Says what a plan waits for, if it is one that [`default_plan`] repeats faithfully: it puts
/// the image of the command line on the board, powers it, and waits for a report or one text.
/// `Some(None)` is a report.
fn repeatable(plan: &Plan) -> Option<Option<Pattern>> {
    if plan.markers.is_some() || !plan.ignore_reports_on.is_empty() {
        return None;
    }
    let behaviors = plan.stages.iter().flat_map(|s| &s.steps).flat_map(|s| &s.behaviors);
    let kinds: Vec<_> = behaviors.flat_map(|b| &b.actions).map(|action| &action.kind).collect();
    let (last, first) = kinds.split_last()?;
    let boots = matches!(
        first,
        [
            ActionKind::Deploy { image: None },
            ActionKind::Power { op: PowerOp::Cycle | PowerOp::On }
        ]
    );
    match last {
        _ if !boots => None,
        ActionKind::WaitForResults { console: None, .. } => Some(None),
        ActionKind::Expect { console: None, any, reject, .. } if reject.is_empty() => {
            let [pattern] = any.as_slice() else { return None };
            Some(Some(pattern.clone()))
        }
        _ => None,
    }
}

/// Returns the plan by which a place's known-good image is run.
pub(crate) fn canary_plan(known: &KnownGood) -> Plan {
    // A pattern that an earlier version could compile and this one cannot: the report decides.
    let until = known.until.as_deref().and_then(|text| Pattern::new(text).ok());
    let took = Duration::from_millis(known.took_ms);
    declared_plan(until, took.saturating_mul(TIMEOUT))
}

/// Returns the plan by which a declared known-good image is run.
fn declared_plan(until: Option<Pattern>, timeout: Duration) -> Plan {
    default_plan(true, RunWaits::new(until, timeout.clamp(LEAST, MOST)))
}

/// Returns the plan that puts a plan's images on a board and does nothing else; none if it
/// has none to put.
pub(super) fn deploy_plan(plan: &Plan) -> Option<Plan> {
    let mut only = Plan { strict: Strictness::Off, ..plan.clone() };
    for stage in &mut only.stages {
        for step in &mut stage.steps {
            for behavior in &mut step.behaviors {
                behavior.actions.retain(|action| matches!(action.kind, ActionKind::Deploy { .. }));
            }
            step.behaviors.retain(|behavior| !behavior.actions.is_empty());
        }
        stage.steps.retain(|step| !step.behaviors.is_empty());
    }
    only.stages.retain(|stage| !stage.steps.is_empty());
    (!only.stages.is_empty()).then_some(only)
}

/// Result of running the known-good image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownGoodResult {
    /// The place has none, or it may not be used here.
    None,
    /// The image of this name passed: the rig works.
    Passed(String),
    /// The image failed: the rig does not work.
    Failed(KnownGoodFailure),
    /// The image passes and fails while every check passes: it proves nothing.
    Unreliable(KnownGoodFailure),
    /// The run was cancelled.
    Cancelled,
}

/// A known-good image, ready to run.
struct KnownGoodImage {
    origin: ImageOrigin,
    plan: Plan,
    image: Image,
}

impl Dut<'_> {
    /// Runs the known-good image on the same place, in the same way, as often as it takes to know
    /// whether the rig works.
    pub(super) async fn control(&mut self) -> Result<KnownGoodResult, StoreError> {
        let Some(known) = self.known_good().await? else { return Ok(KnownGoodResult::None) };
        let mut runs = ImageRuns::new(known.origin, self.shipped_image().is_some());
        let mut failure = None;
        let mut name = known.image.name.clone();
        let proven = loop {
            match runs.next() {
                NextProof::Run => match self.run_known_good(&known).await? {
                    KnownGoodResult::Passed(_) => runs.passed.push(true),
                    KnownGoodResult::Failed(failed) => {
                        runs.passed.push(false);
                        failure = Some(failed);
                    }
                    other => return Ok(other),
                },
                NextProof::RunShipped => {
                    let Some(shipped) = self.shipped().await? else {
                        runs.shipped = Some(false);
                        continue;
                    };
                    match self.run_known_good(&shipped).await? {
                        KnownGoodResult::Passed(passed) => {
                            runs.shipped = Some(true);
                            name = passed;
                        }
                        KnownGoodResult::Failed(_) => runs.shipped = Some(false),
                        other => return Ok(other),
                    }
                }
                NextProof::Check => runs.checks = Some(self.checks_pass().await),
                NextProof::Known(proven) => break proven,
            }
        };
        let words = failure.as_ref().map(ToString::to_string);
        if proven == Proven::OnlyShippedPasses
            && let Some(words) = &words
        {
            let text = format!("{words}; the image that jig brings along passes, so the rig works");
            self.events.emit(RunEvent::Note { text });
        }
        match (proven, failure) {
            (Proven::RigFails, Some(failure)) => {
                self.recorder.canary(self.place(), false, &failure.to_string());
                Ok(KnownGoodResult::Failed(failure))
            }
            (Proven::ImageUnreliable, Some(failure)) => {
                self.doubt(Some(u32::MAX)).await;
                Ok(KnownGoodResult::Unreliable(failure))
            }
            (Proven::RigWorks | Proven::OnlyShippedPasses, _) | (_, None) => {
                self.recorder.canary(self.place(), true, &name);
                Ok(KnownGoodResult::Passed(name))
            }
        }
    }

    /// Runs an image once.
    async fn run_known_good(
        &mut self,
        known: &KnownGoodImage,
    ) -> Result<KnownGoodResult, StoreError> {
        let KnownGoodImage { plan, image, .. } = known;
        let name = image.name.clone();
        let images = BTreeMap::from([(None, image.clone())]);
        let trial =
            PlannedAttempt { purpose: Purpose::Canary, plan, images: &images, again: false };
        let made = self.attempt(trial).await?.verdict;
        Ok(match made.kind {
            VerdictKind::Pass => KnownGoodResult::Passed(name),
            VerdictKind::Cancelled => KnownGoodResult::Cancelled,
            VerdictKind::Fail
            | VerdictKind::Flaky
            | VerdictKind::EnvError
            | VerdictKind::Inconclusive => KnownGoodResult::Failed(KnownGoodFailure {
                image: name,
                cause: made.cause,
                summary: made.summary,
            }),
        })
    }

    /// Tells whether the checks of the host and of an emulated board pass.
    async fn checks_pass(&mut self) -> bool {
        let mut host = self.environment.lab.host_checks(self.place());
        let mut reports = examine(&mut host, CHECK).await;
        let place = Arc::clone(&self.spec.place);
        let Ok(mut bound) = self.bind(&place) else { return false };
        reports.extend(examine(&mut bound.protocols.health, CHECK).await);
        bound.end().await.is_ok() && reports.iter().all(|report| report.ok)
    }

    /// Returns the known-good image of the place, if it has one.
    async fn known_good(&self) -> Result<Option<KnownGoodImage>, StoreError> {
        if let Some(canary) = &self.spec.canary {
            let Ok(read) = images::read_one(&canary.image, &self.spec.profile) else {
                let path = canary.image.display();
                let text = format!("the canary {path} of place {} cannot be read", self.place());
                self.events.emit(RunEvent::Note { text });
                return self.shipped().await;
            };
            let plan = declared_plan(canary.until.clone(), canary.timeout);
            let name = format!("canary.{}", read.image.format.extension());
            return self.laid_out(ImageOrigin::Declared, plan, read, &name).await.map(Some);
        }
        if let Some(shipped) = self.shipped().await? {
            return Ok(Some(shipped));
        }
        let places = self.environment.places.filter(|_| self.spec.place.is_emulated());
        let known = places.and_then(|kept| kept.known_good(self.place(), &self.spec.profile.id));
        let Some((known, bytes)) = known else { return Ok(None) };
        let name = format!("known-good.{}", known.image.extension());
        let Some(read) = images::of_bytes(&name, bytes, &self.spec.profile) else {
            return Ok(None);
        };
        self.laid_out(ImageOrigin::Kept, canary_plan(&known), read, &name).await.map(Some)
    }

    /// Returns Jig's own image for the board as a file, if there is one. The flash of a real board
    /// is left alone.
    fn shipped_image(&self) -> Option<Vec<u8>> {
        if !self.spec.place.is_emulated() {
            return None;
        }
        known_good::image(&self.spec.profile)
    }

    /// Returns Jig's own image for the board, if there is one.
    async fn shipped(&self) -> Result<Option<KnownGoodImage>, StoreError> {
        const NAME: &str = "jig-known-good.elf";
        let image = self.shipped_image();
        let Some(read) = image.and_then(|elf| images::of_bytes(NAME, elf, &self.spec.profile))
        else {
            return Ok(None);
        };
        let line = Pattern::new(&format!("^{}", known_good::LINE)).ok();
        let plan = default_plan(true, RunWaits::new(line, SHIPPED));
        self.laid_out(ImageOrigin::Shipped, plan, read, NAME).await.map(Some)
    }

    /// Writes an image into the run, where the place takes it from.
    async fn laid_out(
        &self,
        origin: ImageOrigin,
        plan: Plan,
        read: ReadImage,
        name: &str,
    ) -> Result<KnownGoodImage, StoreError> {
        let path = self.live.dir().artefact_path(name);
        let write = || std::fs::write(&path, &read.bytes);
        retried(|| write().map_err(|error| StoreError::writing(&path, error))).await?;
        Ok(KnownGoodImage { origin, plan, image: Image { path, ..read.image } })
    }

    /// Notes how a test of an image ended. One that passes several times in a row becomes the
    /// known-good image of a place whose board has none; one that fails never does.
    pub(super) async fn remember(
        &self,
        plan: &Plan,
        images: &Images,
        kind: VerdictKind,
        took_ms: u64,
    ) {
        let Some(places) = self.environment.places else { return };
        let (Some(until), [image]) = (repeatable(plan), &images.values().collect::<Vec<_>>()[..])
        else {
            return;
        };
        let Some(format) = KnownFormat::of(image.format) else { return };
        if !self.spec.place.is_emulated() || self.shipped_image().is_some() {
            return;
        }
        let board = &self.spec.profile.id;
        let noted = match kind {
            VerdictKind::Pass if u128::from(took_ms) <= LONGEST.as_millis() => {
                let until = until.map(|pattern| pattern.as_str().to_owned());
                let read = || std::fs::read(&image.path);
                let passed = Passed { board, format, sha256: &image.sha256, until, took_ms };
                places.note_pass(self.place(), &passed, Timestamp::now(), read)
            }
            VerdictKind::Fail | VerdictKind::Flaky | VerdictKind::Inconclusive => {
                let note = || places.note_failure(self.place(), board, &image.sha256);
                once_free(self.place(), note).await
            }
            // The rig failed, or the run was cancelled: neither says anything about the image.
            VerdictKind::Pass | VerdictKind::EnvError | VerdictKind::Cancelled => Ok(()),
        };
        if let Err(error) = noted {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not noted");
        }
    }

    /// Adds to the doubts about the kept known-good image; `None` clears them.
    pub(super) async fn doubt(&self, more: Option<u32>) {
        let Some(places) = self.environment.places.filter(|_| self.spec.canary.is_none()) else {
            return;
        };
        let noted = once_free(self.place(), || places.doubt_known_good(self.place(), more)).await;
        if let Err(error) = noted {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not noted");
        }
    }
}

/// Makes a note on a known-good image, as soon as no other process writes.
async fn once_free(
    place: &PlaceName,
    note: impl Fn() -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let deadline = Instant::now() + BUSY;
    while !note()? {
        if Instant::now() >= deadline {
            tracing::warn!(%place, "a failure is not noted: another process keeps the notes");
            break;
        }
        sleep(MOMENT).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jig_model::BoardId;

    use crate::attempt::fake::{parse, plan};
    use crate::store::Places;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_noted_as_soon_as_no_other_process_writes() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let (place, board): (PlaceName, BoardId) = ("bench".parse().unwrap(), "b".parse().unwrap());
        let candidates = places.root().join("bench.known-good.candidates.json");
        let lock = places.lock_known_good(&place).unwrap().unwrap();
        let released = async {
            sleep(BUSY / 2).await;
            assert!(!candidates.exists());
            drop(lock);
        };
        let note = |image: &'static str| {
            let (places, place, board) = (&places, &place, &board);
            move || places.note_failure(place, board, image)
        };
        let (noted, ()) = tokio::join!(once_free(&place, note("aa")), released);
        noted.unwrap();
        assert!(candidates.exists());
        // A process that never ends its writing ends no run.
        let _lock = places.lock_known_good(&place).unwrap().unwrap();
        once_free(&place, note("bb")).await.unwrap();
    }

    #[test]
    fn only_what_the_default_plan_repeats_becomes_a_canary() {
        let wait = Duration::from_secs(3);
        let built_in = default_plan(true, RunWaits::new(None, wait));
        assert_eq!(repeatable(&built_in), Some(None));
        let until = Pattern::new("ready").unwrap();
        let built_in = default_plan(true, RunWaits::new(Some(until.clone()), wait));
        assert_eq!(repeatable(&built_in), Some(Some(until)));
        let no_image = default_plan(false, RunWaits::new(None, wait));
        assert_eq!(repeatable(&no_image), None);
        let good = "{ deploy = true }, { power = 'cycle' }";
        let written = |actions: &str| repeatable(&parse(&plan(actions)));
        assert_eq!(written(&format!("{good}, {{ wait_for_results = true }}")), Some(None));
        assert!(written(&format!("{good}, {{ expect = 'x' }}")).unwrap().is_some());
        for other in [
            "{ power = 'cycle' }, { wait_for_results = true }".to_owned(),
            format!("{good}, {{ send = 'x' }}, {{ wait_for_results = true }}"),
            format!("{good}, {{ expect = 'x', console = 'uart1' }}"),
            format!("{good}, {{ sleep = '1s' }}"),
        ] {
            assert_eq!(written(&other), None, "{other}");
        }
    }
}
