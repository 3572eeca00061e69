//! Looking after idle places on a timer: are they well, and may those out of service return?

use std::sync::Arc;
use std::time::Duration;

use jig_model::PlaceName;
use jig_model::protocol::BoxFuture;
use jig_model::rig_file::Resource;
use jig_rig::health::HealthState;
use jig_rig::keeper::IdleCheck;
use jig_rig::workflow::CancelToken;
use tokio::time::{MissedTickBehavior, interval_at};

use super::desk::Desk;
use crate::args::Common;
use crate::catalogue::Catalogue;
use crate::commands::{health, recover};
use crate::failure::Failure;

/// Looks after idle places again and again, until told to stop. A look under way is dropped
/// then; a known-good image that runs is waited for.
pub(super) async fn rounds(common: &Common, desk: &Desk, every: Duration, stop: &CancelToken) {
    let mut turns = interval_at(tokio::time::Instant::now() + every, every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = turns.tick() => {}
        }
        // Read anew: the rig may be another one by now, or broken, which is said elsewhere.
        let Ok(catalogue) = Catalogue::load(common) else { continue };
        // Emulated boards are made anew for each run, and started for nobody.
        let real =
            catalogue.rig.places.iter().filter(|at| matches!(at.resource, Resource::Probe(_)));
        let names: Vec<PlaceName> = real.map(|place| place.name.clone()).collect();
        let look = Look { common, catalogue: &catalogue };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = desk.idle.round(&names, &look) => {}
        }
        for name in names {
            if stop.is_cancelled() {
                return;
            }
            if let Err(failure) = prove(common, &catalogue, &name).await {
                tracing::warn!(place = %name, why = failure.message, "not asked for a proof");
            }
        }
    }
}

/// The checks of a place.
struct Look<'c> {
    common: &'c Common,
    catalogue: &'c Catalogue,
}

impl IdleCheck for Look<'_> {
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let examined = async {
                let (here, profile) = self.catalogue.place(place)?;
                let book = health::open(self.catalogue)?;
                health::examine_place(self.common, self.catalogue, &here, &profile, &book).await
            };
            tokio::select! {
                biased;
                () = give_way.cancelled() => {}
                examined = examined => match examined {
                    Ok((_, now)) => tracing::info!(%place, state = now.state.as_str(), "looked at"),
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
async fn prove(common: &Common, catalogue: &Catalogue, name: &PlaceName) -> Result<(), Failure> {
    let (place, _) = catalogue.place(name)?;
    let state = health::open(catalogue)?.of_by(&health::policy(&place), name);
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
