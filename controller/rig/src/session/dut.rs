//! One board bound to its hardware during a run: attempts on it, bindings without a plan, and
//! what is recorded of both.
//!
//! Refuses to decide what comes next: the run driver, the steps of the ladder and preflight do,
//! and all of them act on a [`Dut`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use jig_model::image::Image;
use jig_model::plan::Plan;
use jig_model::protocol::ProcessLedger;
use jig_model::rig_file::Place;
use jig_model::{Cause, PlaceName, Purpose, RunEvent, Verdict};

use super::environment::{DutSpec, Observer, RunEnvironment};
use super::events::{RunClock, RunEvents};
use super::recorder::HealthRecorder;
use super::storage_retry::retried;
use crate::attempt::{
    AttemptEnd, AttemptError, AttemptRequest, Believed, BindRequest, Bound, RunEventSink,
    RunPatterns, perform,
};
use crate::console::Syncing;
use crate::health::PlaceHealth;
use crate::store::{AttemptRecord, BootRecord, LiveRun, RunRecord, StoreError};
use crate::workflow::CancelToken;

/// Images by the name the plan gives them; `None` is the command line's.
pub(super) type Images = BTreeMap<Option<PathBuf>, Image>;

/// What one attempt runs, and why.
pub(super) struct PlannedAttempt<'t> {
    pub(super) purpose: Purpose,
    pub(super) plan: &'t Plan,
    pub(super) images: &'t Images,
    /// Whether it is attempted again if garbage on a console spoils it; its waits then end at the
    /// garbage.
    pub(super) again: bool,
}

/// Result of an attempt.
pub(super) struct Attempted {
    pub(super) verdict: Verdict,
    /// Whether the target has printed all that it prints, in no known format.
    pub(super) printed_out: bool,
    /// The verdict if its transport is trusted, where `verdict` says that it is not.
    pub(super) believed: Option<Believed>,
    /// The failure of the target that it showed, where its verdict blames the rig.
    pub(super) shown: Option<Verdict>,
    pub(super) duration_ms: u64,
}

/// A board during a run.
pub(super) struct Dut<'a> {
    pub(super) environment: &'a RunEnvironment<'a>,
    /// The place it runs on; another one after a fail-over.
    pub(super) spec: DutSpec<'a>,
    pub(super) live: LiveRun,
    pub(super) events: Arc<RunEvents>,
    pub(super) cancel: CancelToken,
    /// Records the health of the place.
    pub(super) recorder: HealthRecorder<'a>,
    /// Logs that are complete but may not be durable yet.
    pub(super) syncing: Vec<Syncing>,
    /// Whether the known-good image was the last that ran.
    pub(super) displaced: bool,
    /// Of the board's profile alone.
    patterns: Arc<RunPatterns>,
    /// With what the plan of the test rejects, which says nothing of other images.
    test_patterns: Option<Arc<RunPatterns>>,
    /// Number of attempts so far, with those of known-good images and bindings without a plan.
    /// Names the logs.
    number: u32,
    /// Which repetition of the test is made, where there are several.
    pub(super) repetition: Option<u32>,
}

impl<'a> Dut<'a> {
    /// Takes a board for a run that has been recorded. Touches no hardware yet.
    pub(super) fn new(
        environment: &'a RunEnvironment<'a>,
        spec: DutSpec<'a>,
        live: LiveRun,
        observer: Arc<dyn Observer>,
        cancel: CancelToken,
    ) -> Self {
        Self {
            environment,
            patterns: Arc::new(RunPatterns::new(Arc::clone(&spec.profile), Vec::new())),
            test_patterns: None,
            spec,
            events: RunEvents::new(&live, observer),
            recorder: HealthRecorder::new(environment.health, live.id().clone()),
            live,
            cancel,
            syncing: Vec::new(),
            displaced: false,
            number: 0,
            repetition: None,
        }
    }

    /// Returns the name of the place.
    pub(super) fn place(&self) -> &PlaceName {
        &self.spec.place.name
    }

    /// Returns what is known of the health of the place.
    pub(super) fn health(&self) -> Option<PlaceHealth> {
        self.recorder.health(self.place())
    }

    /// Binds a place under a number of its own, without a plan.
    pub(super) fn bind(&mut self, place: &Arc<Place>) -> Result<Bound, AttemptError> {
        self.number += 1;
        Bound::bind(BindRequest {
            number: self.number,
            profile: &self.spec.profile,
            place,
            factory: self.spec.factory,
            dir: self.live.dir(),
            evidence: &self.evidence(),
            clock: Arc::new(self.clock()),
            events: Arc::clone(&self.events) as Arc<dyn RunEventSink>,
            image_sets: self.environment.image_sets,
            ledger: self.ledger(),
        })
    }

    fn patterns_of(&mut self, purpose: Purpose, plan: &Plan) -> Arc<RunPatterns> {
        if plan.reject.is_empty() || !purpose.is_test() {
            return Arc::clone(&self.patterns);
        }
        let profile = &self.spec.profile;
        let made = || Arc::new(RunPatterns::new(Arc::clone(profile), plan.reject.clone()));
        Arc::clone(self.test_patterns.get_or_insert_with(made))
    }

    /// Makes one attempt and records it.
    pub(super) async fn attempt(
        &mut self,
        trial: PlannedAttempt<'_>,
    ) -> Result<Attempted, StoreError> {
        let PlannedAttempt { purpose, plan, images, again } = trial;
        self.number += 1;
        self.displaced = purpose == Purpose::Canary;
        let attempt = self.number;
        // An event that could not be written between two attempts belongs to neither.
        drop(self.events.take_unwritten());
        let repetition = self.repetition;
        self.events.emit(RunEvent::AttemptStarted { attempt, purpose, repetition });
        let began = Instant::now();
        let evidence = self.evidence();
        let ledger = self.ledger();
        let host = (self.environment.host)(Arc::clone(&ledger));
        let observer = Arc::clone(&self.events.observer);
        let outcome = perform(AttemptRequest {
            attempt,
            profile: Arc::clone(&self.spec.profile),
            patterns: self.patterns_of(purpose, plan),
            place: &self.spec.place,
            plan,
            images,
            factory: self.spec.factory,
            host: host.as_ref(),
            dir: self.live.dir(),
            evidence: &evidence,
            clock: Arc::new(self.clock()),
            events: Arc::clone(&self.events) as Arc<dyn RunEventSink>,
            image_sets: self.environment.image_sets,
            ledger,
            cancel: self.cancel.clone(),
            again,
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
            shown: None,
            printed_out: false,
            workflow: None,
            boots: Vec::new(),
            consoles: BTreeMap::new(),
            syncing: Vec::new(),
        });
        if let Some(error) = self.events.take_unwritten() {
            let notes = std::mem::take(&mut end.verdict.notes);
            end.verdict =
                Verdict { notes, ..Verdict::of(Cause::StorageFailed, jig_model::chain(&error)) };
        }
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
            consoles: std::mem::take(&mut end.consoles).into_keys().collect(),
        };
        self.note(|record| record.attempts.push(made)).await?;
        self.syncing.append(&mut end.syncing);
        let AttemptEnd { printed_out, believed, shown, .. } = end;
        Ok(Attempted { verdict, printed_out, believed, shown, duration_ms })
    }

    /// Replaces the verdict of the last test attempt, now that more is known.
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

    /// Waits for a while until the record can be written.
    pub(super) async fn writable(&mut self) {
        drop(retried(|| self.live.update(|_| {})).await);
    }

    /// Tells whether the folder of the run was deleted. A part of it may have been made anew since, but
    /// not its lock.
    pub(super) fn folder_is_gone(&self) -> bool {
        self.live.dir().lock_path().symlink_metadata().is_err()
    }

    /// Changes the record, and waits for the host if it cannot be written.
    async fn note(&mut self, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        match self.live.note(change) {
            // The change is made; only the file lacks it.
            Err(error) if error.may_pass() => retried(|| self.live.update(|_| {})).await,
            // The folder was deleted: at its end the run is recorded elsewhere.
            Err(error) if !self.live.dir().record_path().exists() => {
                tracing::warn!(error = jig_model::chain(&error), "the run's folder is gone");
                Ok(())
            }
            done => done,
        }
    }

    fn ledger(&self) -> Arc<dyn ProcessLedger> {
        Arc::clone(self.live.children()) as Arc<dyn ProcessLedger>
    }

    fn clock(&self) -> RunClock {
        let (clock, began) = self.live.clock();
        RunClock { clock, began }
    }

    /// Returns the folder for what drivers leave as evidence now.
    fn evidence(&self) -> PathBuf {
        let evidence = self.live.dir().artefact_path(&format!("attempt-{}", self.number));
        // Without the folder the driver fails to write there, and says so.
        let _ = std::fs::create_dir_all(&evidence);
        evidence
    }
}
