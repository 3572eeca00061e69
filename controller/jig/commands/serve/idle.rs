//! Looking after idle places on a timer: are they well, and may those out of service return?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jig_lab::{Catalogue, Lab, health_policy};
use jig_model::PlaceName;
use jig_model::protocol::BoxFuture;
use jig_model::rig_file::Place;
use jig_rig::health::HealthState;
use jig_rig::keeper::IdleCheck;
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::desk::Desk;
use crate::args::Common;
use crate::commands::{open_lab, recover};
use crate::failure::Failure;

/// How often it is looked whose turn it is: as often as a profile may want it.
const TURN: Duration = Duration::from_secs(10);

/// Looks after idle places again and again, each as often as its profile says or all of them
/// `every` so often, until told to stop. A look under way is dropped then; a known-good image
/// that runs is waited for.
pub(super) async fn rounds(
    common: &Common,
    desk: &Desk,
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
        let Ok(lab) = open_lab(common) else { continue };
        let catalogue = lab.catalogue();
        // Emulated boards are made anew for each run, and started for nobody.
        let real = catalogue.rig.places.iter().filter(|at| !at.is_emulated());
        let names: Vec<PlaceName> = match every {
            Some(_) => real.map(|place| place.name.clone()).collect(),
            None => waiting.due(Instant::now(), real.filter_map(|at| paced(catalogue, at))),
        };
        let look = Look(&lab);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = desk.idle.round(&names, &look) => {}
        }
        for name in names {
            if stop.is_cancelled() {
                return;
            }
            if let Err(failure) = prove(common, &lab, &name).await {
                tracing::warn!(place = %name, why = failure.message, "not asked for a proof");
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
    /// not named any more. A new one waits first, as it does when the keeper starts.
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

/// The checks of a place.
struct Look<'l>(&'l Lab);

impl IdleCheck for Look<'_> {
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let examined = async {
                let (here, profile) = self.0.catalogue().place(place)?;
                let store = self.0.health_store()?;
                Ok::<_, Failure>(self.0.examine(&here, &profile, &store).await?.health)
            };
            tokio::select! {
                biased;
                () = give_way.cancelled() => {}
                examined = examined => match examined {
                    Ok(now) => tracing::info!(%place, state = now.state.as_str(), "looked at"),
                    Err(Failure { message, .. }) => {
                        tracing::warn!(%place, why = message, "an idle place was not looked at");
                    }
                },
            }
        })
    }
}

/// Boots the known-good image of a place that is out of service, if it has one: enough passes
/// bring it back. Nobody waits for such a place, as runs are refused there.
async fn prove(common: &Common, lab: &Lab, name: &PlaceName) -> Result<(), Failure> {
    let (place, _) = lab.catalogue().place(name)?;
    let state = lab.health_store()?.of_by(&health_policy(&place), name);
    let out = state.is_ok_and(|now| now.state == HealthState::Quarantined);
    if !out || place.canary.is_none() {
        return Ok(());
    }
    let (common, name) =
        (Arc::new(Common { quiet: true, json: false, ..common.clone() }), name.clone());
    // It makes a runtime of its own, as a run does.
    let asked = tokio::task::spawn_blocking(move || recover::ask(&common, &name));
    asked.await.unwrap_or(Ok(()))
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
