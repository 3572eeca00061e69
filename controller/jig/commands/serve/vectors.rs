//! Vectors of units that runs have taught, where the service has an embedding model.

use std::sync::Arc;
use std::time::Duration;

use jig_rig::workflow::CancelToken;
use jig_service::server::RigHost;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked for new units: a look at a store without any takes a millisecond, and a unit is
/// found by its words at once.
const LOOK: Duration = Duration::from_secs(30);

/// Makes vectors of new units until the service stops. Runs learn in processes of their own, so no verdict
/// waits for this.
pub(super) async fn embed_new(host: &Arc<RigHost>, stop: &CancelToken) {
    if !host.knowledge.has_model() {
        return stop.cancelled().await;
    }
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = stop.cancelled() => return,
        }
        let host = Arc::clone(host);
        // What it has done is told by itself; it writes in batches, so a stop need not wait for its end.
        let work = spawn_blocking(move || host.knowledge.embed_new());
        tokio::select! {
            _ = work => {}
            () = stop.cancelled() => return,
        }
    }
}
