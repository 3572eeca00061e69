//! Filters the events of an emulator: those that its debugger caused are left out.
//!
//! To deploy by a probe the machine is launched, reset and stopped many times; a rig wants to
//! hear of the power it asked for, of resets in the order in which consoles were drained, and
//! of whatever the target does by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jig_model::ConsoleName;
use jig_model::event::BoardEvent;
use jig_model::protocol::{BoardSink, BoxFuture, PowerState, SharedSink, Transport};

/// Stands between an emulator and a rig.
pub(super) struct EmulatorSink {
    rig: SharedSink,
    state: Mutex<EmulatorState>,
}

#[derive(Debug, Clone, Copy, Default)]
struct EmulatorState {
    /// The rig was told that the board has power.
    on: bool,
    /// The machine has ended since it was launched.
    ended: bool,
}

impl EmulatorSink {
    pub(super) fn new(rig: SharedSink) -> Self {
        Self { rig, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, EmulatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Expects a launch.
    pub(super) fn launches(&self) {
        *self.state() = EmulatorState::default();
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
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        self.rig.attach(console, transport);
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
            BoardEvent::Injected { .. }
            | BoardEvent::ReadBack { .. }
            | BoardEvent::Forwarded { .. }
            | BoardEvent::Stood { .. }
            | BoardEvent::Deploying { .. }
            | BoardEvent::TakenOver { .. }
            | BoardEvent::Attached { .. } => true,
            BoardEvent::Reset { by_target: true, .. }
            | BoardEvent::Watchdog { .. }
            | BoardEvent::GuestPanic { .. }
            | BoardEvent::Aborted { .. }
            | BoardEvent::TargetExit { .. }
            | BoardEvent::Lockup { .. } => self.state().on,
        };
        if shown {
            self.rig.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jig_model::Cause;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<BoardEvent>>);

    impl BoardSink for Heard {
        fn attach(&self, _console: &ConsoleName, _transport: Box<dyn Transport>) {}
        fn drained(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::ready(()))
        }
        fn event(&self, event: BoardEvent) {
            self.0.lock().unwrap().push(event);
        }
    }

    fn power(state: PowerState) -> BoardEvent {
        BoardEvent::Power { state }
    }

    fn reset(by_target: bool) -> BoardEvent {
        BoardEvent::Reset { by_target, reason: "x".to_owned() }
    }

    #[test]
    fn a_rig_hears_of_the_power_it_asked_for_and_of_what_the_target_does() {
        let heard = Arc::new(Heard::default());
        let sink = EmulatorSink::new(Arc::clone(&heard) as _);
        let lost = BoardEvent::Lost { cause: Cause::EmulatorKilled, detail: "killed".to_owned() };
        // A deployment: launched, reset, lost, switched off.
        sink.launches();
        for event in [power(PowerState::On), reset(false), reset(true), lost.clone()] {
            sink.event(event);
        }
        assert!(!sink.ended());
        sink.event(power(PowerState::Off));
        assert!(sink.ended());
        // A boot.
        sink.launches();
        assert!(!sink.ended());
        sink.event(power(PowerState::On));
        sink.event(reset(false));
        sink.show_on();
        let exit = BoardEvent::TargetExit { code: 3 };
        for event in [reset(false), reset(true), exit.clone(), power(PowerState::Off)] {
            sink.event(event);
        }
        // A caller that makes sure switches off again: no second event.
        sink.event(power(PowerState::Off));
        let wanted = [lost, power(PowerState::On), reset(true), exit, power(PowerState::Off)];
        assert_eq!(*heard.0.lock().unwrap(), wanted);
    }
}
