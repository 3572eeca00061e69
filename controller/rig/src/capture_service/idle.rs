//! Checks idle places on a timer, and gives way to runs at once.
//!
//! # Design
//! A check is made by a worker process, which holds the place's lock like any other user, so that
//! no run starts on a board that is being switched. A waiting run polls the lock, which its holder
//! cannot notice; therefore the run also tells the capture service ([`IdleRounds::give_way`]),
//! which ends the check.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jig_model::PlaceName;
use jig_model::protocol::BoxFuture;

use crate::workflow::CancelToken;

/// Checks an idle place.
pub trait IdleCheck: Send + Sync {
    /// Checks the place once, unless another process uses it. When `give_way` is cancelled, a run
    /// is waiting: the check ends and leaves the board in a defined state.
    fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()>;
}

/// Checks idle places in turn.
#[derive(Debug, Default)]
pub struct IdleRounds {
    under_way: Mutex<BTreeMap<PlaceName, CancelToken>>,
}

impl IdleRounds {
    fn under_way(&self) -> MutexGuard<'_, BTreeMap<PlaceName, CancelToken>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the check of a place; returns whether one is under way.
    pub fn give_way(&self, place: &PlaceName) -> bool {
        let under_way = self.under_way();
        let token = under_way.get(place);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Checks each place, one after the other.
    pub async fn round(&self, names: &[PlaceName], check: &dyn IdleCheck) {
        for name in names {
            // Entered before the place is locked, so that a run which finds the lock can end it.
            let token = CancelToken::new();
            self.under_way().insert(name.clone(), token.clone());
            let look = RunningCheck { rounds: self, place: name };
            check.check(name, token).await;
            drop(look);
        }
    }
}

/// Forgets a check that has ended or was dropped.
struct RunningCheck<'r> {
    rounds: &'r IdleRounds,
    place: &'r PlaceName,
}

impl Drop for RunningCheck<'_> {
    fn drop(&mut self) {
        self.rounds.under_way().remove(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks until another process waits; remembers where it looked.
    #[derive(Default)]
    struct Patient(Mutex<Vec<String>>);

    impl IdleCheck for Patient {
        fn check<'a>(&'a self, place: &'a PlaceName, give_way: CancelToken) -> BoxFuture<'a, ()> {
            self.0.lock().unwrap().push(place.to_string());
            Box::pin(async move { give_way.cancelled().await })
        }
    }

    #[tokio::test]
    async fn a_look_goes_on_until_a_run_waits_for_its_place() {
        let names: Vec<PlaceName> = ["a", "b"].map(|name| name.parse().unwrap()).to_vec();
        let (rounds, check) = (IdleRounds::default(), Patient::default());
        assert!(!rounds.give_way(&names[0]));
        let mut round = Box::pin(rounds.round(&names, &check));
        assert!(futures_pending(&mut round).await);
        assert!(!rounds.give_way(&names[1]) && rounds.give_way(&names[0]));
        assert!(futures_pending(&mut round).await);
        assert!(rounds.give_way(&names[1]) && !rounds.give_way(&names[0]));
        round.await;
        assert_eq!(*check.0.lock().unwrap(), ["a", "b"]);
        // A round that is dropped leaves nothing to tell.
        let mut round = Box::pin(rounds.round(&names, &check));
        assert!(futures_pending(&mut round).await);
        drop(round);
        assert!(rounds.under_way().is_empty());
    }

    async fn futures_pending(round: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            let pending = std::pin::Pin::new(&mut *round).poll(cx).is_pending();
            std::task::Poll::Ready(pending)
        })
        .await
    }
}
