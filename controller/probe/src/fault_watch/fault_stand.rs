//! Finds out whether an emulated Cortex-M is in a fault for good.
//!
//! # Design
//! A core that executes the handler of a fault may be about to leave it, and one that does not may
//! be in a fault nevertheless. So the machine runs on for a moment, with breakpoints on the
//! handlers, and one of three things proves that it is in a fault:
//!
//! 1. *The handler does not return.* It is active before and after, and was not entered again.
//! 2. *Another exception runs above it.* The same, by what the core says of active handlers: a tick
//!    may be busy above UsageFault, and NMI interrupts HardFault.
//!    The emulator tells which exceptions the core has entered and not left.
//! 3. *The fault repeats.* The handler returns to the instruction that it was entered for, which
//!    faults again at once, twice in a row; or shortly in front of it, from where the program comes
//!    to it again and faults, several times in a row. The return address on the stack tells this from
//!    a handler that steps over the instruction, and the next instruction from one that has ended the
//!    cause: neither proves a fault, however often the program comes by. An interrupt may be taken
//!    before the handler of a fault that has happened. Handlers are those of the vector table and
//!    those that were entered, so a table that was moved hides none.
//!
//! A fault whose handler has returned, which nothing was printed after and which the status registers
//! still show, is told as one that may not be over: the handler may have left it to an endless loop,
//! or have stepped over it without clearing it. Armv6-M has no such registers: there, such a fault is
//! one whose handler has not returned to the instruction or behind it, as far as it was caught.

use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_drivers::qemu::{ExceptionLog, Exceptions};
use jig_model::profile::BoardProfile;

use super::capture::{CortexM, EXCEPTION, irq_active};
use crate::debug_info::{is_fault, unwind};
use crate::fault_status::FaultStatus;
use crate::post_mortem::exception_of;
use crate::{CoreKind, CoreSnapshot, Symbols};

/// How long the machine runs until a handler that was entered counts as one that does not return.
/// A step is given up after as long: it may be one that waits for an interrupt.
const WATCHED: Duration = Duration::from_millis(50);

/// How often a fault has to repeat, and how often one whose handler returns in front of it: what is
/// executed again may count the attempts.
const REPEATS: u32 = 2;
const REPEATS_FROM_BEFORE: u32 = 6;

/// After how many stops no answer is found: a repeat takes three where interrupts come in between.
const MOST_STOPS: usize = 48;

/// How far in front of the instruction that has faulted a handler returns to have it executed again.
const BEFORE: u32 = 32;

const PC: usize = 15;
const XPSR: usize = 16;
type Registers = [u32; 17];

/// How a core is in a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultShape {
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
}

/// A core that is in a fault for good.
#[derive(Debug)]
pub(super) struct FaultStand {
    pub(super) shape: FaultShape,
    /// The core as it stands; of a fault that repeats, at the entry of the handler.
    pub(super) snapshot: CoreSnapshot,
}

/// Breakpoints that a watch has set on a machine.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchPoints {
    /// First addresses of the handlers of faults.
    pub(super) handlers: Vec<u32>,
    /// Where the handler of the last fault that was caught returns to, if it retries the instruction
    /// or steps over it; nothing once it has. Only of Armv6-M, which has no fault status.
    pub(super) returns: Vec<u32>,
    /// How many faults were caught.
    pub(super) caught: u32,
}

impl WatchPoints {
    /// Lists the addresses of the breakpoints.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.handlers.iter().chain(&self.returns).copied()
    }
}

/// Looks whether the core is in a fault for good. The machine stands afterwards, without breakpoints.
pub(super) fn standing_in_fault(
    core: &CortexM,
    (channels, log, profile): (&mut DebugChannels, &ExceptionLog, &BoardProfile),
    watched: &WatchPoints,
    symbols: Option<&Symbols>,
) -> Result<Option<FaultStand>, ChannelError> {
    channels.gdb.stand()?;
    let mut packets = Packets::default();
    watched.all().for_each(|place| packets.remove_breakpoint(place));
    channels.gdb.perform(&packets)?;
    let first = log.seen();
    let mut handlers = core.fault_handlers(channels, profile)?;
    handlers.extend(&watched.handlers);
    // Those that were entered, whatever table of vectors the core had then.
    let entered = first.handlers.iter().copied();
    handlers.extend(entered.filter(|&at| profile.holds(u64::from(at), u64::from(at) + 2)));
    handlers.sort_unstable();
    handlers.dedup();
    let mut faults = FaultLoop {
        core,
        profile,
        channels,
        log,
        handlers,
        entries: Vec::new(),
        inside: Vec::new(),
    };
    let before = faults.look(symbols)?.is_some();
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
                let snapshot = faults.core.capture(faults.channels, profile)?;
                return Ok(Some(FaultStand { shape: FaultShape::Repeats, snapshot }));
            }
            Some(WentTo::Elsewhere) => return Ok(None),
            Some(WentTo::Handler) => faults.leave_stop()?,
            Some(WentTo::Unknown) => faults.run()?,
            // Not one of these breakpoints.
            None => None,
        };
    }
    // One fault after the other is taken, and none of them repeats: the program goes on.
    if stop.is_some() {
        return Ok(None);
    }
    let after = faults.look(symbols)?;
    match after.filter(|_| entered || before) {
        Some(stands) => Ok(Some(stands)),
        None if log.seen().faults == first.faults => {
            // A handler that was executed at first may have returned since, unseen.
            let known = !before && watched.caught == first.faults;
            faults.not_over(known && !watched.returns.is_empty())
        }
        None => Ok(None),
    }
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
        (self.at.saturating_sub(before)..=self.at).step_by(2)
    }
}

/// Where the machine went.
enum WentTo {
    /// To a handler, or on its way to one: it is watched on.
    Handler,
    /// To the handler of a fault that has repeated often enough.
    Repeat,
    /// The program goes on.
    Elsewhere,
    /// To a handler that comes by its own first instruction, or returns to nowhere.
    Unknown,
}

struct FaultLoop<'a> {
    core: &'a CortexM,
    profile: &'a BoardProfile,
    channels: &'a mut DebugChannels,
    log: &'a ExceptionLog,
    /// First addresses of the handlers of faults.
    handlers: Vec<u32>,
    entries: Vec<Entry>,
    /// Addresses in front of an instruction that has faulted at which a handler was executed.
    inside: Vec<u32>,
}

impl FaultLoop<'_> {
    /// Looks whether the core is in a fault at this moment.
    fn look(&mut self, symbols: Option<&Symbols>) -> Result<Option<FaultStand>, ChannelError> {
        if self.core.exception(self.channels)? == 0 {
            return Ok(None);
        }
        let snapshot = self.core.capture(self.channels, self.profile)?;
        let irq = self.core.kind != CoreKind::Armv6m && irq_active(self.channels)?;
        let reported = reported_shape(&self.log.seen());
        let shape = reported.or_else(|| fault_shape(&snapshot, irq, symbols));
        Ok(shape.map(|shape| FaultStand { shape, snapshot }))
    }

    /// Returns the core if the last fault that it took is not active, nothing was printed since, and it
    /// may not be over: the status registers show it, or the handler is known to have returned
    /// `elsewhere` than to the instruction or behind it.
    fn not_over(&mut self, elsewhere: bool) -> Result<Option<FaultStand>, ChannelError> {
        let seen = self.log.seen();
        if seen.faults == 0 || seen.printed || reported_shape(&seen).is_some() {
            return Ok(None);
        }
        let snapshot = self.core.capture(self.channels, self.profile)?;
        let shape = if elsewhere {
            FaultShape::LeftElsewhere
        } else if FaultStatus::read(&snapshot).shows_fault() {
            FaultShape::Uncleared
        } else {
            return Ok(None);
        };
        Ok(Some(FaultStand { shape, snapshot }))
    }

    /// Lets the machine run until it enters a handler or comes to an instruction that has faulted;
    /// nothing if it does neither for a while. No breakpoint is left.
    fn run(&mut self) -> Result<Option<Registers>, ChannelError> {
        let (mut before, mut after) = (Packets::default(), Packets::default());
        for place in self.handlers.iter().copied().chain(self.places()) {
            before.insert_breakpoint(place);
            after.remove_breakpoint(place);
        }
        self.channels.gdb.resume(before)?;
        let stopped = self.channels.gdb.wait(WATCHED)?;
        if stopped.is_none() {
            self.channels.gdb.interrupt()?;
        }
        self.channels.gdb.perform(&after)?;
        match stopped {
            Some(Stop::Trapped) => self.channels.gdb.registers().map(Some),
            _ => Ok(None),
        }
    }

    fn step(&mut self) -> Result<Registers, ChannelError> {
        self.channels.gdb.step(Packets::default(), WATCHED)?;
        self.channels.gdb.registers()
    }

    /// Lists the addresses at which it shows what becomes of the entries.
    fn places(&self) -> impl Iterator<Item = u32> {
        let places = self.entries.iter().flat_map(Entry::places);
        places.filter(|place| !self.inside.contains(place))
    }

    /// Leaves the instruction of a breakpoint behind, which may be the last of a handler.
    fn leave_stop(&mut self) -> Result<Option<Registers>, ChannelError> {
        let registers = self.step()?;
        let pc = registers[PC];
        if self.handlers.contains(&pc) || self.places().any(|place| place == pc) {
            return Ok(Some(registers));
        }
        self.run()
    }

    /// Takes in that a handler is entered.
    fn was_entered(&mut self, registers: &Registers) -> Result<Option<WentTo>, ChannelError> {
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

    /// Reads what the handler was entered for; nothing where no frame can be read.
    fn entry(&mut self, registers: &Registers) -> Result<Option<Entry>, ChannelError> {
        let Some(frame) = self.core.frame(self.channels, self.profile, registers)? else {
            return Ok(None);
        };
        Ok(self.stacked(frame)?.map(|(at, _)| Entry {
            frame,
            at,
            repeats: 0,
            wanted: REPEATS,
            then: Then::Entered,
        }))
    }

    fn stacked(&mut self, frame: u32) -> Result<Option<(u32, u32)>, ChannelError> {
        self.core.stacked(self.channels, self.profile, frame)
    }

    /// Finds out what comes of a return to an instruction that has faulted, or in front of it; nothing
    /// if the machine stands at none.
    fn came_back(&mut self, registers: &Registers) -> Result<Option<WentTo>, ChannelError> {
        let pc = registers[PC];
        if self.inside.contains(&pc) {
            return Ok(None);
        }
        let here = |entry: &Entry| entry.places().any(|place| place == pc);
        let Some(index) = self.entries.iter().rposition(here) else { return Ok(None) };
        let mut last = self.entries[index];
        let level = registers[XPSR] & EXCEPTION;
        if last.then == Then::Entered {
            let stacked = self.stacked(last.frame)?;
            if stacked.is_some_and(|(_, below)| below != level) {
                // The handler itself lies here, and has not returned.
                self.inside.push(pc);
                return Ok(Some(WentTo::Handler));
            }
            // The handler has changed where it returns to, and the program has come here again.
            if stacked.is_none_or(|(to, _)| to != pc) {
                return Ok(Some(WentTo::Elsewhere));
            }
        }
        self.entries.truncate(index);
        if pc != last.at {
            (last.then, last.wanted) = (Then::Returned, REPEATS_FROM_BEFORE);
            self.entries.push(last);
            return Ok(Some(WentTo::Handler));
        }
        let registers = self.step()?;
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
        Ok(Some(entry.map_or(WentTo::Handler, |entry| self.again(last, entry))))
    }
}

/// Tells how a core is in a fault by the exceptions that it has entered and not left.
fn reported_shape(seen: &Exceptions) -> Option<FaultShape> {
    let running = seen.open.last()?.number;
    let fault = seen.open.iter().rev().map(|open| open.number).find(|&number| is_fault(number))?;
    let inside = fault == running;
    Some(if inside { FaultShape::InHandler } else { FaultShape::Below { fault, running } })
}

/// Tells whether a core that stands is in a fault at this moment.
pub(super) fn fault_shape(
    snapshot: &CoreSnapshot,
    irq_active: bool,
    symbols: Option<&Symbols>,
) -> Option<FaultShape> {
    let running = exception_of(&snapshot.registers).filter(|&number| number != 0)?;
    if is_fault(running) {
        return Some(FaultShape::InHandler);
    }
    let told = FaultStatus::read(snapshot).active_fault(running, irq_active);
    let interrupted = || {
        let unwound = unwind(snapshot, symbols);
        let mut contexts = unwound.interrupted.into_iter().filter_map(|entry| entry.context);
        contexts.find_map(|context| Some(context.exception()).filter(|&number| is_fault(number)))
    };
    told.or_else(interrupted).map(|fault| FaultShape::Below { fault, running })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryRange, RegisterValue};

    const STACK: u32 = 0x2000_0000;

    /// A core that executes an exception whose frame was pushed while `below` was executed.
    fn core(running: u32, below: u32) -> CoreSnapshot {
        let values = [("sp", STACK), ("lr", 0xffff_fff1), ("pc", 0x100), ("xpsr", running)];
        let registers = values.map(|(name, value)| RegisterValue {
            name: name.to_owned(),
            bits: 32,
            value: value.into(),
        });
        let frame = [0, 0, 0, 0, 0, 0, 0x200, 1 << 24 | below];
        let bytes = frame.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let memory = vec![MemoryRange { start: STACK.into(), bytes }];
        CoreSnapshot { kind: CoreKind::Armv6m, registers: registers.into(), memory }
    }

    #[test]
    fn a_core_is_in_the_fault_that_it_has_entered_and_not_left() {
        use jig_drivers::qemu::OpenException;
        for (open, shape) in [
            (&[][..], None),
            (&[15], None),
            (&[3], Some(FaultShape::InHandler)),
            (&[15, 6], Some(FaultShape::InHandler)),
            (&[6, 15], Some(FaultShape::Below { fault: 6, running: 15 })),
            (&[6, 3, 2], Some(FaultShape::Below { fault: 3, running: 2 })),
        ] {
            let open = open.iter().map(|&number| OpenException { number, entry: 1 }).collect();
            let seen = Exceptions { open, ..Exceptions::default() };
            assert_eq!(reported_shape(&seen), shape, "{seen:?}");
        }
    }

    #[test]
    fn a_core_is_in_a_fault_also_below_another_exception() {
        for (running, below, found) in [
            (0, 0, None),
            (3, 0, Some(FaultShape::InHandler)),
            (15, 0, None),
            (2, 0, None),
            (2, 15, None),
            // The smallest cores tell of it by the stack only.
            (2, 3, Some(FaultShape::Below { fault: 3, running: 2 })),
        ] {
            assert_eq!(fault_shape(&core(running, below), false, None), found, "{running} {below}");
        }
    }
}
