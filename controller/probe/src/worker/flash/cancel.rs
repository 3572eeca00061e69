//! A request to stop, shared by the code that makes it and the code that obeys it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a flash operation to stop; clones ask for the same.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop, now and for ever.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Tells whether a stop was requested.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The reasons to stop a flash operation: a request, or a caller that has gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlashStop {
    pub(crate) asked: Cancel,
    pub(crate) abandoned: Cancel,
}

impl FlashStop {
    pub(crate) fn is_wanted(&self) -> bool {
        self.asked.is_cancelled() || self.abandoned.is_cancelled()
    }
}

/// Asks to stop when it is dropped: it lives in the future of a request.
pub(crate) struct Interest(pub(crate) Cancel);

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
