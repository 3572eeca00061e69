//! Waiting for the host: room on a disk, a free handle.
//!
//! Both come back by themselves, when somebody else on the machine is done. A run that gave up
//! at once would cost its test the turn, so what a run must write is tried again for a while.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::store::StoreError;

/// How long is waited: a log that is rotated, a build that ends. Who has to free the disk by
/// hand takes longer than anybody wants to wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two tries, each of which takes a fraction of a millisecond.
const PAUSE: Duration = Duration::from_millis(20);

/// An error that may be over if the same is tried again.
pub(super) trait Passing {
    /// Tells whether it may pass.
    fn may_pass(&self) -> bool;
}

impl Passing for StoreError {
    fn may_pass(&self) -> bool {
        StoreError::may_pass(self)
    }
}

/// Does something until it works, or fails in a way that does not pass, or for too long.
pub(super) async fn retried<T, E: Passing + std::fmt::Display>(
    mut work: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut end = None;
    loop {
        let error = match work() {
            Err(error) if error.may_pass() => error,
            done => return done,
        };
        let end = *end.get_or_insert_with(|| {
            tracing::warn!(%error, "waiting for room or handles on this machine");
            Instant::now() + TIMEOUT
        });
        if Instant::now() >= end {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("full")]
    struct Full(bool);

    impl Passing for Full {
        fn may_pass(&self) -> bool {
            self.0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_waited_for_and_nothing_else() {
        let mut tries = 0;
        let mut work = || {
            tries += 1;
            if tries < 5 { Err(Full(true)) } else { Ok(tries) }
        };
        assert_eq!(retried(&mut work).await, Ok(5));
        assert_eq!(retried(|| Err::<(), _>(Full(false))).await, Err(Full(false)));
        let began = Instant::now();
        assert_eq!(retried(|| Err::<(), _>(Full(true))).await, Err(Full(true)));
        assert!(began.elapsed() >= TIMEOUT);
    }
}
