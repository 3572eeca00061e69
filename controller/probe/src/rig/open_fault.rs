//! The fault whose handler a core has not been seen to leave.

use std::sync::{Mutex, PoisonError};

/// Shared by the owner of a board, which sees the core, and by who asks after a reset. A handler that
/// resets the board leaves no other trace.
#[derive(Debug, Default)]
pub(super) struct OpenFault(Mutex<OpenFaultState>);

#[derive(Debug, Default)]
struct OpenFaultState {
    name: Option<String>,
    /// The core was reset since, so that where it stands tells nothing of the handler.
    was_reset: bool,
}

impl OpenFault {
    fn with<T>(&self, what: impl FnOnce(&mut OpenFaultState) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in that the core has entered a handler; the first one before a reset counts.
    pub(super) fn entered(&self, name: String) {
        self.with(|state| {
            if !state.was_reset {
                state.name = Some(name);
            }
        });
    }

    /// Tells whether a handler is open that the core may have left by now.
    pub(super) fn may_be_left(&self) -> bool {
        self.with(|state| state.name.is_some() && !state.was_reset)
    }

    /// Takes in that the core executes no handler.
    pub(super) fn left(&self) {
        self.with(|state| {
            if !state.was_reset {
                state.name = None;
            }
        });
    }

    /// Takes in that the core was reset.
    pub(super) fn reset(&self) {
        self.with(|state| state.was_reset = state.name.is_some());
    }

    /// Returns and forgets the fault.
    pub(super) fn take(&self) -> Option<String> {
        self.with(std::mem::take).name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_stays_open_until_its_handler_is_left_or_the_core_reset() {
        let open = OpenFault::default();
        assert_eq!(open.take(), None);
        open.entered("HardFault".to_owned());
        assert!(open.may_be_left());
        open.left();
        open.reset();
        assert_eq!(open.take(), None);
        open.entered("HardFault".to_owned());
        open.reset();
        // The next boot executes no handler at first, and another one later.
        assert!(!open.may_be_left());
        open.left();
        open.entered("UsageFault".to_owned());
        assert_eq!(open.take().as_deref(), Some("HardFault"));
        assert_eq!(open.take(), None);
        open.entered("HardFault".to_owned());
        assert!(open.may_be_left());
    }
}
