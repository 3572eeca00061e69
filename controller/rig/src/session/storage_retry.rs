//! Retries of writes while the host has no disk space or no free file handle.
//!
//! Both shortages end when another process on the host is done. A run that gave up at once would
//! lose its test for that, so its writes are retried for a while.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::store::StoreError;

/// How long writes are retried: enough for a log rotation or the end of a build. A disk that has to
/// be cleared by hand takes longer than a run may wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two tries, each of which takes a fraction of a millisecond.
const PAUSE: Duration = Duration::from_millis(20);

/// An error that a retry may overcome.
pub(super) trait Passing {
    /// Tells whether it may pass.
    fn may_pass(&self) -> bool;
}

impl Passing for StoreError {
    fn may_pass(&self) -> bool {
        StoreError::may_pass(self)
    }
}

/// Repeats work until it succeeds, fails for good, or the time is over.
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
