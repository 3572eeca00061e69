//! The known-good image of a place: which image becomes it, and how it is run.
//!
//! # Design
//! An emulated place has the last quick image that passed there. A real place has only the one
//! that it declares, because the flash of a board belongs to its user. An image that fails after
//! every recovery, while every check passes, is no longer used.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use jig_model::image::Image;
use jig_model::pattern::Pattern;
use jig_model::plan::{ActionKind, Plan, PowerOp, default_plan};
use jig_model::{Purpose, RunEvent, VerdictKind};

use super::dut::{Dut, Images, PlannedAttempt};
use super::images::{self, ReadImage};
use super::step_outcome::KnownGoodFailure;
use super::storage_retry::retried;
use crate::attempt::RunEventSink as _;
use crate::store::{KnownFormat, KnownGood, Passed, StoreError};

/// Longest run whose image becomes the known-good image: each proof of the rig takes as long.
const LONGEST: Duration = Duration::from_secs(10);

/// Time-out of a known-good image, as a multiple of the time that it took when it passed: a busy
/// host is slower.
const TIMEOUT: u32 = 10;
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(60);

/// Says what a plan waits for, if it is one that [`default_plan`] repeats faithfully: it puts
/// the image of the command line on the board, powers it, and waits for a report or one text.
/// `Some(None)` is a report.
fn repeatable(plan: &Plan) -> Option<Option<Pattern>> {
    if plan.markers.is_some() {
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
        ActionKind::Expect { console: None, any, reject } if reject.is_empty() => {
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
    default_plan(true, until, timeout.clamp(LEAST, MOST))
}

/// Returns the plan that puts a plan's images on a board and does nothing else; none if it
/// has none to put.
pub(super) fn deploy_plan(plan: &Plan) -> Option<Plan> {
    let mut only = plan.clone();
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
    /// The run was cancelled.
    Cancelled,
}

impl Dut<'_> {
    /// Runs the known-good image on the same place, in the same way.
    pub(super) async fn control(&mut self) -> Result<KnownGoodResult, StoreError> {
        let Some((plan, image)) = self.canary().await? else { return Ok(KnownGoodResult::None) };
        let name = image.name.clone();
        let images = BTreeMap::from([(None, image)]);
        let trial =
            PlannedAttempt { purpose: Purpose::Canary, plan: &plan, images: &images, again: false };
        let made = self.attempt(trial).await?.verdict;
        if made.kind != VerdictKind::Cancelled {
            let (passed, words) =
                (made.kind == VerdictKind::Pass, format!("{name}: {}", made.cause));
            self.recorder.canary(self.place(), passed, &words);
        }
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

    /// Returns the known-good image and the plan that runs it. A real board gets only an image
    /// that its place declares, because its flash belongs to its user.
    async fn canary(&self) -> Result<Option<(Plan, Image)>, StoreError> {
        let (plan, read, name) = if let Some(canary) = &self.spec.canary {
            let Ok(read) = images::read_one(&canary.image, &self.spec.profile) else {
                let path = canary.image.display();
                let text = format!("the canary {path} of place {} cannot be read", self.place());
                self.events.emit(RunEvent::Note { text });
                return Ok(None);
            };
            let plan = declared_plan(canary.until.clone(), canary.timeout);
            let name = format!("canary.{}", read.image.format.extension());
            (plan, read, name)
        } else {
            let Some(places) = self.environment.places.filter(|_| self.spec.place.is_emulated())
            else {
                return Ok(None);
            };
            let known = places.known_good(self.place(), &self.spec.profile.id);
            let Some((known, bytes)) = known else { return Ok(None) };
            let name = format!("known-good.{}", known.image.extension());
            let Some(read) = images::of_bytes(&name, bytes, &self.spec.profile) else {
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

    /// Keeps the image of a passed test as the known-good image of the place, if it can be one.
    pub(super) fn remember(&self, plan: &Plan, images: &Images, took_ms: u64) {
        let Some(places) = self.environment.places else { return };
        let (Some(until), [image]) = (repeatable(plan), &images.values().collect::<Vec<_>>()[..])
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
            let board = &self.spec.profile.id;
            let passed = Passed { board, format, bytes: &bytes, until, took_ms };
            places.keep_known_good(self.place(), &passed, Timestamp::now())
        });
        if let Err(error) = kept {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not kept");
        }
    }

    /// Adds to the doubts about the kept known-good image; `None` clears them.
    pub(super) fn doubt(&self, more: Option<u32>) {
        let Some(places) = self.environment.places.filter(|_| self.spec.canary.is_none()) else {
            return;
        };
        if let Err(error) = places.doubt_known_good(self.place(), more) {
            tracing::warn!(error = jig_model::chain(&error), "known-good image not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::fake::{parse, plan};

    #[test]
    fn only_what_the_default_plan_repeats_becomes_a_canary() {
        let built_in = default_plan(true, None, Duration::from_secs(3));
        assert_eq!(repeatable(&built_in), Some(None));
        let until = Pattern::new("ready").unwrap();
        let built_in = default_plan(true, Some(until.clone()), Duration::from_secs(3));
        assert_eq!(repeatable(&built_in), Some(Some(until)));
        assert_eq!(repeatable(&default_plan(false, None, Duration::from_secs(3))), None);
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
