//! What is wrong with a board's primary console, shared by who says so and the transports that
//! it has in one attempt.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::mangle::{Dice, Effect};

/// One console.
#[derive(Debug)]
pub(super) struct Line(Mutex<State>);

#[derive(Debug)]
struct State {
    /// What is wrong, with the number of the fault that it is of.
    effects: Vec<(usize, Effect)>,
    dice: Dice,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What a transport has to know before it moves bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    /// The fault that has taken the other end away.
    pub(super) away: Option<usize>,
    /// The fault that has broken the transport.
    pub(super) cut: Option<usize>,
    /// The fault that makes bytes late, and how much.
    pub(super) late: Option<(usize, Duration)>,
    /// Bytes have to be looked at.
    pub(super) bytes: bool,
}

/// What was done to a few bytes.
#[derive(Debug, Default)]
pub(super) struct Mangled {
    /// By which faults, in words.
    pub(super) done: Vec<(usize, String)>,
    /// How many bytes the port counts as lost.
    pub(super) counted: u64,
}

impl Line {
    pub(super) fn new() -> Self {
        let (effects, dice) = (Vec::new(), Dice::new());
        Self(Mutex::new(State { effects, dice, reader: None, writer: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes something wrong with it.
    pub(super) fn begin(&self, fault: usize, effect: Effect) {
        let mut state = self.state();
        state.effects.push((fault, effect));
        state.wake();
    }

    /// Puts a fault right.
    pub(super) fn end(&self, fault: usize) {
        let mut state = self.state();
        state.effects.retain(|(of, _)| *of != fault);
        state.wake();
    }

    /// Looks at the transport; a pending read or write is woken when it changes.
    pub(super) fn look(&self, waker: &Waker, writes: bool) -> Condition {
        let mut state = self.state();
        let slot = if writes { &mut state.writer } else { &mut state.reader };
        match slot {
            Some(known) => known.clone_from(waker),
            None => *slot = Some(waker.clone()),
        }
        let mut condition = Condition::default();
        for (fault, effect) in &state.effects {
            match effect {
                Effect::Away => condition.away = Some(*fault),
                Effect::Cut => condition.cut = Some(*fault),
                Effect::Delay(time) => condition.late = Some((*fault, *time)),
                Effect::Overrun(_)
                | Effect::Drop(_)
                | Effect::Corrupt(_)
                | Effect::Garble
                | Effect::HideId(_) => condition.bytes = true,
            }
        }
        condition
    }

    /// Does to the bytes what is wrong with the transport.
    pub(super) fn mangle(&self, bytes: &mut Vec<u8>) -> Mangled {
        let mut state = self.state();
        let State { effects, dice, .. } = &mut *state;
        let mut mangled = Mangled::default();
        for (fault, effect) in effects.iter_mut() {
            let done = effect.apply(bytes, dice);
            mangled.counted += done.counted;
            mangled.done.extend(done.what.map(|what| (*fault, what)));
        }
        effects.retain(|(_, effect)| !effect.is_over());
        mangled
    }

    /// Returns what was held back, when nothing follows.
    pub(super) fn rest(&self) -> Vec<u8> {
        let mut state = self.state();
        let rests = state.effects.iter_mut().map(|(_, effect)| match effect {
            Effect::HideId(filter) => filter.rest(),
            _ => &[],
        });
        rests.collect::<Vec<_>>().concat()
    }
}

impl State {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}
