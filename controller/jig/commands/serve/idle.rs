//! Checks idle places on a timer, and proves places that are out of service.
//!
//! Each check and each proof runs in a worker process ([`Worker`]): a hang or a crash ends that
//! process and never the service.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_lab::{Catalogue, ClientRequests, health_subject};
use jig_model::PlaceName;
use jig_model::command::{CheckCommand, Command, RecoverCommand, RecoverExtent, Reply, WorkerLine};
use jig_model::protocol::BoxFuture;
use jig_model::rig_file::Place;
use jig_rig::capture_service::IdleCheck;
use jig_rig::health::{HealthState, HealthStore};
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::worker::{Worker, WorkerOrigin};
use crate::failure::chain;

/// Interval at which due places are looked for: the shortest one that a profile may set.
const SEARCH_INTERVAL: Duration = Duration::from_secs(10);

/// Checks idle places until stopped, at the interval of their profiles or at `every`. A check under
/// way is dropped at the stop; a running known-good image is waited for.
pub(super) async fn rounds(
    origin: WorkerOrigin<'_>,
    requests: &ClientRequests,
    every: Option<Duration>,
    stop: &CancelToken,
) {
    let pause = every.unwrap_or(SEARCH_INTERVAL);
    let mut retries = interval_at(Instant::now() + pause, pause);
    retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting = Waiting::default();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = retries.tick() => {}
        }
        // Read again, because the rig file may have changed; its errors are reported elsewhere.
        let Ok(catalogue) = Catalogue::load(&origin.common.own_lab()) else { continue };
        // Emulated boards exist only during a run.
        let real = catalogue.rig.places.iter().filter(|at| !at.is_emulated());
        let names: Vec<PlaceName> = match every {
            Some(_) => real.map(|place| place.name.clone()).collect(),
            None => waiting.due(Instant::now(), real.filter_map(|at| paced(&catalogue, at))),
        };
        let look = PlaceCheck(origin);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = requests.idle.round(&names, &look) => {}
        }
        for name in names {
            if stop.is_cancelled() {
                return;
            }
            if needs_proof(&catalogue, &name) {
                prove(origin, name, stop).await;
            }
        }
    }
}

/// Returns the interval of a place's checks.
fn paced(catalogue: &Catalogue, place: &Place) -> Option<(PlaceName, Duration)> {
    let profile = catalogue.profiles.get(&place.board)?;
    Some((place.name.clone(), profile.health.interval))
}

/// Since when each place has waited for a check.
#[derive(Default)]
struct Waiting(BTreeMap<PlaceName, Instant>);

impl Waiting {
    /// Returns the places that are due and restarts their interval; forgets places that are no
    /// longer listed. A new place waits a whole interval first, as at the start of the service.
    fn due(
        &mut self,
        now: Instant,
        places: impl Iterator<Item = (PlaceName, Duration)>,
    ) -> Vec<PlaceName> {
        let before = std::mem::take(&mut self.0);
        let mut due = Vec::new();
        for (name, interval) in places {
            let since = before.get(&name).copied().unwrap_or(now);
            let is_due = now.duration_since(since) >= interval;
            self.0.insert(name.clone(), if is_due { now } else { since });
            due.extend(is_due.then_some(name));
        }
        due
    }
}

/// Runs the checks of a place.
struct PlaceCheck<'c>(WorkerOrigin<'c>);

impl IdleCheck for PlaceCheck<'_> {
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
        let command = Command::Check(CheckCommand { place: place.clone(), wait_ms: None });
        Box::pin(async move {
            match carry_out(self.0, &command, &give_way).await {
                Some(WorkerLine::Reply(Reply::Checked(seen))) if seen.in_use.is_none() => {
                    tracing::info!(%place, state = seen.state, "looked at");
                }
                Some(WorkerLine::Reply(Reply::Checked(seen))) => {
                    let why = seen.in_use;
                    tracing::debug!(%place, why, "an idle place was not looked at");
                }
                // This includes a place that a run waits for.
                Some(WorkerLine::Refused(why)) => {
                    tracing::debug!(%place, why = why.message, "an idle place was not looked at");
                }
                Some(_) | None => {
                    tracing::warn!(%place, "the look at an idle place has ended without a word");
                }
            }
        })
    }
}

/// Tells whether a place is out of service and has a known-good image to prove itself by.
fn needs_proof(catalogue: &Catalogue, name: &PlaceName) -> bool {
    let Ok((place, _)) = catalogue.place(name) else { return false };
    let state = HealthStore::open(&catalogue.health_store())
        .and_then(|store| store.of_by(&health_subject(&place), name));
    place.canary.is_some() && state.is_ok_and(|now| now.state == HealthState::Quarantined)
}

/// Boots the known-good image of a place that is out of service; enough passes in a row return it
/// to service. No run waits for such a place, because runs are refused there.
async fn prove(origin: WorkerOrigin<'_>, place: PlaceName, stop: &CancelToken) {
    let extent = RecoverExtent::Prove;
    let command = Command::Recover(RecoverCommand { place: place.clone(), extent });
    match carry_out(origin, &command, stop).await {
        Some(WorkerLine::Reply(Reply::Run(ended))) => {
            tracing::info!(%place, run = %ended.run, verdict = %ended.verdict.kind, "asked for a proof");
        }
        Some(WorkerLine::Refused(why)) => {
            tracing::warn!(%place, why = why.message, "not asked for a proof");
        }
        Some(_) | None => tracing::warn!(%place, "a proof has ended without a word"),
    }
}

/// Carries out a command in a worker process and returns its reply; asks the worker to end when
/// `stop` is cancelled.
async fn carry_out(
    origin: WorkerOrigin<'_>,
    command: &Command,
    stop: &CancelToken,
) -> Option<WorkerLine> {
    let mut worker = match Worker::start(origin, command) {
        Ok(worker) => worker,
        Err(error) => {
            tracing::warn!(error = chain(&error), "no worker can be started");
            return None;
        }
    };
    tokio::select! {
        biased;
        last = worker.last_word() => return last,
        () = stop.cancelled() => worker.terminate(),
    }
    worker.last_word().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_own_turn() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let at = |second| began + Duration::from_secs(second);
        let pace = |name: &str, seconds| (name.parse().unwrap(), Duration::from_secs(seconds));
        let mut due = |second, places: &[(PlaceName, Duration)]| {
            let due = waiting.due(at(second), places.iter().cloned());
            due.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let both = [pace("often", 10), pace("seldom", 300)];
        assert!(due(0, &both).is_empty());
        assert_eq!(due(10, &both), ["often"]);
        assert!(due(19, &both).is_empty());
        assert_eq!(due(300, &both), ["often", "seldom"]);
        // A place that was absent waits like a new one.
        assert!(due(600, &both[..1]) == ["often"]);
        assert_eq!(due(900, &both), ["often"]);
        assert_eq!(due(1200, &both), ["often", "seldom"]);
    }
}
