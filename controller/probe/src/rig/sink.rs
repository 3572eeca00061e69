//! What an emulator tells of its board, without what its debugger did.
//!
//! To deploy by a probe the machine is launched, reset and stopped many times; a rig wants to
//! hear of the power it asked for, of resets in the order in which consoles were drained, and
//! of whatever the target does by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::protocol::{BoardSink, BoxFuture, PowerState, SharedSink, Wire};

/// Stands between an emulator and a rig.
pub(super) struct EmulatorSink {
    rig: SharedSink,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The rig was told that the board has power.
    on: bool,
    /// The machine has ended since it was launched.
    ended: bool,
}

impl EmulatorSink {
    pub(super) fn new(rig: SharedSink) -> Self {
        Self { rig, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects a launch.
    pub(super) fn launches(&self) {
        *self.state() = State::default();
    }

    /// Tells the rig that the board has power.
    pub(super) fn show_on(&self) {
        self.state().on = true;
        self.rig.event(BoardEvent::Power { state: PowerState::On });
    }

    /// Tells whether the machine has ended since it was launched.
    pub(super) fn ended(&self) -> bool {
        self.state().ended
    }
}

impl BoardSink for EmulatorSink {
    fn attach(&self, console: &ConsoleName, wire: Box<dyn Wire>) {
        self.rig.attach(console, wire);
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        self.rig.drained()
    }

    fn event(&self, event: BoardEvent) {
        let shown = match &event {
            BoardEvent::Power { state: PowerState::On } => false,
            BoardEvent::Power { state: PowerState::Off } => {
                let mut state = self.state();
                state.ended = true;
                std::mem::take(&mut state.on)
            }
            // The driver tells of these itself.
            BoardEvent::Reset { by_target: false, .. } => false,
            BoardEvent::Lost { .. } => true,
            BoardEvent::Forwarded { .. } | BoardEvent::Deploying { .. } => true,
            BoardEvent::Reset { by_target: true, .. }
            | BoardEvent::Watchdog { .. }
            | BoardEvent::GuestPanic { .. }
            | BoardEvent::TargetExit { .. }
            | BoardEvent::Lockup { .. } => self.state().on,
        };
        if shown {
            self.rig.event(event);
        }
    }
}
