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
//!    faults again at once, twice in a row. The return address on the stack tells this from a
//!    handler that steps over the instruction, and the next instruction from one that has ended the
//!    cause: neither proves a fault, however often the program comes by. Handlers are those of the
//!    vector table and those that were entered, so a table that was moved hides none.
//!
//! A fault whose handler has returned, which nothing was printed after and which the status registers
//! still show, is told as one that may not be over: the handler may have left it to an endless loop,
//! or have stepped over it without clearing it. Armv6-M has no such registers.

use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_drivers::qemu::{ExceptionLog, Exceptions};
use jig_model::profile::BoardProfile;

use super::capture::{CortexM, irq_active, word};
use crate::debug_info::{ExcReturn, is_fault, unwind};
use crate::fault_status::FaultStatus;
use crate::post_mortem::exception_of;
use crate::{CoreKind, CoreSnapshot, Symbols};

/// How long the machine runs until a handler that was entered counts as one that does not return.
/// A step is given up after as long: it may be one that waits for an interrupt.
const WATCHED: Duration = Duration::from_millis(50);

/// How often a fault has to repeat, and after how many stops no answer is found.
const REPEATS: u32 = 2;
const MOST_STOPS: usize = 16;

/// Where an exception pushes the return address, from the stack pointer behind the entry.
const STACKED_PC: u32 = 0x18;

const SP: usize = 13;
const LR: usize = 14;
const PC: usize = 15;
const XPSR: usize = 16;
const EXCEPTION: u32 = 0x1ff;
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
}

/// A core that is in a fault for good.
#[derive(Debug)]
pub(super) struct FaultStand {
    pub(super) shape: FaultShape,
    /// The core as it stands; of a fault that repeats, at the entry of the handler.
    pub(super) snapshot: CoreSnapshot,
}

/// Looks whether the core is in a fault for good; `watched` are handlers on which there are
/// breakpoints. The machine stands afterwards, without breakpoints.
pub(super) fn standing_in_fault(
    core: &CortexM,
    (channels, log, profile): (&mut DebugChannels, &ExceptionLog, &BoardProfile),
    watched: &[u32],
    symbols: Option<&Symbols>,
) -> Result<Option<FaultStand>, ChannelError> {
    channels.gdb.stand()?;
    let mut packets = Packets::default();
    watched.iter().for_each(|&handler| packets.remove_breakpoint(handler));
    channels.gdb.perform(&packets)?;
    let first = log.seen();
    let mut handlers = core.fault_handlers(channels, profile)?;
    handlers.extend(watched);
    // Those that were entered, whatever table of vectors the core had then.
    let entered = first.handlers.iter().copied();
    handlers.extend(entered.filter(|&at| profile.holds(u64::from(at), u64::from(at) + 2)));
    handlers.sort_unstable();
    handlers.dedup();
    let mut faults = FaultLoop { core, profile, channels, log, handlers, entries: Vec::new() };
    let before = faults.look(symbols)?.is_some();
    let mut entered = false;
    let mut stop = faults.run()?;
    for _ in 0..MOST_STOPS {
        let Some(registers) = stop else { break };
        stop = match faults.came_back(&registers)? {
            Some(Return::Repeats) => {
                let snapshot = faults.core.capture(faults.channels, profile)?;
                return Ok(Some(FaultStand { shape: FaultShape::Repeats, snapshot }));
            }
            Some(Return::WentOn) => return Ok(None),
            Some(Return::Entered) => faults.leave_entry()?,
            None if faults.handlers.contains(&registers[PC]) => {
                entered = true;
                let entry = faults.entry(&registers)?;
                if entry.is_none_or(|entry| faults.holds(entry)) {
                    // The handler comes by its own first instruction, or returns to nowhere.
                    faults.handlers.retain(|&handler| handler != registers[PC]);
                    faults.run()?
                } else {
                    faults.entries.extend(entry);
                    faults.leave_entry()?
                }
            }
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
        None if log.seen().faults == first.faults => faults.uncleared(),
        None => Ok(None),
    }
}

/// An entry of a fault's handler that has not returned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    frame: u32,
    /// Address of the instruction that faulted.
    at: u32,
    /// How often it had faulted just before.
    repeats: u32,
}

/// What a return from a handler leads to.
enum Return {
    /// The instruction faults again: the handler is entered.
    Entered,
    /// It has done so often enough.
    Repeats,
    /// The program goes on.
    WentOn,
}

struct FaultLoop<'a> {
    core: &'a CortexM,
    profile: &'a BoardProfile,
    channels: &'a mut DebugChannels,
    log: &'a ExceptionLog,
    /// First addresses of the handlers of faults.
    handlers: Vec<u32>,
    entries: Vec<Entry>,
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

    /// Returns the core if the last fault that it took is neither active nor cleared, and nothing was
    /// printed since.
    fn uncleared(&mut self) -> Result<Option<FaultStand>, ChannelError> {
        let seen = self.log.seen();
        if seen.faults == 0 || seen.printed || reported_shape(&seen).is_some() {
            return Ok(None);
        }
        let snapshot = self.core.capture(self.channels, self.profile)?;
        let shows = FaultStatus::read(&snapshot).shows_fault();
        Ok(shows.then_some(FaultStand { shape: FaultShape::Uncleared, snapshot }))
    }

    /// Lets the machine run until it enters a handler or comes to an instruction that has faulted;
    /// nothing if it does neither for a while. No breakpoint is left.
    fn run(&mut self) -> Result<Option<Registers>, ChannelError> {
        let (mut before, mut after) = (Packets::default(), Packets::default());
        for place in self.handlers.iter().copied().chain(self.entries.iter().map(|e| e.at)) {
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

    /// Leaves the first instruction of a handler behind, which may be its last.
    fn leave_entry(&mut self) -> Result<Option<Registers>, ChannelError> {
        let registers = self.step()?;
        let pc = registers[PC];
        if self.handlers.contains(&pc) || self.entries.iter().any(|entry| entry.at == pc) {
            return Ok(Some(registers));
        }
        self.run()
    }

    /// Tells whether the handler was entered with this frame before, and has not returned since.
    fn holds(&self, entry: Entry) -> bool {
        self.entries.iter().any(|known| (known.frame, known.at) == (entry.frame, entry.at))
    }

    /// Reads what the handler was entered for; nothing where no frame can be read.
    fn entry(&mut self, registers: &Registers) -> Result<Option<Entry>, ChannelError> {
        let process = ExcReturn::of(registers[LR]).is_some_and(ExcReturn::uses_psp);
        let frame = match process {
            true => {
                let snapshot = self.core.capture(self.channels, self.profile)?;
                snapshot.register("psp").and_then(|psp| u32::try_from(psp).ok())
            }
            false => Some(registers[SP]),
        };
        let Some(frame) = frame else { return Ok(None) };
        Ok(self.returns_to(frame)?.map(|at| Entry { frame, at, repeats: 0 }))
    }

    fn returns_to(&mut self, frame: u32) -> Result<Option<u32>, ChannelError> {
        let place = u64::from(frame) + u64::from(STACKED_PC);
        if !self.profile.holds(place, place + 4) {
            return Ok(None);
        }
        word(self.channels, place as u32).map(|pc| Some(pc & !1))
    }

    /// Finds out what comes of a return to an instruction that has faulted; nothing if the machine
    /// stands at none.
    fn came_back(&mut self, registers: &Registers) -> Result<Option<Return>, ChannelError> {
        let pc = registers[PC];
        let Some(index) = self.entries.iter().rposition(|entry| entry.at == pc) else {
            return Ok(None);
        };
        let last = self.entries[index];
        self.entries.truncate(index);
        // The handler has changed where it returns to, and the program has come here again.
        if self.returns_to(last.frame)? != Some(pc) {
            return Ok(Some(Return::WentOn));
        }
        let level = registers[XPSR] & EXCEPTION;
        let registers = self.step()?;
        let entered = registers[XPSR] & EXCEPTION;
        if !is_fault(entered) {
            // An interrupt was faster: it returns to the instruction, which was not executed.
            let interrupted = entered != 0 && entered != level;
            self.entries.extend(interrupted.then_some(last));
            return Ok(Some(if interrupted { Return::Entered } else { Return::WentOn }));
        }
        let Some(entry) = self.entry(&registers)? else { return Ok(Some(Return::Entered)) };
        let same = (entry.frame, entry.at) == (last.frame, last.at);
        let repeats = if same { last.repeats + 1 } else { 0 };
        self.entries.push(Entry { repeats, ..entry });
        Ok(Some(if repeats >= REPEATS { Return::Repeats } else { Return::Entered }))
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
