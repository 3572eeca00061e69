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
//! A fault whose handler has returned, and which nothing was printed after, is told as one that may not be
//! over in two cases: the status registers still show it (Armv6-M has none), or its handler has not
//! returned to the instruction or behind it, as far as it was caught. The handler may have left it to an
//! endless loop.

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_drivers::qemu::{ExceptionLog, Exceptions};
use jig_model::profile::BoardProfile;

use super::capture::{CortexM, EXCEPTION, PC, SP, XPSR, irq_active};
use super::fault_loop::{
    FaultMachine, FaultShape, FaultStand, Followed, Registers, WATCHED, follow,
};
use crate::debug_info::{is_fault, unwind};
use crate::fault_status::FaultStatus;
use crate::post_mortem::exception_of;
use crate::{CoreKind, CoreSnapshot, Symbols};

/// Breakpoints that a watch has set on a machine, and what it has seen at them.
#[derive(Debug, Clone, Default)]
pub(super) struct WatchPoints {
    /// First addresses of the handlers of faults.
    pub(super) handlers: Vec<u32>,
    /// The last fault that was caught, until its handler returns to the instruction or behind it.
    pub(super) awaited: Option<AwaitedReturn>,
    /// The address of the last instruction that has faulted and that was returned to or stepped over, and
    /// where its handler returned to.
    returned: Option<(u32, u32)>,
    /// How many faults were caught.
    pub(super) caught: u32,
    /// How many times the machine was stopped.
    pub(super) stops: u32,
}

/// How many times a boot is stopped in all: a handler may be that of interrupts, too.
const MOST_WATCH_STOPS: u32 = 48;

/// A fault whose handler has not returned to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AwaitedReturn {
    /// What the frame of it says; nothing where no frame can be read.
    pub(super) fault: Option<FaultFrame>,
}

/// What the entry of a fault's handler has pushed, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultFrame {
    /// Address of the frame.
    pub(super) address: u32,
    /// Address of the instruction that faulted.
    pub(super) at: u32,
    /// Number of the exception that was executed then, 0 for none.
    pub(super) below: u32,
}

impl AwaitedReturn {
    /// Lists where a handler returns to that has the instruction executed again or steps over it.
    fn places(&self) -> impl Iterator<Item = u32> + use<> {
        let steps = |fault: FaultFrame| [0, 2, 4].map(|step| fault.at.wrapping_add(step));
        self.fault.into_iter().flat_map(steps)
    }

    /// Tells whether the handler has returned, of a core that stands at one of the places: with the stack
    /// as it was. Another thread may come by, too.
    fn is_over(&self, registers: &Registers) -> bool {
        /// Bytes that an exception pushes: at least eight words; at most those of Armv8-M with floating
        /// point registers, and a filler.
        const PUSHED: std::ops::RangeInclusive<u32> = 0x20..=0xd4;
        self.fault.is_some_and(|fault| {
            PUSHED.contains(&registers[SP].wrapping_sub(fault.address))
                && registers[XPSR] & EXCEPTION == fault.below
        })
    }
}

impl WatchPoints {
    /// Begins with those of handlers.
    pub(super) fn new(handlers: Vec<u32>) -> Self {
        Self { handlers, ..Self::default() }
    }

    /// Lists the addresses of the breakpoints.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        let is_full = self.is_full();
        let awaited = self.awaited.iter().filter(move |_| !is_full);
        let handlers = self.handlers.iter().copied();
        handlers.chain(awaited.flat_map(AwaitedReturn::places))
    }

    /// Tells whether the machine was stopped often enough.
    pub(super) fn is_full(&self) -> bool {
        self.stops >= MOST_WATCH_STOPS
    }

    /// Takes in where the core stands. If the handler of the last fault has returned, lists the breakpoints
    /// that are not those of handlers; nothing if it has not.
    pub(super) fn take_return(&mut self, registers: &Registers) -> Option<Vec<u32>> {
        let awaited = self.awaited.take_if(|awaited| awaited.is_over(registers))?;
        self.returned = awaited.fault.map(|fault| (fault.at, registers[PC]));
        Some(awaited.places().filter(|place| !self.handlers.contains(place)).collect())
    }

    /// Tells whether the handler of the last of so many faults was seen to return elsewhere: neither to the
    /// instruction nor behind it, or behind it to another function.
    pub(super) fn left_elsewhere(&self, faults: u32, symbols: Option<&Symbols>) -> bool {
        if self.caught != faults {
            return false;
        }
        let function = |at: u32| symbols.and_then(|symbols| symbols.function_start(at.into()));
        self.awaited.is_some() || self.returned.is_some_and(|(at, to)| function(at) != function(to))
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
    channels.gdb.remove_breakpoints()?;
    let first = log.seen();
    let mut handlers = core.fault_handlers(channels, profile)?;
    handlers.extend(&watched.handlers);
    // Those that were entered, whatever table of vectors the core had then.
    let entered = first.handlers.iter().copied();
    handlers.extend(entered.filter(|&at| profile.holds(u64::from(at), u64::from(at) + 2)));
    handlers.sort_unstable();
    handlers.dedup();
    let mut machine = EmulatedCore { core, profile, channels, log };
    match follow(&mut machine, handlers, symbols)? {
        Followed::InFault(stands) => Ok(Some(stands)),
        Followed::InNone { before } if log.seen().faults == first.faults => {
            // A handler that was executed at first may have returned since, unseen.
            let elsewhere = !before && watched.left_elsewhere(first.faults, symbols);
            machine.not_over(elsewhere)
        }
        Followed::GoesOn | Followed::InNone { .. } => Ok(None),
    }
}

struct EmulatedCore<'a> {
    core: &'a CortexM,
    profile: &'a BoardProfile,
    channels: &'a mut DebugChannels,
    log: &'a ExceptionLog,
}

impl FaultMachine for EmulatedCore<'_> {
    type Error = ChannelError;

    fn run_to(
        &mut self,
        places: &mut dyn Iterator<Item = u32>,
    ) -> Result<Option<Registers>, ChannelError> {
        let mut before = Packets::default();
        places.for_each(|place| before.insert_breakpoint(place));
        self.channels.gdb.resume(before)?;
        let stopped = self.channels.gdb.wait_while_it_runs(WATCHED)?;
        if stopped.is_none() {
            self.channels.gdb.interrupt()?;
        }
        self.channels.gdb.remove_breakpoints()?;
        match stopped {
            Some(Stop::Trapped) => self.channels.gdb.registers().map(Some),
            _ => Ok(None),
        }
    }

    fn step(&mut self) -> Result<Registers, ChannelError> {
        self.channels.gdb.step(Packets::default(), WATCHED)?;
        self.channels.gdb.registers()
    }

    fn frame(&mut self, registers: &Registers) -> Result<Option<u32>, ChannelError> {
        self.core.frame(self.channels, self.profile, registers)
    }

    fn stacked(&mut self, frame: u32) -> Result<Option<(u32, u32)>, ChannelError> {
        self.core.stacked(self.channels, self.profile, frame)
    }

    fn capture(&mut self) -> Result<CoreSnapshot, ChannelError> {
        self.core.capture(self.channels, self.profile)
    }

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
}

impl EmulatedCore<'_> {
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
}

/// Tells how a core is in a fault by the exceptions that it has entered and not left.
fn reported_shape(seen: &Exceptions) -> Option<FaultShape> {
    let running = seen.open.last()?.number;
    let fault = seen.open.iter().rev().map(|open| open.number).find(|&number| is_fault(number))?;
    let inside = fault == running;
    Some(if inside { FaultShape::InHandler } else { FaultShape::Below { fault, running } })
}

/// Tells whether a core that stands is in a fault at this moment.
pub(crate) fn fault_shape(
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
    fn a_handler_behind_what_faulted_keeps_its_breakpoint() {
        let fault = FaultFrame { address: STACK, at: 0x100, below: 0 };
        let awaited = Some(AwaitedReturn { fault: Some(fault) });
        let watched =
            |handlers: &[u32]| WatchPoints { awaited, ..WatchPoints::new(handlers.into()) };
        let at = |pc, sp, level: u32| {
            let mut registers: Registers = [0; 17];
            (registers[PC], registers[SP], registers[XPSR]) = (pc, sp, 1 << 24 | level);
            registers
        };
        let mut points = watched(&[0x104, 0x200]);
        // Another thread, and the handler itself.
        for other in
            [at(0x102, STACK + 0x400, 0), at(0x102, STACK - 0x20, 0), at(0x102, STACK + 0x20, 5)]
        {
            assert_eq!(points.take_return(&other), None);
        }
        assert!(points.left_elsewhere(0, None));
        let returned = points.take_return(&at(0x102, STACK + 0x24, 0)).unwrap();
        assert_eq!(returned, [0x100, 0x102]);
        assert_eq!(points.all().collect::<Vec<_>>(), [0x104, 0x200]);
        assert!(!points.left_elsewhere(0, None));
        let mut full = watched(&[0x200]);
        assert_eq!(full.all().count(), 4);
        full.stops = MOST_WATCH_STOPS;
        assert_eq!(full.all().collect::<Vec<_>>(), [0x200]);
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
