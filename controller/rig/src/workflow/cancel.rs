//! The request to stop, shared between the code that makes it and the code that obeys it.

use std::sync::Arc;

use tokio::sync::watch;

/// A request to stop: made once, seen by every clone, never withdrawn.
#[derive(Debug, Clone)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl CancelToken {
    /// Builds a token that is not cancelled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks to stop.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Tells whether the caller asked to stop.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the caller asks to stop.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
