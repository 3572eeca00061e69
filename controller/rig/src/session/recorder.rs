//! Records in the health store what a run shows of its place.
//!
//! An error of the store is logged and never ends the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use jig_model::recovery::RecoveryStep;
use jig_model::{Cause, PlaceName, RunId, Verdict};

use super::events::RunEvents;
use super::run_ladder::LadderOutcome;
use crate::health::{HealthEvent, HealthStore, PlaceHealth};

/// Records health events of a run.
#[derive(Clone)]
pub(super) struct HealthRecorder<'a> {
    store: Option<&'a HealthStore>,
    run: RunId,
    /// Set after the first failed write, because each further one would delay the run as long.
    given_up: Arc<AtomicBool>,
}

impl<'a> HealthRecorder<'a> {
    pub(super) fn new(store: Option<&'a HealthStore>, run: RunId) -> Self {
        Self { store, run, given_up: Arc::default() }
    }

    /// Records an event; returns the health of the place now, if the store works.
    pub(super) fn note(&self, place: &PlaceName, event: &HealthEvent) -> Option<PlaceHealth> {
        let store = self.store.filter(|_| !self.given_up.load(Ordering::Relaxed))?;
        let noted = store.note(place, Timestamp::now(), event);
        noted
            .inspect_err(|error| {
                tracing::warn!(error = jig_model::chain(error), "health not noted");
                self.given_up.store(true, Ordering::Relaxed);
            })
            .ok()
    }

    /// Returns what is known of the health of a place; nothing if the store does not work.
    pub(super) fn health(&self, place: &PlaceName) -> Option<PlaceHealth> {
        let store = self.store.filter(|_| !self.given_up.load(Ordering::Relaxed))?;
        store.of(place).inspect_err(|_| self.given_up.store(true, Ordering::Relaxed)).ok()
    }

    /// Records the result of the known-good image.
    pub(super) fn canary(&self, place: &PlaceName, passed: bool, detail: &str) {
        let (run, detail) = (self.run.clone(), detail.to_owned());
        self.note(place, &HealthEvent::Canary { run, passed, detail });
    }

    /// Records the result of a recovery ladder.
    pub(super) fn ladder_ended(&self, place: &PlaceName, cause: Cause, outcome: &LadderOutcome) {
        if outcome.cancelled {
            return;
        }
        let event = HealthEvent::RecoveryEnded {
            run: self.run.clone(),
            cause,
            step: outcome.recovered_by.map(|step: RecoveryStep| step.to_string()),
            took_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
            detail: outcome.detail.clone(),
        };
        self.note(place, &event);
    }

    /// Records that a place is out of service.
    pub(super) fn quarantine(&self, place: &PlaceName, why: &str) {
        self.note(place, &HealthEvent::Quarantined { why: why.to_owned() });
    }

    /// Records the end of the run.
    pub(super) fn ended(
        &self,
        place: &PlaceName,
        verdict: &Verdict,
        duration_ms: u64,
        events: &RunEvents,
    ) {
        let loss = events.loss();
        let event = HealthEvent::RunEnded {
            run: self.run.clone(),
            kind: verdict.kind,
            cause: verdict.cause,
            duration_ms,
            flash_ms: events.flash_ms(),
            gaps: loss.gaps,
            overruns: loss.overruns,
            lost_bytes: loss.bytes,
            garbled: loss.garbled,
        };
        self.note(place, &event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_had_is_asked_once() {
        let root = tempfile::tempdir().unwrap();
        let path = HealthStore::path_in(root.path());
        let store = HealthStore::open(&path).unwrap();
        let place: PlaceName = "a".parse().unwrap();
        let recorder = HealthRecorder::new(Some(&store), "20260101-000000-0000".parse().unwrap());
        let event = HealthEvent::Quarantined { why: "x".to_owned() };
        // The store is broken, then restored.
        let spoil = |sql: &str| {
            let file = rusqlite::Connection::open(&path).unwrap();
            file.execute_batch(sql).unwrap();
        };
        spoil("ALTER TABLE place RENAME TO other");
        assert_eq!(recorder.note(&place, &event), None);
        spoil("ALTER TABLE other RENAME TO place");
        assert_eq!(recorder.clone().note(&place, &event), None);
        assert!(
            HealthRecorder::new(Some(&store), "20260101-000000-0000".parse().unwrap())
                .note(&place, &event)
                .is_some()
        );
    }
}
