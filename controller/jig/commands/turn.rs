//! Taking a place for this process, and saying who has it while it has to wait.

use std::time::Duration;

use jig_drivers::serial::keeper::give_way;
use jig_model::PlaceName;
use jig_model::rig_file::KeeperSeat;
use jig_rig::console::escape;
use jig_rig::store::{Holder, PlaceLock, PlaceLockError, Places};

use tokio::time::{Instant, sleep};

use crate::failure::{Failure, chain};
use crate::render::Screen;

/// How long whoever keeps the consoles is given to hear that somebody waits.
const HEARING: Duration = Duration::from_secs(1);

/// How long it may take until it has let go of the place: the checks are dropped at once, but
/// the host may be busy.
const GIVING_WAY: Duration = Duration::from_secs(10);

/// Pause between two tries to take what the keeper has.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes a place, waiting so long for somebody else who has it. Whoever keeps the consoles is
/// told that somebody waits, as it looks after idle places.
pub(super) async fn take(
    places: &Places,
    place: &PlaceName,
    wait: Duration,
    screen: &Screen,
) -> Result<PlaceLock, PlaceLockError> {
    let waiting = |holder: Option<&Holder>| {
        let who = holder.map_or_else(|| "another process".to_owned(), Holder::to_string);
        screen.say(&format!("waiting for place {place}, in use by {}", escape(who.as_bytes())));
    };
    match places.try_lock(place) {
        Err(PlaceLockError::Held { .. }) => {}
        taken => return taken,
    }
    idle(places, place).await;
    places.lock_within(place, wait, waiting).await
}

/// Takes a place that nobody uses, or says who does. Whoever keeps the consoles is no user: it
/// is told that somebody wants the place.
pub(super) async fn claim(places: &Places, place: &PlaceName) -> Result<PlaceLock, PlaceLockError> {
    let end = Instant::now() + GIVING_WAY;
    loop {
        match places.try_lock(place) {
            // Told again each time: by now it may be the next look.
            Err(PlaceLockError::Held { .. })
                if Instant::now() < end && idle(places, place).await => {}
            taken => return taken,
        }
        sleep(PAUSE).await;
    }
}

/// Tells whoever keeps the consoles that somebody waits for a place; returns whether it has
/// just been looking after it.
async fn idle(places: &Places, place: &PlaceName) -> bool {
    let socket = places.keeper_socket();
    let seat = KeeperSeat { socket, place: place.clone(), by: String::new() };
    tokio::time::timeout(HEARING, give_way(&seat, place)).await.unwrap_or(false)
}

/// Says why a place was not taken.
pub(super) fn refused(error: &PlaceLockError) -> Failure {
    Failure::new(error.fault(), escape(chain(error).as_bytes()).to_string())
}
