//! Looking at idle places on a timer, and getting out of the way at once.
//!
//! # Design
//! A look holds the place's lock like any other user, so that no run meets a board somebody
//! is switching. Runs wait for locks by looking at them, which nobody hears; so whoever waits
//! says so at the keeper's door ([`IdleRounds::give_way`]), and the look under way is told.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jig_model::PlaceName;
use jig_model::protocol::BoxFuture;

use crate::store::{PlaceLockError, Places};
use crate::workflow::CancelToken;

/// Looks at a place that nobody uses.
pub trait IdleCheck: Send + Sync {
    /// Looks once. The place is locked meanwhile. Once `give_way` is cancelled somebody waits
    /// for it: what is begun is brought to an end that leaves the board to others.
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()>;
}

/// Rounds through idle places.
#[derive(Debug)]
pub struct IdleRounds {
    places: Places,
    under_way: Mutex<BTreeMap<PlaceName, CancelToken>>,
}

impl IdleRounds {
    /// Makes rounds through places whose locks are here.
    pub fn new(places: Places) -> Self {
        Self { places, under_way: Mutex::default() }
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeMap<PlaceName, CancelToken>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the look at a place to end; tells whether one is under way.
    pub fn give_way(&self, place: &PlaceName) -> bool {
        let under_way = self.under_way();
        let token = under_way.get(place);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Looks at each place that nobody uses, one after the other; those in use are left out.
    pub async fn round(&self, names: &[PlaceName], check: &dyn IdleCheck) {
        for name in names {
            // Known before the place is locked: whoever meets the lock can then be heard.
            let token = CancelToken::new();
            self.under_way().insert(name.clone(), token.clone());
            let look = Look { rounds: self, place: name };
            let lock = match self.places.try_lock(name) {
                Ok(lock) => lock,
                Err(PlaceLockError::Held { .. }) => continue,
                Err(error) => {
                    let error = jig_model::chain(&error);
                    tracing::warn!(place = %name, error, "an idle place was not looked at");
                    continue;
                }
            };
            check.check(name, token).await;
            drop(lock);
            drop(look);
        }
    }
}

/// Forgets a look that is over or was dropped.
struct Look<'r> {
    rounds: &'r IdleRounds,
    place: &'r PlaceName,
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.rounds.under_way().remove(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until somebody waits; remembers where it looked.
    #[derive(Default)]
    struct Patient(Mutex<Vec<String>>);

    impl IdleCheck for Patient {
        fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
            self.0.lock().unwrap().push(place.to_string());
            Box::pin(async move { give_way.cancelled().await })
        }
    }

    #[tokio::test]
    async fn a_look_holds_its_place_until_somebody_waits_and_places_in_use_are_left_out() {
        let state = tempfile::tempdir().unwrap();
        let places = Places::new(state.path());
        let names: Vec<PlaceName> = ["a", "b"].map(|name| name.parse().unwrap()).to_vec();
        let (rounds, check) = (IdleRounds::new(places.clone()), Patient::default());
        let used = places.try_lock(&names[0]).unwrap();
        assert!(!rounds.give_way(&names[0]));
        let mut round = Box::pin(rounds.round(&names, &check));
        assert!(futures_pending(&mut round).await);
        assert!(places.try_lock(&names[1]).is_err());
        assert!(rounds.give_way(&names[1]) && !rounds.give_way(&names[0]));
        round.await;
        assert_eq!(*check.0.lock().unwrap(), ["b"]);
        drop((places.try_lock(&names[1]).unwrap(), used));
        // A round that is dropped leaves nothing locked, and nothing to tell.
        let mut round = Box::pin(rounds.round(&names, &check));
        assert!(futures_pending(&mut round).await);
        drop(round);
        assert!(rounds.under_way().is_empty());
        drop(places.try_lock(&names[0]).unwrap());
    }

    async fn futures_pending(round: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            let pending = std::pin::Pin::new(&mut *round).poll(cx).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }
}
