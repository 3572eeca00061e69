//! A run being made: attempts, known-good images and recoveries, in the order that
//! [`RetryPolicy`] decides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jig_model::image::Image;
use jig_model::plan::Plan;
use jig_model::profile::DeployMethod;
use jig_model::protocol::ProcessLedger;
use jig_model::recovery::Rung;
use jig_model::{Cause, Purpose, RunEvent, Verdict, VerdictKind};

use super::dut_recovery::DutRecovery;
use super::images::{self, ReadImage};
use super::lab::{DutSpec, LabServices};
use super::ledger::{RunClock, RunEvents, RunLedger};
use super::recorder::HealthRecorder;
use super::recover::rungs;
use super::retry_policy::{Control, Next, RetryPolicy, Step};
use super::run::{Observer, RunEnvironment};
use super::storage_retry::retried;
use crate::attempt::{AttemptEnd, AttemptRequest, EventSink, RunPatterns, perform};
use crate::console::Syncing;
use crate::recovery::{
    LONGEST, LadderOutcome, Means, canary_plan, declared_plan, deploy_plan, repeatable, run_ladder,
};
use crate::store::{
    AttemptRecord, BootRecord, KnownFormat, LiveRun, Passed, RunRecord, StoreError,
};
use crate::workflow::CancelToken;

/// Images by the name the plan gives them; `None` is the command line's.
pub(super) type Images = BTreeMap<Option<PathBuf>, Image>;

/// What an attempt amounts to.
pub(super) struct Attempted {
    pub(super) verdict: Verdict,
    /// If its transport is to be believed, where the verdict says that it is not.
    believed: Option<Verdict>,
}

/// A run being made.
pub(super) struct RunDriver<'a> {
    pub(super) environment: &'a RunEnvironment<'a>,
    /// Where it is made; another place after a fail-over.
    pub(super) dut_spec: DutSpec<'a>,
    pub(super) plan: &'a Plan,
    pub(super) images: &'a Images,
    pub(super) live: &'a mut LiveRun,
    pub(super) patterns: Arc<RunPatterns>,
    pub(super) events: Arc<RunEvents>,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) cancel: CancelToken,
    /// Decides what is done after each attempt.
    pub(super) retries: RetryPolicy,
    /// Whether the known-good image was the last that ran.
    pub(super) displaced: bool,
    /// Attempts so far, canaries and bindings for recoveries included: logs are numbered by it.
    pub(super) number: u32,
    /// Logs that are whole but may not be durable yet.
    pub(super) syncing: Vec<Syncing>,
    /// Where the health of the place is noted.
    pub(super) recorder: HealthRecorder<'a>,
}

impl RunDriver<'_> {
    /// Makes the test's next attempt that counts; returns what it amounts to.
    pub(super) async fn run_test(&mut self) -> Result<Verdict, StoreError> {
        self.retries.begin();
        let mut step = self.test().await?;
        loop {
            let Step { verdict, next } = step;
            self.amend(&verdict, next == Next::Again).await?;
            step = match next {
                Next::Done => return Ok(verdict),
                Next::Again => self.test().await?,
                Next::Recover => {
                    let outcome = self.recovery(verdict.cause).await;
                    self.retries.recovered(verdict, &outcome)
                }
                Next::Control => {
                    let control = self.control().await?;
                    if self.retries.contradicts_itself(&control) {
                        self.doubt(Some(u32::MAX));
                    }
                    let step = self.retries.controlled(verdict, control);
                    if step.next == Next::Again {
                        let text = "made again: what was not seen may have been lost on the way";
                        self.events.emit(RunEvent::Note { text: text.to_owned() });
                    }
                    step
                }
            };
        }
    }

    /// Makes an attempt of the test.
    async fn test(&mut self) -> Result<Step, StoreError> {
        let Attempted { verdict, believed } =
            self.attempt(Purpose::Test, self.plan, self.images).await?;
        Ok(self.retries.attempted(verdict, believed))
    }

    /// Recovers the rig.
    async fn recovery(&mut self, cause: Cause) -> LadderOutcome {
        // Nothing can be proven where nothing can be written. If that stays so, the proof says
        // it; and what the spoiled attempt could not write counts for nothing.
        drop(retried(|| self.live.update(|_| {})).await);
        for log in std::mem::take(&mut self.syncing) {
            drop(log.done().await);
        }
        let (rungs, timeout) =
            rungs(&self.dut_spec, self.environment.spare, self.environment.lab, None);
        self.run_ladder(cause, &rungs, timeout).await
    }

    pub(super) async fn run_ladder(
        &mut self,
        cause: Cause,
        rungs: &[Rung],
        timeout: Duration,
    ) -> LadderOutcome {
        let cancel = self.cancel.clone();
        let place = self.dut_spec.place.name.clone();
        let mut recovery = DutRecovery::new(self, false);
        let outcome = run_ladder(cause, rungs, timeout, &mut recovery, &cancel).await;
        // A place that the run had to leave was not recovered.
        let recovered_by = outcome.recovered_by.filter(|_| self.dut_spec.place.name == place);
        self.recorder.ladder_ended(
            &place,
            cause,
            &LadderOutcome { recovered_by, ..outcome.clone() },
        );
        outcome
    }

    /// Runs the known-good image on the same place, in the same way.
    pub(super) async fn control(&mut self) -> Result<Control, StoreError> {
        let Some((plan, image)) = self.canary().await? else { return Ok(Control::None) };
        let name = image.name.clone();
        let images = BTreeMap::from([(None, image)]);
        let made = self.attempt(Purpose::Canary, &plan, &images).await?.verdict;
        if made.kind == VerdictKind::Pass {
            self.retries.vouch();
        }
        if made.kind != VerdictKind::Cancelled {
            let (passed, words) =
                (made.kind == VerdictKind::Pass, format!("{name}: {}", made.cause));
            self.recorder.canary(&self.dut_spec.place.name, passed, &words);
        }
        Ok(match made.kind {
            VerdictKind::Pass => Control::Passed(format!(
                "the known-good image {name} passed on this place right after"
            )),
            VerdictKind::Cancelled => Control::Cancelled,
            VerdictKind::Fail
            | VerdictKind::Flaky
            | VerdictKind::EnvError
            | VerdictKind::Inconclusive => Control::Failed(format!(
                "the known-good image {name} does not work on this place either: {}: {}",
                made.cause, made.summary
            )),
        })
    }

    /// Returns the known-good image and how to run it. A real board gets only an image that
    /// its place declares: what a run leaves in its flash is what its user put there.
    async fn canary(&self) -> Result<Option<(Plan, Image)>, StoreError> {
        let (plan, read, name) = if let Some(canary) = &self.dut_spec.canary {
            let Ok(read) = images::read_one(&canary.image, &self.dut_spec.profile) else {
                let path = canary.image.display();
                let text = format!(
                    "the canary {path} of place {} cannot be read",
                    self.dut_spec.place.name
                );
                self.events.emit(RunEvent::Note { text });
                return Ok(None);
            };
            let plan = declared_plan(canary.until.clone(), canary.timeout);
            let name = format!("canary.{}", read.image.format.extension());
            (plan, read, name)
        } else {
            let Some(places) =
                self.environment.places.filter(|_| self.dut_spec.place.is_emulated())
            else {
                return Ok(None);
            };
            let known = places.known_good(&self.dut_spec.place.name, &self.dut_spec.profile.id);
            let Some((known, bytes)) = known else { return Ok(None) };
            let name = format!("known-good.{}", known.image.extension());
            let Some(read) = images::of_bytes(&name, bytes, &self.dut_spec.profile) else {
                return Ok(None);
            };
            (canary_plan(&known), read, name)
        };
        let path = self.live.dir().artefact_path(&name);
        let write = || std::fs::write(&path, &read.bytes);
        retried(|| write().map_err(|error| StoreError::writing(&path, error))).await?;
        let ReadImage { image, .. } = read;
        Ok(Some((plan, Image { path, ..image })))
    }

    /// Makes one attempt and records it.
    pub(super) async fn attempt(
        &mut self,
        purpose: Purpose,
        plan: &Plan,
        images: &Images,
    ) -> Result<Attempted, StoreError> {
        self.number += 1;
        self.displaced = purpose == Purpose::Canary;
        let attempt = self.number;
        // What could not be written between attempts is no attempt's.
        drop(self.events.lost());
        self.events.emit(RunEvent::AttemptStarted { attempt, purpose });
        let began = Instant::now();
        let evidence = self.evidence();
        let ledger = self.ledger();
        let host = (self.environment.host)(Arc::clone(&ledger));
        let observer = Arc::clone(&self.observer);
        let outcome = perform(AttemptRequest {
            attempt,
            profile: Arc::clone(&self.dut_spec.profile),
            patterns: Arc::clone(&self.patterns),
            place: &self.dut_spec.place,
            plan,
            images,
            factory: self.dut_spec.factory,
            host: host.as_ref(),
            dir: self.live.dir(),
            evidence: &evidence,
            clock: Arc::new(self.clock()),
            events: Arc::clone(&self.events) as Arc<dyn EventSink>,
            image_sets: self.environment.image_sets,
            ledger,
            cancel: self.cancel.clone(),
            // One that is garbled again has its whole time.
            again: purpose.is_test() && self.retries.makes_garbled_again(),
            opened: &|console, handle| {
                if purpose.is_test() {
                    observer.console(console, handle);
                }
            },
        })
        .await;
        let mut end = outcome.unwrap_or_else(|error| AttemptEnd {
            verdict: Verdict::of(error.cause(), jig_model::chain(&error)),
            believed: None,
            workflow: None,
            boots: Vec::new(),
            consoles: BTreeMap::new(),
            syncing: Vec::new(),
        });
        if let Some(error) = self.events.lost() {
            let notes = std::mem::take(&mut end.verdict.notes);
            end.verdict =
                Verdict { notes, ..Verdict::of(Cause::StorageFailed, jig_model::chain(&error)) };
        }
        let believed = end.believed.take();
        let verdict = end.verdict.clone();
        self.events.emit(RunEvent::AttemptEnded { attempt, verdict: verdict.clone() });
        let boots = (1..).zip(end.boots).map(|(boot, offset)| BootRecord { boot, offset });
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let made = AttemptRecord {
            attempt,
            purpose,
            verdict: end.verdict,
            replaced: false,
            duration_ms,
            workflow: serde_json::to_value(&end.workflow).unwrap_or_default(),
            boots: boots.collect(),
            consoles: end.consoles.into_keys().collect(),
        };
        self.note(|record| record.attempts.push(made)).await?;
        self.syncing.extend(end.syncing);
        if purpose.is_test() && verdict.kind == VerdictKind::Pass {
            self.remember(duration_ms);
        }
        Ok(Attempted { verdict, believed })
    }

    /// Puts the run's own image back on a board that keeps what was put on it last; says what
    /// became of it if the known-good image had taken its place.
    pub(super) async fn put_back(&mut self) -> Result<Option<String>, StoreError> {
        let deploy = self.dut_spec.profile.deploy_at(&self.dut_spec.place);
        let keeps = deploy.is_some_and(|deploy| match deploy.method() {
            DeployMethod::Probe | DeployMethod::Command => true,
            DeployMethod::EmulatorLoader | DeployMethod::ImageSet => false,
        });
        let Some(plan) = deploy_plan(self.plan).filter(|_| keeps && self.displaced) else {
            return Ok(None);
        };
        let made = self.attempt(Purpose::Restore, &plan, self.images).await?.verdict;
        Ok(Some(match made.kind {
            VerdictKind::Pass => "the test's own image was put back on the board".to_owned(),
            _ => format!(
                "the known-good image is still on the board: {}: {}",
                made.cause, made.summary
            ),
        }))
    }

    /// Keeps what has passed as the place's known-good image, if it can be one.
    fn remember(&self, took_ms: u64) {
        let Some(places) = self.environment.places else { return };
        let (Some(until), [image]) =
            (repeatable(self.plan), &self.images.values().collect::<Vec<_>>()[..])
        else {
            return;
        };
        let Some(format) = KnownFormat::of(image.format) else { return };
        if u128::from(took_ms) > LONGEST.as_millis() {
            return;
        }
        let kept = std::fs::read(&image.path).map_err(|e| StoreError::reading(&image.path, e));
        let kept = kept.and_then(|bytes| {
            let until = until.map(|pattern| pattern.as_str().to_owned());
            let board = &self.dut_spec.profile.id;
            let passed = Passed { board, format, bytes: &bytes, until, took_ms };
            places.keep_known_good(&self.dut_spec.place.name, &passed, Timestamp::now())
        });
        if let Err(error) = kept {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not kept");
        }
    }

    /// Notes by how many doubts more the known-good image is believed less; nothing if it is
    /// believed again.
    pub(super) fn doubt(&self, more: Option<u32>) {
        let Some(places) = self.environment.places.filter(|_| self.dut_spec.canary.is_none())
        else {
            return;
        };
        if let Err(error) = places.doubt_known_good(&self.dut_spec.place.name, more) {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not noted");
        }
    }

    /// Changes what the last test attempt amounts to, now that more is known.
    pub(super) async fn amend(
        &mut self,
        verdict: &Verdict,
        replaced: bool,
    ) -> Result<(), StoreError> {
        let of_the_test = |made: &AttemptRecord| made.purpose.is_test();
        let Some(last) = self.live.record().attempts.iter().rposition(of_the_test) else {
            return Ok(());
        };
        let known = &self.live.record().attempts[last];
        if known.verdict == *verdict && known.replaced == replaced {
            return Ok(());
        }
        self.note(|record| {
            if let Some(last) = record.attempts.get_mut(last) {
                last.verdict = verdict.clone();
                last.replaced = replaced;
            }
        })
        .await
    }

    /// Changes the record, and waits for the host if it cannot be written.
    async fn note(&mut self, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        match self.live.note(change) {
            // The change is made; only the file lacks it.
            Err(error) if error.may_pass() => retried(|| self.live.update(|_| {})).await,
            done => done,
        }
    }

    pub(super) fn ledger(&self) -> Arc<dyn ProcessLedger> {
        Arc::new(RunLedger::new(self.live.children()))
    }

    pub(super) fn clock(&self) -> RunClock {
        let (clock, began) = self.live.clock();
        RunClock { clock, began }
    }

    /// Returns the folder for what drivers leave as evidence now.
    pub(super) fn evidence(&self) -> PathBuf {
        let evidence = self.live.dir().artefact_path(&format!("attempt-{}", self.number));
        // Without the folder the driver fails to write there, and says so.
        let _ = std::fs::create_dir_all(&evidence);
        evidence
    }
}

/// Says what a place can be recovered with.
pub(super) fn means(dut_spec: &DutSpec<'_>, spare: &[DutSpec<'_>], lab: &dyn LabServices) -> Means {
    let emulated = dut_spec.place.is_emulated();
    let spare = spare.iter().filter(|spare| spare.place.name != dut_spec.place.name);
    Means {
        emulated,
        probe: dut_spec.place.has_probe(),
        resets: dut_spec.place.resets(),
        outlet: dut_spec.outlet,
        known_good: emulated || dut_spec.canary.is_some(),
        hub: lab.hub_timeout(&dut_spec.place.name),
        equivalents: spare.map(|spare| spare.place.name.clone()).collect(),
    }
}
