//! Looking after idle places on a timer: are they well, and may those out of service return?
//!
//! Each look and each proof is made by a worker process ([`Worker`]): what hangs or crashes
//! there ends that one, and never the service.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_lab::{Catalogue, health_policy};
use jig_model::PlaceName;
use jig_model::command::{CheckCommand, Command, RecoverCommand, RecoverExtent, Reply, WorkerLine};
use jig_model::protocol::BoxFuture;
use jig_model::rig_file::Place;
use jig_rig::capture_service::IdleCheck;
use jig_rig::health::{HealthState, HealthStore};
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::requests::Requests;
use super::worker::Worker;
use crate::args::Common;
use crate::failure::chain;

/// How often it is looked whose turn it is: as often as a profile may want it.
const TURN: Duration = Duration::from_secs(10);

/// Looks after idle places again and again, each as often as its profile says or all of them
/// `every` so often, until told to stop. A look under way is dropped then; a known-good image
/// that runs is waited for.
pub(super) async fn rounds(
    common: &Common,
    requests: &Requests,
    every: Option<Duration>,
    stop: &CancelToken,
) {
    let pause = every.unwrap_or(TURN);
    let mut retries = interval_at(Instant::now() + pause, pause);
    retries.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting = Waiting::default();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = retries.tick() => {}
        }
        // Read anew: the rig may be another one by now, or broken, which is said elsewhere.
        let Ok(catalogue) = Catalogue::load(&common.lab()) else { continue };
        // Emulated boards are made anew for each run, and started for nobody.
        let real = catalogue.rig.places.iter().filter(|at| !at.is_emulated());
        let names: Vec<PlaceName> = match every {
            Some(_) => real.map(|place| place.name.clone()).collect(),
            None => waiting.due(Instant::now(), real.filter_map(|at| paced(&catalogue, at))),
        };
        let look = Look(common);
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
                prove(common, name, stop).await;
            }
        }
    }
}

/// Says how often a place is to be looked at.
fn paced(catalogue: &Catalogue, place: &Place) -> Option<(PlaceName, Duration)> {
    let profile = catalogue.profiles.get(&place.board)?;
    Some((place.name.clone(), profile.health.interval))
}

/// Since when each place waits for a look.
#[derive(Default)]
struct Waiting(BTreeMap<PlaceName, Instant>);

impl Waiting {
    /// Returns the places whose turn it is now, and has them wait anew; forgets those that are
    /// not named any more. A new one waits first, as it does when the capture service starts.
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

/// Has the checks of a place run.
struct Look<'c>(&'c Common);

impl IdleCheck for Look<'_> {
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
        let command = Command::Check(CheckCommand { place: place.clone(), wait_ms: None });
        Box::pin(async move {
            match carry_out(self.0, &command, &give_way).await {
                Some(WorkerLine::Reply(Reply::Checked(seen))) => {
                    tracing::info!(%place, state = seen.state, "looked at");
                }
                // Also one that is in use, or that a run waits for.
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
        .and_then(|store| store.of_by(&health_policy(&place), name));
    place.canary.is_some() && state.is_ok_and(|now| now.state == HealthState::Quarantined)
}

/// Boots the known-good image of a place that is out of service: enough passes bring it back.
/// Nobody waits for such a place, as runs are refused there.
async fn prove(common: &Common, place: PlaceName, stop: &CancelToken) {
    let extent = RecoverExtent::Prove;
    let command = Command::Recover(RecoverCommand { place: place.clone(), extent });
    match carry_out(common, &command, stop).await {
        Some(WorkerLine::Reply(Reply::Run(ended))) => {
            tracing::info!(%place, run = %ended.run, verdict = %ended.verdict.kind, "asked for a proof");
        }
        Some(WorkerLine::Refused(why)) => {
            tracing::warn!(%place, why = why.message, "not asked for a proof");
        }
        Some(_) | None => tracing::warn!(%place, "a proof has ended without a word"),
    }
}

/// Has a worker carry out a command, and returns its last word; asks it to end once `stop` is
/// cancelled.
async fn carry_out(common: &Common, command: &Command, stop: &CancelToken) -> Option<WorkerLine> {
    let mut worker = match Worker::start(common, command) {
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
        // One that was away waits like a new one.
        assert!(due(600, &both[..1]) == ["often"]);
        assert_eq!(due(900, &both), ["often"]);
        assert_eq!(due(1200, &both), ["often", "seldom"]);
    }
}
