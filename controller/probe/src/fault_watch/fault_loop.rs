//! Follows a Cortex-M through the handlers of its faults: does it get over them?
//!
//! Owns the rules; the core may be an emulator's or one behind a probe. See `fault_stand.rs` for what
//! proves a fault.
//!
//! # Design
//! *A core has four to eight breakpoints.* A machine stops at as many of the places as it can, in the
//! given order. So a return in front of the instruction that has faulted may pass unseen, and is then
//! found in the frame when the program comes to that instruction again.

use std::time::Duration;

use super::capture::{EXCEPTION, PC, XPSR};
use crate::debug_info::is_fault;
use crate::{CoreSnapshot, Symbols};

/// How a core is in a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultShape {
    /// It executes the handler.
    InHandler,
    /// It executes another exception, above the handler of a fault.
    Below {
        /// Number of the fault's exception.
        fault: u32,
        /// Number of the other.
        running: u32,
    },
    /// Its handler returns, and the fault comes again.
    Repeats,
    /// Nothing was printed since the fault, its handler has returned, and the status registers still
    /// show it.
    Uncleared,
    /// Nothing was printed since the fault, and its handler has returned elsewhere.
    LeftElsewhere,
    /// Nothing was printed since the fault, and its handler, which is in no table of vectors that was known at
    /// launch, has returned unwatched.
    LeftUnseen,
}

/// A core that is in a fault for good.
#[derive(Debug)]
pub(crate) struct FaultStand {
    pub(crate) shape: FaultShape,
    /// The core as it stands; of a fault that repeats, at the entry of the handler.
    pub(crate) snapshot: CoreSnapshot,
}

/// How long the machine runs until a handler that was entered counts as one that does not return.
/// A step is given up after as long: it may be one that waits for an interrupt.
pub(crate) const WATCHED: Duration = Duration::from_millis(50);

/// How often a fault has to repeat, and how often one whose handler returns in front of it: what is
/// executed again may count the attempts.
const REPEATS: u32 = 2;
const REPEATS_FROM_BEFORE: u32 = 6;

/// After how many stops no answer is found: a repeat takes three where interrupts come in between.
const MOST_STOPS: usize = 48;

/// How far in front of the instruction that has faulted a handler returns to have it executed again.
const BEFORE: u32 = 32;

/// `r0` to `r15` and the program status.
pub(crate) type Registers = [u32; 17];

/// A Cortex-M that stands, and can be run for a moment.
pub(crate) trait FaultMachine {
    /// Why it cannot be used.
    type Error;

    /// Lets the core run until it comes to one of the places, the first of which matter most; nothing
    /// if it does not within [`WATCHED`]. It stands afterwards.
    fn run_to(
        &mut self,
        places: &mut dyn Iterator<Item = u32>,
    ) -> Result<Option<Registers>, Self::Error>;

    /// Counts the faults that the core has taken; nothing where they are not reported.
    fn faults_taken(&self) -> Option<u64> {
        None
    }

    /// Executes one instruction.
    fn step(&mut self) -> Result<Registers, Self::Error>;

    /// Finds the frame that the entry of an exception has pushed, at the first instruction of its
    /// handler; nothing where the stack pointer is not known.
    fn frame(&mut self, registers: &Registers) -> Result<Option<u32>, Self::Error>;

    /// Reads from a frame where the handler returns to, and which exception is executed there, 0 for
    /// none; nothing outside of memory.
    fn stacked(&mut self, frame: u32) -> Result<Option<(u32, u32)>, Self::Error>;

    /// Copies what explains where the core stands.
    fn capture(&mut self) -> Result<CoreSnapshot, Self::Error>;

    /// Looks whether the core is in a fault at this moment.
    fn look(&mut self, symbols: Option<&Symbols>) -> Result<Option<FaultStand>, Self::Error>;
}

/// What became of a core that was followed.
#[derive(Debug)]
pub(crate) enum Followed {
    /// It is in a fault for good.
    InFault(FaultStand),
    /// It gets over its faults.
    GoesOn,
    /// It is in no fault.
    InNone {
        /// It was in one at first.
        before: bool,
    },
}

/// Follows a core, the first addresses of whose handlers of faults are known.
pub(crate) fn follow<M: FaultMachine>(
    machine: &mut M,
    handlers: Vec<u32>,
    symbols: Option<&Symbols>,
) -> Result<Followed, M::Error> {
    let mut faults = FaultLoop { machine, handlers, entries: Vec::new(), inside: Vec::new() };
    let before = faults.machine.look(symbols)?.is_some();
    let mut entered = false;
    let mut stop = faults.run()?;
    for _ in 0..MOST_STOPS {
        let Some(registers) = stop else { break };
        let went_to = match faults.came_back(&registers)? {
            None if faults.handlers.contains(&registers[PC]) => {
                entered = true;
                faults.was_entered(&registers)?
            }
            found => found,
        };
        stop = match went_to {
            Some(WentTo::Repeat) => {
                let snapshot = faults.machine.capture()?;
                let shape = FaultShape::Repeats;
                return Ok(Followed::InFault(FaultStand { shape, snapshot }));
            }
            Some(WentTo::RepeatFromElsewhere) => {
                let snapshot = faults.machine.capture()?;
                let shape = FaultShape::LeftElsewhere;
                return Ok(Followed::InFault(FaultStand { shape, snapshot }));
            }
            Some(WentTo::Elsewhere) => return Ok(Followed::GoesOn),
            Some(WentTo::Handler) => faults.leave_stop()?,
            Some(WentTo::Unknown) => faults.run()?,
            // Not one of these breakpoints.
            None => None,
        };
    }
    // One fault after the other is taken, and none of them repeats: the program goes on.
    if stop.is_some() {
        return Ok(Followed::GoesOn);
    }
    let after = faults.machine.look(symbols)?;
    Ok(match after.filter(|_| entered || before) {
        Some(stands) => Followed::InFault(stands),
        None => Followed::InNone { before },
    })
}

/// An entry of a fault's handler that has not returned yet, or to where the same fault may come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    frame: u32,
    /// Address of the instruction that faulted.
    at: u32,
    /// How often it had faulted just before.
    repeats: u32,
    /// How often it has to.
    wanted: u32,
    /// How often it has come again from elsewhere.
    from_elsewhere: u32,
    /// Its handler has returned elsewhere.
    elsewhere: bool,
    /// How many faults the core had taken then.
    taken: Option<u64>,
    then: Then,
}

/// What is known of the program behind the entry of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// It has not returned.
    Entered,
    /// It has returned in front of the fault.
    Returned,
    /// An interrupt was taken when it was executed again.
    Interrupted,
}

impl Entry {
    fn is_same(&self, other: &Self) -> bool {
        (self.frame, self.at) == (other.frame, other.at)
    }

    /// Lists the addresses at which it shows what becomes of it.
    fn places(&self) -> impl Iterator<Item = u32> + use<> {
        let before = if self.then == Then::Entered { BEFORE } else { 0 };
        let at = self.at;
        (0..=before / 2).map(move |back| at.saturating_sub(2 * back))
    }
}

/// Where the machine went.
enum WentTo {
    /// To a handler, or on its way to one: it is watched on.
    Handler,
    /// To the handler of a fault that has repeated often enough.
    Repeat,
    /// The same, of one whose handler returns elsewhere each time.
    RepeatFromElsewhere,
    /// The program goes on.
    Elsewhere,
    /// To a handler that comes by its own first instruction, or returns to nowhere.
    Unknown,
}

struct FaultLoop<'m, M> {
    machine: &'m mut M,
    /// First addresses of the handlers of faults.
    handlers: Vec<u32>,
    entries: Vec<Entry>,
    /// Addresses in front of an instruction that has faulted at which a handler was executed.
    inside: Vec<u32>,
}

impl<M: FaultMachine> FaultLoop<'_, M> {
    /// Lets the machine run until it enters a handler or comes to an instruction that has faulted;
    /// nothing if it does neither for a while.
    fn run(&mut self) -> Result<Option<Registers>, M::Error> {
        let mut places = self.handlers.clone();
        places.extend(self.places());
        self.machine.run_to(&mut places.into_iter())
    }

    /// Lists the addresses at which it shows what becomes of the entries, the latest first.
    fn places(&self) -> impl Iterator<Item = u32> {
        let places = self.entries.iter().rev().flat_map(Entry::places);
        places.filter(|place| !self.inside.contains(place))
    }

    /// Leaves the instruction of a breakpoint behind, which may be the last of a handler.
    fn leave_stop(&mut self) -> Result<Option<Registers>, M::Error> {
        let registers = self.machine.step()?;
        let pc = registers[PC];
        if self.handlers.contains(&pc) || self.places().any(|place| place == pc) {
            return Ok(Some(registers));
        }
        self.run()
    }

    /// Takes in that a handler is entered.
    fn was_entered(&mut self, registers: &Registers) -> Result<Option<WentTo>, M::Error> {
        let entry = self.entry(registers)?;
        let known = entry.and_then(|entry| self.entries.iter().rposition(|e| e.is_same(&entry)));
        Ok(Some(match (entry, known) {
            (Some(entry), None) => {
                self.entries.push(entry);
                WentTo::Handler
            }
            (Some(entry), Some(index)) if self.entries[index].then == Then::Interrupted => {
                let last = self.entries[index];
                self.entries.truncate(index);
                self.again(last, entry)
            }
            // Others have come since, and its places were too many to stop at.
            (Some(entry), Some(index)) if index + 1 < self.entries.len() => {
                self.entries.remove(index);
                self.entries.push(entry);
                WentTo::Handler
            }
            (Some(entry), Some(index)) if entry.taken > self.entries[index].taken => {
                let last = self.entries.remove(index);
                self.again_from_elsewhere(last, entry)
            }
            _ => {
                self.handlers.retain(|&handler| handler != registers[PC]);
                WentTo::Unknown
            }
        }))
    }

    /// Takes in that an instruction that had faulted before has faulted as soon as it was executed.
    fn again(&mut self, last: Entry, entry: Entry) -> WentTo {
        let same = entry.is_same(&last);
        let repeats = if same { last.repeats + 1 } else { 0 };
        let wanted = if same { last.wanted } else { entry.wanted };
        self.entries.push(Entry { repeats, wanted, ..entry });
        if repeats >= wanted { WentTo::Repeat } else { WentTo::Handler }
    }

    /// The same, where the program has come to the instruction from elsewhere.
    fn again_from_elsewhere(&mut self, last: Entry, entry: Entry) -> WentTo {
        let from_elsewhere = if entry.is_same(&last) { last.from_elsewhere + 1 } else { 0 };
        self.entries.push(Entry { from_elsewhere, ..entry });
        match from_elsewhere < REPEATS_FROM_BEFORE {
            true => WentTo::Handler,
            false => WentTo::RepeatFromElsewhere,
        }
    }

    /// Reads what the handler was entered for; nothing where no frame can be read.
    fn entry(&mut self, registers: &Registers) -> Result<Option<Entry>, M::Error> {
        let Some(frame) = self.machine.frame(registers)? else { return Ok(None) };
        Ok(self.machine.stacked(frame)?.map(|(at, _)| Entry {
            frame,
            at,
            repeats: 0,
            wanted: REPEATS,
            from_elsewhere: 0,
            elsewhere: false,
            taken: self.machine.faults_taken(),
            then: Then::Entered,
        }))
    }

    /// Finds out what comes of a return to an instruction that has faulted, or in front of it; nothing
    /// if the machine stands at none.
    fn came_back(&mut self, registers: &Registers) -> Result<Option<WentTo>, M::Error> {
        let pc = registers[PC];
        if self.inside.contains(&pc) {
            return Ok(None);
        }
        let here = |entry: &Entry| entry.places().any(|place| place == pc);
        let Some(index) = self.entries.iter().rposition(here) else { return Ok(None) };
        let mut last = self.entries[index];
        let level = registers[XPSR] & EXCEPTION;
        if last.then == Then::Entered {
            let stacked = self.machine.stacked(last.frame)?;
            if stacked.is_some_and(|(_, below)| below != level) {
                // The handler itself lies here, and has not returned.
                self.inside.push(pc);
                return Ok(Some(WentTo::Handler));
            }
            match stacked {
                Some((to, _)) if to == pc => {}
                // It has returned in front of the fault, where the core was not stopped.
                Some((to, _)) if last.places().any(|place| place == to) => {
                    last.wanted = REPEATS_FROM_BEFORE;
                }
                // It has stepped over the instruction, and the program has come here again.
                Some((to, _)) if (2..=4).contains(&to.wrapping_sub(last.at)) => {
                    return Ok(Some(WentTo::Elsewhere));
                }
                // The same from elsewhere.
                _ => last.elsewhere = true,
            }
        }
        self.entries.truncate(index);
        if pc != last.at {
            (last.then, last.wanted) = (Then::Returned, REPEATS_FROM_BEFORE);
            self.entries.push(last);
            return Ok(Some(WentTo::Handler));
        }
        let registers = self.machine.step()?;
        let entered = registers[XPSR] & EXCEPTION;
        if !is_fault(entered) {
            // An interrupt was faster. It returns to the instruction, which was not executed, or is
            // followed by the fault.
            let interrupted = entered != 0 && entered != level;
            last.then = Then::Interrupted;
            self.entries.extend(interrupted.then_some(last));
            return Ok(Some(if interrupted { WentTo::Handler } else { WentTo::Elsewhere }));
        }
        let entry = self.entry(&registers)?;
        Ok(Some(match entry {
            None => WentTo::Handler,
            Some(entry) if last.elsewhere => self.again_from_elsewhere(last, entry),
            Some(entry) => self.again(last, entry),
        }))
    }
}
