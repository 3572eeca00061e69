//! Taking a place for this process, and saying who has it while it has to wait.

use std::time::Duration;

use jig_model::PlaceName;
use jig_rig::console::escape;
use jig_rig::store::{Holder, PlaceLock, PlaceLockError, Places};

use crate::failure::{Failure, chain};
use crate::render::Screen;

/// Takes a place, waiting so long for somebody else who has it.
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
    places.lock_within(place, wait, waiting).await
}

/// Says why a place was not taken.
pub(super) fn refused(error: &PlaceLockError) -> Failure {
    Failure::new(error.fault(), escape(chain(error).as_bytes()).to_string())
}
