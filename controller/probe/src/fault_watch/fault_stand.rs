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
//! over in three cases: the status registers still show it (Armv6-M has none), its handler has not
//! returned to the instruction or behind it, as far as it was caught, or its handler is none of the first
//! table of vectors. The handler may have left it to an endless loop.

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
    /// First addresses of the handlers of faults, as long as the machine is stopped there.
    pub(super) handlers: Vec<u32>,
    /// Those of the table of vectors at launch.
    begun_with: Vec<u32>,
    /// The last fault that was caught, until its handler returns to the instruction or behind it, and below
    /// it those in whose handlers it was taken.
    awaited: Vec<AwaitedReturn>,
    /// The address of the last instruction that has faulted and that was returned to or stepped over, and
    /// where its handler returned to.
    returned: Option<(u32, u32)>,
    /// How many faults were caught since the launch.
    pub(super) caught: u32,
    /// How many times the machine was stopped since the launch.
    pub(super) stops: u32,
}

/// How many times a machine is stopped in all: a handler may be that of interrupts, too.
const MOST_WATCH_STOPS: u32 = 48;

/// How many faults are awaited at a time. A core takes three within each other before it locks up.
const MOST_AWAITED: usize = 3;

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
    /// as it was, and where the frame says. Another thread may come by, too, and a program that the handler has
    /// sent in front of them.
    fn is_over(&self, registers: &Registers, returns_to: Option<u32>) -> bool {
        /// Bytes that an exception pushes: at least eight words; at most those of Armv8-M with floating
        /// point registers, and a filler.
        const PUSHED: std::ops::RangeInclusive<u32> = 0x20..=0xd4;
        self.fault.is_some_and(|fault| {
            PUSHED.contains(&registers[SP].wrapping_sub(fault.address))
                && returns_to == Some(registers[PC])
                && registers[XPSR] & EXCEPTION == fault.below
        })
    }
}

impl WatchPoints {
    /// Begins with those of handlers.
    pub(super) fn new(handlers: Vec<u32>) -> Self {
        Self { begun_with: handlers.clone(), handlers, ..Self::default() }
    }

    /// Takes in that a handler was entered, of the given fault or of what is none.
    pub(super) fn await_return(&mut self, of: Option<AwaitedReturn>) {
        let is_nested = |fault: FaultFrame| fault.below != 0;
        if !of.and_then(|of| of.fault).is_some_and(is_nested) || self.awaited.len() >= MOST_AWAITED
        {
            self.awaited.clear();
        }
        self.awaited.extend(of);
    }

    /// Lists the addresses of the breakpoints.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        let is_full = self.is_full();
        let awaited = self.awaited.last().into_iter().filter(move |_| !is_full);
        let handlers = self.handlers.iter().copied();
        handlers.chain(awaited.flat_map(AwaitedReturn::places))
    }

    /// Tells whether the machine was stopped often enough.
    pub(super) fn is_full(&self) -> bool {
        self.stops >= MOST_WATCH_STOPS
    }

    /// Returns where the frame of the last fault is, until its handler returns.
    pub(super) fn awaited_frame(&self) -> Option<u32> {
        Some(self.awaited.last()?.fault?.address)
    }

    /// Takes in where the core stands, and where the frame of the last fault returns to. If its handler has
    /// returned, lists the breakpoints to take away and those to set; nothing if it has not.
    pub(super) fn take_return(
        &mut self,
        registers: &Registers,
        returns_to: Option<u32>,
    ) -> Option<(Vec<u32>, Vec<u32>)> {
        let over = self.awaited.pop_if(|awaited| awaited.is_over(registers, returns_to))?;
        self.returned = over.fault.map(|fault| (fault.at, registers[PC]));
        let (before, stay): (Vec<u32>, Vec<u32>) = (over.places().collect(), self.all().collect());
        let is_new = |place: &u32| !before.contains(place) && !self.handlers.contains(place);
        let new = stay.iter().copied().filter(is_new).collect();
        Some((before.into_iter().filter(|place| !stay.contains(place)).collect(), new))
    }

    /// Tells what is known of the handler of the last fault, which has returned, if that may not be over: it
    /// was seen to return neither to the instruction nor behind it, or behind it to another function, or it was
    /// not seen.
    pub(super) fn left(&self, seen: &Exceptions, symbols: Option<&Symbols>) -> Option<FaultShape> {
        if u64::from(self.caught) != seen.since_launch {
            // Where there are none, nothing was to be seen.
            let begun_with = Some(&self.begun_with).filter(|known| !known.is_empty())?;
            let is_unseen = |handler: &u32| !begun_with.contains(handler);
            return seen.handlers.iter().any(is_unseen).then_some(FaultShape::LeftUnseen);
        }
        let function = |at: u32| symbols.and_then(|symbols| symbols.function_start(at.into()));
        let is_elsewhere = |(at, to): (u32, u32)| function(at) != function(to);
        let elsewhere = !self.awaited.is_empty() || self.returned.is_some_and(is_elsewhere);
        elsewhere.then_some(FaultShape::LeftElsewhere)
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
            let left = if before { None } else { watched.left(&first, symbols) };
            machine.not_over(left)
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

    fn faults_taken(&self) -> Option<u64> {
        Some(self.log.seen().since_launch)
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
    /// may not be over: by how its handler was `left`, or because the status registers show it.
    fn not_over(&mut self, left: Option<FaultShape>) -> Result<Option<FaultStand>, ChannelError> {
        let seen = self.log.seen();
        // A handler that was left by another one is still open for the emulator.
        let is_open = left.is_none() && reported_shape(&seen).is_some();
        if seen.faults == 0 || seen.printed || is_open {
            return Ok(None);
        }
        let snapshot = self.core.capture(self.channels, self.profile)?;
        let uncleared =
            || FaultStatus::read(&snapshot).shows_fault().then_some(FaultShape::Uncleared);
        Ok(left.or_else(uncleared).map(|shape| FaultStand { shape, snapshot }))
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

    /// Registers of a core that executes an exception, 0 for none.
    fn at(pc: u32, sp: u32, level: u32) -> Registers {
        let mut registers = [0; 17];
        (registers[PC], registers[SP], registers[XPSR]) = (pc, sp, 1 << 24 | level);
        registers
    }

    /// Tells what is known without a fault that was not caught.
    fn left(points: &WatchPoints) -> Option<FaultShape> {
        points.left(&Exceptions::default(), None)
    }

    #[test]
    fn a_handler_behind_what_faulted_keeps_its_breakpoint() {
        let fault = FaultFrame { address: STACK, at: 0x100, below: 0 };
        let awaited = AwaitedReturn { fault: Some(fault) };
        let watched = |handlers: &[u32]| {
            let mut points = WatchPoints::new(handlers.into());
            points.await_return(Some(awaited));
            points
        };
        let mut points = watched(&[0x104, 0x200]);
        // Another thread, and the handler itself.
        for other in
            [at(0x102, STACK + 0x400, 0), at(0x102, STACK - 0x20, 0), at(0x102, STACK + 0x20, 5)]
        {
            assert_eq!(points.take_return(&other, Some(other[PC])), None);
        }
        // The handler has sent it in front of the instruction, and it comes by.
        assert_eq!(points.take_return(&at(0x102, STACK + 0x20, 0), Some(0xf0)), None);
        assert_eq!(left(&points), Some(FaultShape::LeftElsewhere));
        let (gone, new) = points.take_return(&at(0x102, STACK + 0x24, 0), Some(0x102)).unwrap();
        assert_eq!((gone, new), (vec![0x100, 0x102], vec![]));
        assert_eq!(points.all().collect::<Vec<_>>(), [0x104, 0x200]);
        assert_eq!(left(&points), None);
        let mut full = watched(&[0x200]);
        assert_eq!(full.all().count(), 4);
        full.stops = MOST_WATCH_STOPS;
        assert_eq!(full.all().collect::<Vec<_>>(), [0x200]);
    }

    #[test]
    fn a_fault_within_a_handler_is_awaited_above_the_first() {
        let awaited =
            |at, address, below| AwaitedReturn { fault: Some(FaultFrame { address, at, below }) };
        let mut points = WatchPoints::new(vec![0x200]);
        points.await_return(Some(awaited(0x100, STACK, 0)));
        points.await_return(Some(awaited(0x180, STACK - 0x40, 6)));
        assert_eq!(points.all().collect::<Vec<_>>(), [0x200, 0x180, 0x182, 0x184]);
        let (gone, new) = points.take_return(&at(0x184, STACK - 0x20, 6), Some(0x184)).unwrap();
        assert_eq!((gone, new), (vec![0x180, 0x182, 0x184], vec![0x100, 0x102, 0x104]));
        assert_eq!(left(&points), Some(FaultShape::LeftElsewhere));
        points.take_return(&at(0x102, STACK + 0x20, 0), Some(0x102)).unwrap();
        assert_eq!(left(&points), None);
        // One behind the other: of the first, nothing is awaited any more.
        points.await_return(Some(awaited(0x100, STACK, 0)));
        points.await_return(Some(awaited(0x180, STACK, 0)));
        points.take_return(&at(0x180, STACK + 0x20, 0), Some(0x180)).unwrap();
        assert_eq!(left(&points), None);
    }

    #[test]
    fn a_fault_whose_handler_was_not_seen_may_not_be_over() {
        let mut points = WatchPoints::new(vec![0x200]);
        points.caught = 1;
        for (faults, handlers, shape) in [
            (1, vec![0x200], None),
            // More than are stopped at.
            (2, vec![0x200], None),
            (2, vec![0x200, 0x300], Some(FaultShape::LeftUnseen)),
        ] {
            let seen = Exceptions { since_launch: faults, handlers, ..Exceptions::default() };
            assert_eq!(points.left(&seen, None), shape, "{seen:?}");
        }
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
