//! Faults of a board's primary console, shared by the injector and the transports of that console
//! in one attempt.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::mangle::{FaultDice, LineEffect};

/// One console.
#[derive(Debug)]
pub(super) struct FaultyLine(Mutex<FaultyLineState>);

#[derive(Debug)]
struct FaultyLineState {
    /// What is wrong, with the number of the fault that it is of.
    effects: Vec<(usize, LineEffect)>,
    dice: FaultDice,
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
    /// How many characters the port counts as wrong.
    pub(super) garbled: u64,
}

impl FaultyLine {
    pub(super) fn new() -> Self {
        let (effects, dice) = (Vec::new(), FaultDice::new());
        Self(Mutex::new(FaultyLineState { effects, dice, reader: None, writer: None }))
    }

    fn state(&self) -> MutexGuard<'_, FaultyLineState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes something wrong with it.
    pub(super) fn begin(&self, fault: usize, effect: LineEffect) {
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
                LineEffect::Away => condition.away = Some(*fault),
                LineEffect::Cut => condition.cut = Some(*fault),
                LineEffect::Delay(time) => condition.late = Some((*fault, *time)),
                LineEffect::Overrun(_)
                | LineEffect::Drop(_)
                | LineEffect::Corrupt(_)
                | LineEffect::Garble
                | LineEffect::HideId(_) => condition.bytes = true,
            }
        }
        condition
    }

    /// Does to the bytes what is wrong with the transport.
    pub(super) fn mangle(&self, bytes: &mut Vec<u8>) -> Mangled {
        let mut state = self.state();
        let FaultyLineState { effects, dice, .. } = &mut *state;
        let mut mangled = Mangled::default();
        for (fault, effect) in effects.iter_mut() {
            let done = effect.apply(bytes, dice);
            mangled.counted += done.counted;
            mangled.garbled += done.garbled;
            mangled.done.extend(done.what.map(|what| (*fault, what)));
        }
        effects.retain(|(_, effect)| !effect.is_over());
        mangled
    }

    /// Returns what was held back, when nothing follows.
    pub(super) fn rest(&self) -> Vec<u8> {
        let mut state = self.state();
        let rests = state.effects.iter_mut().map(|(_, effect)| match effect {
            LineEffect::HideId(filter) => filter.rest(),
            _ => &[],
        });
        rests.collect::<Vec<_>>().concat()
    }
}

impl FaultyLineState {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}
