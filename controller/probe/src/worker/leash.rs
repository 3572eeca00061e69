//! Cuts a probe off from its target, from whichever thread finds that it must be.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Cuts a probe off from its target.
pub(crate) trait Cut: fmt::Debug + Send + Sync {
    /// Lets every call of the probe fail from now on, those under way included, without
    /// another word to the target. Callable from any thread, and again.
    fn cut(&self);
}

/// Holds what cuts off the probe that is open now. Shared by the worker, which opens probes,
/// and the watchdog, which may have to end one.
#[derive(Debug, Default)]
pub(crate) struct Leash(Mutex<LeashState>);

#[derive(Debug, Default)]
struct LeashState {
    cutter: Option<Arc<dyn Cut>>,
    cut: bool,
}

impl Leash {
    /// Takes a new probe's cutter; at once in use if the worker is given up already.
    pub(crate) fn hold(&self, cutter: Arc<dyn Cut>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.cut {
            cutter.cut();
        }
        held.cutter = Some(cutter);
    }

    /// Cuts off the open probe and every later one. Tells whether there was one to cut.
    pub(crate) fn cut(&self) -> bool {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.cut = true;
        if let Some(cutter) = &held.cutter {
            cutter.cut();
        }
        held.cutter.is_some()
    }

    /// Tells whether probes are cut off.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cut
    }

    /// Lets go of the cutter of a probe that is dropped.
    pub(crate) fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cutter = None;
    }
}
