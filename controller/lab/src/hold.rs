//! Taking places for this process and its user, and naming the holder of a place while it has to wait.

use std::time::Duration;

use jig_drivers::serial::capture_service::give_way;
use jig_model::PlaceName;
use jig_model::command::{CommandEvent, EventSink};
use jig_model::rig_file::CaptureClient;
use jig_rig::leases::LeaseError;
use jig_rig::store::{Holder, PlaceLock, PlaceLockError, Places};
use tokio::time::{Instant, sleep};

use crate::Catalogue;

/// How long `jig serve` has to take note of a waiting process.
const HEARING: Duration = Duration::from_secs(1);

/// How long `jig serve` may take until it has let go of the place: its checks are dropped at
/// once, but the host may be busy.
const GIVING_WAY: Duration = Duration::from_secs(10);

/// Pause between two looks whether a place is still leased by another user.
const LEASED: Duration = Duration::from_millis(100);

/// Pause between two tries to take what `jig serve` has.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes a place, waiting for at most `wait` for another process that has it, or another user who has
/// a lease. `jig serve`, which looks after idle places, is told that another process waits.
///
/// # Errors
/// Another process or user has it for longer, or the lock cannot be used.
pub async fn hold(
    catalogue: &Catalogue,
    place: &PlaceName,
    wait: Duration,
    events: &dyn EventSink,
) -> Result<PlaceLock, PlaceLockError> {
    let (end, mut told) = (Instant::now() + wait, false);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let lock = hold_lock(&catalogue.places(), place, left, events).await?;
        // Asked with the lock: no lease begins while a process has it.
        match catalogue.admission(place, Some(&lock)) {
            Ok(_) => return Ok(lock),
            Err(error) if !is_passing(&error) || Instant::now() >= end => {
                return Err(PlaceLockError::Leased(Box::new(error)));
            }
            Err(error) if !told => {
                let (place, holder) = (place.clone(), error.others());
                events.event(CommandEvent::Waiting { place, holder });
                told = true;
            }
            Err(_) => {}
        }
        drop(lock);
        sleep(LEASED).await;
    }
}

/// Tells whether a refusal may be over after a while.
fn is_passing(error: &LeaseError) -> bool {
    matches!(error, LeaseError::Leased { .. } | LeaseError::QueuedAhead { .. })
}

/// Takes the lock of a place.
pub(crate) async fn hold_lock(
    places: &Places,
    place: &PlaceName,
    wait: Duration,
    events: &dyn EventSink,
) -> Result<PlaceLock, PlaceLockError> {
    let waiting = |holder: Option<&Holder>| {
        events.event(CommandEvent::Waiting { place: place.clone(), holder: name(holder) });
    };
    match places.lock_now(place).await {
        Err(PlaceLockError::Held { .. }) => {}
        taken => return taken,
    }
    idle(places, place).await;
    places.lock_within(place, wait, waiting).await
}

/// Names the holder of a place.
pub(crate) fn name(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// Takes a place that is free, or names its user. `jig serve` is no user: it is told that the place
/// is wanted.
pub(crate) async fn claim(
    catalogue: &Catalogue,
    place: &PlaceName,
) -> Result<PlaceLock, PlaceLockError> {
    let places = &catalogue.places();
    let end = Instant::now() + GIVING_WAY;
    loop {
        match places.lock_now(place).await {
            // Told again each time: by now it may be the next look.
            Err(PlaceLockError::Held { .. })
                if Instant::now() < end && idle(places, place).await => {}
            taken => {
                let lock = taken?;
                let admitted = catalogue.admission(place, Some(&lock));
                return admitted.map(|_| lock).map_err(|e| PlaceLockError::Leased(Box::new(e)));
            }
        }
        sleep(PAUSE).await;
    }
}

/// Tells `jig serve` that a process waits for a place; returns whether it has just been looking
/// after it.
async fn idle(places: &Places, place: &PlaceName) -> bool {
    let socket = places.capture_socket();
    let client = CaptureClient { socket, place: place.clone(), by: String::new() };
    tokio::time::timeout(HEARING, give_way(&client, place)).await.unwrap_or(false)
}
