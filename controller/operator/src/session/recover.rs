//! Recovery: what the driver does about failed steps and plans, and what it looks up before it overwrites.
//!
//! # Design
//! *Retry, degrade, roll back, else say what blocks.* A call that only reads was retried where it was made. A
//! step whose service does not answer goes on by another tool, once. A step that may be repeated is repeated by
//! the class of its failure. Files that a failed call has left half done are put back. What is left is the
//! business of a person, and the summary names the commands.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::drive::{Driven, Driver, LOOK};
use super::undo::{image_of, listed, runs_of};
use super::work;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::{BlockReason, ChangedFiles, SessionFact, SessionWork, WorkOutcome};
use crate::machine::{OperatorEvent, PlannerEvent, PlannerState};
use crate::plan::StepStatus;
use crate::planner::PlanFeedback;
use crate::tools::ToolCall;

impl Driver<'_> {
    pub(super) async fn recover(&mut self) -> Driven<()> {
        let mut outcome = work::outcome_of(SessionWork::Recover);
        let iterating = self.session.planner == PlannerState::Iterating;
        let gives_up =
            if iterating { PlannerEvent::IterationsUsedUp } else { PlannerEvent::StepGivenUp };
        let blocked = |mut outcome: WorkOutcome, planner: PlannerState, error: OperatorError| {
            // Where the time ran out between two steps, no step has ended that could be given up.
            let takes = crate::machine::planner_next(planner, gives_up).is_ok();
            outcome.planner = vec![if takes { gives_up } else { PlannerEvent::Exception }];
            outcome.events = vec![OperatorEvent::Blocked { error }];
            outcome
        };
        let planner = self.session.planner;
        if let Some(BlockReason::Failed { error }) = self.session.blocked.clone() {
            return self.did(blocked(outcome, planner, error));
        }
        if iterating {
            let error = self.session.unverified.clone().unwrap_or_else(|| {
                OperatorError::new(OperatorCode::Model, "the evaluation left no reason")
            });
            let refined = self.refined(&error).await;
            if self.session.by_model() && matches!(refined, Ok(None)) {
                return self.refine_by_model(error).await;
            }
            outcome = match refined {
                Ok(Some(mut refined)) => {
                    refined.work = SessionWork::Recover;
                    refined.planner = vec![PlannerEvent::PlanRefined];
                    if refined.events == [OperatorEvent::PlanReady] {
                        refined.events = vec![OperatorEvent::Repairable];
                    }
                    refined
                }
                Ok(None) => blocked(outcome, planner, error),
                Err(error) => blocked(outcome, planner, error),
            };
            return self.did(outcome);
        }
        let tools = self.binding.door.list();
        match work::step_recovery(&self.session, &tools, self.now_ms()) {
            work::StepRecovery::Block(error) if self.may_adjust() => {
                self.adjust_by_model(error).await
            }
            work::StepRecovery::Block(error) => {
                for &step in self.session.failures.keys() {
                    let status = StepStatus::Blocked;
                    outcome.facts.push(SessionFact::StepStands { step, status });
                }
                outcome.facts.extend(self.rolled_back().await);
                self.did(blocked(outcome, planner, error))
            }
            work::StepRecovery::Confirm => {
                let dangers = self.session.dangers.clone();
                let (event, facts) = work::plan_follows(&self.session, &dangers, self.now_ms());
                self.reopen(&mut outcome);
                outcome.facts.extend(facts);
                outcome.events = vec![event];
                outcome.planner = vec![PlannerEvent::StepAdjusted];
                self.did(outcome)
            }
            work::StepRecovery::Again(pause, degraded) => {
                if self.pause(pause).await? {
                    return Ok(());
                }
                self.reopen(&mut outcome);
                outcome.facts.extend(degraded);
                outcome.events = vec![OperatorEvent::Repairable];
                outcome.planner = vec![PlannerEvent::StepAdjusted];
                self.did(outcome)
            }
        }
    }

    /// Puts back what failed calls have left half done in files, the newest change first.
    async fn rolled_back(&self) -> Vec<SessionFact> {
        let failed = |change: &ChangedFiles| {
            let mut calls = self.session.calls.iter();
            calls.any(|record| record.number == change.call && record.result.is_err())
        };
        let mut facts = Vec::new();
        for (change, _) in self.session.changes.iter().rev().filter(|(_, undone)| !undone) {
            if !failed(change) || change.unsure {
                // What came before it lies below, and is no more as it was left.
                break;
            }
            let (call, files) = (change.call, change.files.clone());
            match self.binding.undo.undo(call).await {
                Ok(()) => facts.push(SessionFact::RolledBack { call, files }),
                Err(error) => {
                    let text =
                        format!("what call {call} had changed could not be put back: {error}");
                    facts.push(SessionFact::Remark { text });
                    break;
                }
            }
        }
        facts
    }

    /// Lets failed steps be repeated.
    fn reopen(&self, outcome: &mut WorkOutcome) {
        for &step in self.session.failures.keys() {
            let status = StepStatus::Pending;
            outcome.facts.push(SessionFact::StepStands { step, status });
        }
    }

    /// Asks the planner for a better plan, while an iteration is left.
    async fn refined(&self, error: &OperatorError) -> Result<Option<WorkOutcome>, OperatorError> {
        let Some(plan) = &self.session.plan else { return Ok(None) };
        if self.session.iteration >= self.session.charter.limits.iterations {
            return Ok(None);
        }
        let rig_failed = work::rig_failed(&self.session);
        let feedback = PlanFeedback { plan, error, rig_failed: &rig_failed };
        match self.binding.planner.refine(feedback).await? {
            Some(draft) => self.planned(self.lowered(&draft)?).map(Some),
            None => Ok(None),
        }
    }

    /// Waits; tells whether the session was cancelled or its time ran out meanwhile.
    async fn pause(&mut self, pause: Duration) -> Driven<bool> {
        let end = Instant::now() + pause;
        loop {
            self.catch_up()?;
            if self.session.cancel.is_some() {
                return Ok(true);
            }
            if self.session.time_left_ms(self.now_ms()) == 0 {
                let outcome = work::out_of_time(&self.session, SessionWork::Recover);
                self.did(outcome)?;
                return Ok(true);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            sleep(left.min(LOOK)).await;
        }
    }

    /// Looks up which images places have, before another one replaces them. What cannot be found out is no
    /// reason not to go on.
    pub(super) async fn look_up_images(&mut self, places: BTreeSet<String>) -> Driven<()> {
        let mut outcome = work::outcome_of(SessionWork::Wave);
        for place in places {
            let mut image = None;
            self.read(runs_of(&place)).await?.ok();
            let runs = self.session.last_read("runs_list").map(listed).unwrap_or_default();
            for run in runs {
                let asked = ToolCall::new("runs_show", json!({ "run": run }));
                if self.session.cancel.is_some() || image.is_some() {
                    break;
                }
                if self.read(asked).await?.is_ok() {
                    image = self.session.last_read("runs_show").and_then(image_of);
                }
            }
            outcome.facts.push(SessionFact::EarlierImage { place, image });
        }
        if self.session.cancel.is_some() {
            return Ok(());
        }
        self.did(outcome)
    }
}
