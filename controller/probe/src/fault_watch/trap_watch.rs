//! Finds out whether an emulated RISC-V core stands in the handler of a fault for good.
//!
//! # Design
//! *Two kinds of evidence.* The registers show the last trap until another one comes or the handler
//! changes them; see `riscv/trap.rs`. The emulator reports each trap when it is taken, so that the
//! last fault is known whatever the handler does; it does not report returns. A reported fault
//! was not left in two cases:
//!
//! 1. The core stands in the handler, and so it did whenever a later trap came.
//! 2. No trap came after it, nothing was printed after it, and the core shows the entry of a trap: no
//!    `mret` was executed since. This holds whatever code is executed.
//!
//! One whose handler has returned may not be over, if nothing was printed after it and the handler has
//! returned neither to the instruction nor behind it. `mepc` shows that where no trap came after it. Later
//! traps, as those of a tick, change `mepc`, and then only the addresses are known that they have
//! interrupted: none lies in the function that has faulted, nor does the program counter. That counts for
//! faults only which no system handles as part of its work ([`is_emulated`]).

use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_drivers::qemu::{ExceptionLog, Exceptions, TrapTaken};
use jig_model::profile::BoardProfile;

use super::capture::{capture_riscv, registers_riscv};
use crate::debug_info::unwind;
use crate::riscv::{Trap, TrapStand, in_call, in_reported, stand};
use crate::{CoreSnapshot, Symbols};

/// How long a handler is watched for coming back to what faulted. One that emulates an
/// instruction does so within microseconds.
const WATCHED: Duration = Duration::from_millis(20);

/// How long a handler that the core has entered may take until it returns.
const RETURNED: Duration = Duration::from_millis(250);

/// How many times as long the handler of an environment call is watched.
const CALL_WATCHES: u32 = 5;

/// How often a fault has to repeat, and how often one whose handler returns in front of it: what is
/// executed again may count the attempts.
const REPEATS: u32 = 2;
const REPEATS_FROM_BEFORE: u32 = 6;

/// How often a repeat is tried to be seen: a tick in between hides it.
const MOST_TRIES: u32 = 24;

/// How far in front of the instruction that has faulted a handler returns to have it executed again.
const BEFORE: u32 = 32;

/// How often a call has to follow itself until it is looked at for being one that repeats.
const CALLS: u32 = 3;

/// How long one instruction may take.
const STEP: Duration = Duration::from_millis(50);

/// A core that is in a fault.
pub(super) struct TrapFound {
    pub(super) snapshot: CoreSnapshot,
    pub(super) shape: TrapShape,
}

/// How a core is in a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrapShape {
    /// Its registers show that it stands in the handler, or show no return from there.
    Last,
    /// It stands in the handler of a fault that it has reported.
    Reported(Trap),
    /// It has not returned from the last fault, wherever it stands.
    NotLeft(Trap),
    /// As [`Self::NotLeft`], where addresses are translated.
    MayNotBeLeft(Trap),
    /// Its handler has returned elsewhere.
    LeftElsewhere(Trap),
    /// The core was seen in other functions only since.
    OnlyElsewhereSince(Trap),
    /// Its handler returns, and the fault comes again.
    Repeats,
    /// The handler of an environment call returns to the call.
    CallRepeats,
    /// It stands in the handler of an environment call, which does not return.
    Call,
    /// As [`Self::Call`], by a call that asks for the end with the code of a failure.
    FailedExit(i32),
    /// As [`Self::Call`], by a call of a program that the handler's owner may not want to answer.
    CallOfUser(Trap),
}

/// What the registers show of the last trap.
enum ShownByRegisters {
    Found(TrapFound),
    /// The program goes on where `mepc` says.
    WentOn,
    Nothing,
}

/// Looks twice; returns the core where it stands in a fault, or where no return from one shows.
/// The machine stands afterwards.
pub(super) fn standing_in_trap(
    (channels, log): (&mut DebugChannels, &ExceptionLog),
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<TrapFound>, ChannelError> {
    channels.gdb.stand()?;
    channels.gdb.remove_breakpoints()?;
    let seen = log.seen();
    let snapshot = capture_riscv(channels, profile)?;
    let entered = stand(&snapshot, symbols, &unwind(&snapshot, symbols));
    let inside = matches!(entered, Some(TrapStand::InHandler { .. }));
    for trap in suspects(&snapshot, &seen) {
        if repeats(channels, trap, if inside { RETURNED } else { WATCHED })? {
            let snapshot = capture_riscv(channels, profile)?;
            let shape = if trap.is_call() { TrapShape::CallRepeats } else { TrapShape::Repeats };
            return Ok(Some(TrapFound { snapshot, shape }));
        }
    }
    let shown = match shown_by_registers(channels, profile, symbols)? {
        // The handler may have set where it returns to.
        ShownByRegisters::WentOn => return left_elsewhere((channels, log), profile, symbols),
        ShownByRegisters::Found(found) => Some(found),
        ShownByRegisters::Nothing => None,
    };
    let reported = standing_in_reported((channels, log), profile, symbols)?;
    Ok(match (shown, reported) {
        // The registers prove it, and tell more.
        (Some(found), Some(_)) if found.is_proof(symbols) => Some(found),
        (_, Some(reported)) => Some(reported),
        (Some(shown), None) => Some(shown),
        (None, None) => left_elsewhere((channels, log), profile, symbols)?,
    })
}

/// Returns the core if the handler of the last fault has returned elsewhere.
fn left_elsewhere(
    (channels, log): (&mut DebugChannels, &ExceptionLog),
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<TrapFound>, ChannelError> {
    let seen = log.seen();
    let Some(taken) = seen.fault.filter(|_| !seen.printed) else { return Ok(None) };
    let snapshot = capture_riscv(channels, profile)?;
    let trap = Trap { cause: taken.cause, at: taken.at, value: taken.value, handler: 0 };
    let shape = match taken.interrupted.as_slice() {
        [] => trap.was_left_elsewhere(&snapshot, symbols).then_some(TrapShape::LeftElsewhere(trap)),
        later => {
            let start = |address: u32| symbols?.function_start(address.into());
            let left = left_function(trap.at, later.iter().copied().chain([pc(&snapshot)]), start);
            let ends = left && !is_emulated(trap.cause, instruction(channels, trap.at)?);
            ends.then_some(TrapShape::OnlyElsewhereSince(trap))
        }
    };
    Ok(shape.map(|shape| TrapFound { snapshot, shape }))
}

/// Reads an instruction; nothing where the core may not.
fn instruction(channels: &mut DebugChannels, at: u32) -> Result<Option<u32>, ChannelError> {
    let mut bytes = [0; 4];
    match channels.gdb.read_memory(at, &mut bytes) {
        Ok(()) => Ok(Some(u32::from_le_bytes(bytes))),
        Err(ChannelError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Tells whether systems handle such a fault as part of their work: they emulate misaligned accesses, map
/// pages, switch the floating-point unit on when it is first used, and emulate control registers.
pub(super) fn is_emulated(cause: u32, instruction: Option<u32>) -> bool {
    const ILLEGAL: u32 = 2;
    // What assemblers make of `unimp`: a write to a register that is read-only.
    const UNIMP: u32 = 0xc000_1073;
    const MISALIGNED: [u32; 2] = [4, 6];
    const PAGE: [u32; 3] = [12, 13, 15];
    // Loads, stores and operations of floating point, and SYSTEM; then the compressed loads and stores.
    const OPCODES: [u32; 8] = [0x07, 0x27, 0x43, 0x47, 0x4b, 0x4f, 0x53, 0x73];
    const COMPRESSED: [(u32, u32); 8] =
        [(0, 1), (0, 3), (0, 5), (0, 7), (2, 1), (2, 3), (2, 5), (2, 7)];
    match (cause, instruction) {
        (ILLEGAL, None) => true,
        (ILLEGAL, Some(UNIMP)) => false,
        (ILLEGAL, Some(word)) if word & 3 == 3 => OPCODES.contains(&(word & 0x7f)),
        (ILLEGAL, Some(word)) => COMPRESSED.contains(&(word & 3, word >> 13 & 7)),
        (cause, _) => MISALIGNED.contains(&cause) || PAGE.contains(&cause),
    }
}

/// Tells whether a core that has faulted at an address was in other functions only since; `start` finds
/// where the function of an address begins.
fn left_function(
    at: u32,
    since: impl IntoIterator<Item = u32>,
    start: impl Fn(u32) -> Option<u64>,
) -> bool {
    let Some(faulted) = start(at) else { return false };
    since.into_iter().all(|address| start(address).is_some_and(|other| other != faulted))
}

impl TrapFound {
    fn is_proof(&self, symbols: Option<&Symbols>) -> bool {
        let stand = stand(&self.snapshot, symbols, &unwind(&self.snapshot, symbols));
        self.shape != TrapShape::Last || matches!(stand, Some(TrapStand::InHandler { .. }))
    }
}

/// Lists the traps that may repeat.
fn suspects(snapshot: &CoreSnapshot, seen: &Exceptions) -> Vec<Trap> {
    let mut traps = Trap::last(snapshot);
    let calls = seen.call.iter().filter(|call| call.in_a_row >= CALLS);
    for trap in seen.fault.iter().chain(calls).flat_map(|taken| handled(taken, snapshot)) {
        if !traps.iter().any(|known| (known.at, known.handler) == (trap.at, trap.handler)) {
            traps.push(trap);
        }
    }
    traps
}

/// Adds the handlers that a reported trap may have entered.
fn handled(taken: &TrapTaken, snapshot: &CoreSnapshot) -> Vec<Trap> {
    let &TrapTaken { cause, at, value, .. } = taken;
    Trap { cause, at, value, handler: 0 }.with_handlers(snapshot)
}

fn shown_by_registers(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<ShownByRegisters, ChannelError> {
    let Some((_, first)) = look(channels, profile, symbols)? else {
        let found = standing_in_call(channels, profile, symbols)?;
        return Ok(found.map_or(ShownByRegisters::Nothing, ShownByRegisters::Found));
    };
    let faulted_itself = matches!(first, TrapStand::InHandler { handler_faulted: true, .. });
    if faulted_itself {
        run_for(channels, WATCHED)?;
    } else if came_back(channels, first.trap())? {
        return Ok(ShownByRegisters::WentOn);
    }
    let second = look(channels, profile, symbols)?;
    let same = second.filter(|(_, second)| second.trap() == first.trap() || faulted_itself);
    Ok(same.map_or(ShownByRegisters::Nothing, |(snapshot, _)| {
        ShownByRegisters::Found(TrapFound { snapshot, shape: TrapShape::Last })
    }))
}

/// Returns the core where it has not left the last fault or call that it has reported.
fn standing_in_reported(
    (channels, log): (&mut DebugChannels, &ExceptionLog),
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<TrapFound>, ChannelError> {
    let look = |channels: &mut DebugChannels| -> Result<_, ChannelError> {
        let snapshot = capture_riscv(channels, profile)?;
        let shape = not_left(&snapshot, symbols, &log.seen());
        Ok(shape.map(|shape| TrapFound { snapshot, shape }))
    };
    let Some(first) = look(channels)? else { return Ok(None) };
    match first.shape {
        TrapShape::CallOfUser(call) => {
            for _ in 0..CALL_WATCHES {
                if came_back(channels, call)? {
                    return Ok(None);
                }
            }
        }
        TrapShape::Reported(trap) if came_back(channels, trap)? => return Ok(None),
        TrapShape::Reported(_) => {}
        _ => run_for(channels, WATCHED)?,
    }
    Ok(look(channels)?.filter(|second| second.shape == first.shape))
}

/// Tells how a core has not left the last trap that it has reported.
fn not_left(
    snapshot: &CoreSnapshot,
    symbols: Option<&Symbols>,
    seen: &Exceptions,
) -> Option<TrapShape> {
    let unwound = unwind(snapshot, symbols);
    let inside = |taken: &TrapTaken| {
        handled(taken, snapshot)
            .into_iter()
            .find(|&trap| in_reported(trap, &taken.interrupted, snapshot, symbols, &unwound))
    };
    let alone = |taken: &&TrapTaken| taken.interrupted.is_empty();
    if let Some(fault) = &seen.fault {
        if let Some(trap) = inside(fault) {
            return Some(TrapShape::Reported(trap));
        }
        let &TrapTaken { cause, at, value, .. } = fault;
        let trap = Trap { cause, at, value, handler: 0 };
        if alone(&fault) && !seen.printed && trap.is_open(snapshot) {
            let translated = snapshot.register("satp").is_some_and(|satp| satp != 0);
            return Some(match translated {
                true => TrapShape::MayNotBeLeft(trap),
                false => TrapShape::NotLeft(trap),
            });
        }
    }
    let call = seen.call.as_ref().filter(alone).filter(|_| Trap::may_be_unanswered(snapshot))?;
    inside(call).map(TrapShape::CallOfUser)
}

/// Returns the core where it stands in the handler of an environment call for good.
fn standing_in_call(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<TrapFound>, ChannelError> {
    if Trap::call(&registers_riscv(channels)?).is_none() {
        return Ok(None);
    }
    let look = |channels: &mut DebugChannels| -> Result<_, ChannelError> {
        let snapshot = capture_riscv(channels, profile)?;
        let call = in_call(&snapshot, symbols, &unwind(&snapshot, symbols));
        Ok(call.map(|call| (snapshot, call)))
    };
    let Some((_, first)) = look(channels)? else { return Ok(None) };
    for _ in 0..CALL_WATCHES {
        if came_back(channels, first)? {
            return Ok(None);
        }
    }
    let second = look(channels)?.filter(|(_, second)| *second == first);
    // A handler in C has overwritten the code, which the program may have loaded as a constant.
    let loaded = |call: Trap| {
        let ranges = symbols?.ranges();
        ranges.exits.code_loaded(call.at, &ranges.code)
    };
    Ok(second.and_then(|(snapshot, call)| {
        let shape = match Trap::failed_exit(&snapshot) {
            Some(code) => TrapShape::FailedExit(code),
            None if Trap::is_good_exit(&snapshot) => TrapShape::FailedExit(loaded(call)?),
            None => TrapShape::Call,
        };
        Some(TrapFound { snapshot, shape })
    }))
}

/// Tells whether the handler of a trap returns to the instruction that has caused it, or shortly in
/// front of it, and it does so again at once; `within` is how long the first return may take. The machine stands afterwards, at
/// the entry of the handler if so.
fn repeats(
    channels: &mut DebugChannels,
    trap: Trap,
    within: Duration,
) -> Result<bool, ChannelError> {
    if run_to(channels, &[trap.at], within)? != Some(trap.at) {
        return Ok(false);
    }
    let (mut repeated, mut wanted) = (0, REPEATS);
    let first = trap.at.saturating_sub(BEFORE);
    let mut places: Vec<u32> = (first..=trap.at).step_by(2).collect();
    for _ in 0..MOST_TRIES {
        // It faults, if it is what has faulted before.
        let (entered, last) = step(channels, trap)?;
        if entered != trap.handler || last.is_none_or(|last| last.at != trap.at) {
            return Ok(false);
        }
        if repeated >= wanted {
            return Ok(true);
        }
        match returned(channels, trap, &mut places)? {
            Return::Unchanged => repeated += 1,
            Return::Before => {
                (repeated, wanted) = (repeated + 1, REPEATS_FROM_BEFORE);
                if run_to(channels, &[trap.at], RETURNED)? != Some(trap.at) {
                    return Ok(false);
                }
            }
            Return::Hidden => {}
            Return::Elsewhere => return Ok(false),
        }
    }
    Ok(false)
}

/// Where a handler that was just entered has returned to.
enum Return {
    /// To the instruction that has faulted, where the machine stands.
    Unchanged,
    /// Shortly in front of it.
    Before,
    /// To there, but an interrupt came in between: the program may have gone on before.
    Hidden,
    Elsewhere,
}

/// `places` are the addresses to which it may return; those that the handler itself is found to
/// execute are taken out.
fn returned(
    channels: &mut DebugChannels,
    trap: Trap,
    places: &mut Vec<u32>,
) -> Result<Return, ChannelError> {
    for _ in 0..MOST_TRIES {
        // The first instruction of the handler may be its last.
        let (mut pc, mut last) = step(channels, trap)?;
        if !places.contains(&pc) {
            let stops = [&places[..], &[trap.handler]].concat();
            let Some(stop) = run_to(channels, &stops, RETURNED)? else { break };
            (pc, last) = (stop, last_of(&registers_riscv(channels)?, trap));
        }
        match last {
            Some(last) if pc == trap.at && last.at == trap.at => return Ok(Return::Unchanged),
            Some(last) if last.at == pc && places.contains(&pc) => return Ok(Return::Before),
            None if pc == trap.at => return Ok(Return::Hidden),
            // The handler has not returned.
            Some(last) if last.at == trap.at && pc != trap.handler && places.contains(&pc) => {
                places.retain(|&place| place != pc);
            }
            // The handler has changed where it returns to, or another fault comes.
            Some(_) => break,
            // An interrupt.
            None => {}
        }
    }
    Ok(Return::Elsewhere)
}

/// Executes one instruction; returns where the machine stands, and the last trap if that was a
/// fault, or of the same cause.
fn step(channels: &mut DebugChannels, trap: Trap) -> Result<(u32, Option<Trap>), ChannelError> {
    channels.gdb.step(Packets::default(), STEP)?;
    let snapshot = registers_riscv(channels)?;
    Ok((pc(&snapshot), last_of(&snapshot, trap)))
}

fn pc(snapshot: &CoreSnapshot) -> u32 {
    snapshot.register("pc").and_then(|pc| u32::try_from(pc).ok()).unwrap_or_default()
}

/// Finds the last trap that went to the same handler, if that was a fault, or of the same cause.
fn last_of(snapshot: &CoreSnapshot, trap: Trap) -> Option<Trap> {
    let entered = Trap::entered(snapshot).into_iter();
    let faults = Trap::last(snapshot).into_iter();
    let same = entered.filter(|last| last.cause == trap.cause);
    faults.chain(same).find(|last| last.handler == trap.handler)
}

/// Lets the machine run for a while. It stands afterwards.
fn run_for(channels: &mut DebugChannels, time: Duration) -> Result<(), ChannelError> {
    run_to(channels, &[], time).map(drop)
}

/// Lets the machine run for a while, or up to one of these instructions, which it returns. It stands
/// afterwards.
fn run_to(
    channels: &mut DebugChannels,
    places: &[u32],
    time: Duration,
) -> Result<Option<u32>, ChannelError> {
    let mut before = Packets::default();
    places.iter().for_each(|&place| before.insert_breakpoint(place));
    channels.gdb.resume(before)?;
    let stopped = channels.gdb.wait_while_it_runs(time)?;
    if stopped.is_none() {
        channels.gdb.interrupt()?;
    }
    channels.gdb.remove_breakpoints()?;
    match stopped {
        Some(Stop::Trapped) => registers_riscv(channels).map(|snapshot| Some(pc(&snapshot))),
        _ => Ok(None),
    }
}

fn look(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<(CoreSnapshot, TrapStand)>, ChannelError> {
    let snapshot = capture_riscv(channels, profile)?;
    let found = stand(&snapshot, symbols, &unwind(&snapshot, symbols));
    Ok(found.map(|found| (snapshot, found)))
}

/// Lets the machine run for a while; tells whether it came by the instruction that faulted or one
/// of the next. It stands afterwards.
fn came_back(channels: &mut DebugChannels, trap: Trap) -> Result<bool, ChannelError> {
    // The faulting instruction has 2 or 4 bytes, if it is one at all.
    let places = [trap.at, trap.at.wrapping_add(2), trap.at.wrapping_add(4)];
    Ok(run_to(channels, &places, WATCHED)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_left_when_the_core_is_seen_in_others_only() {
        // Functions of 0x10 bytes up to 0x100.
        let start = |address: u32| (address < 0x100).then_some(u64::from(address & !0xf));
        for (since, left) in [
            (&[0x24, 0x38][..], true),
            (&[0x24, 0x14], false),
            // Of code without a name it is not known.
            (&[0x24, 0x104], false),
        ] {
            assert_eq!(left_function(0x10, since.iter().copied(), start), left, "{since:x?}");
        }
        assert!(!left_function(0x104, [0x24], start));
    }

    #[test]
    fn faults_that_systems_handle_are_known() {
        for (cause, instruction, emulated) in [
            // `unimp`, `c.unimp`, an opcode that is none, `ebreak`, a load and a store that fail.
            (2, Some(0xc000_1073), false),
            (2, Some(0x0000_0000), false),
            (2, Some(0xffff_ffff), false),
            (3, Some(0x0010_0073), false),
            (5, Some(0x0000_2503), false),
            (7, Some(0x00a5_2023), false),
            // `flw`, `fadd.s`, `csrr`, `c.fldsp`, `c.fsw`.
            (2, Some(0x0005_2007), true),
            (2, Some(0x0020_f053), true),
            (2, Some(0xf110_2573), true),
            (2, Some(0x2002), true),
            (2, Some(0xe008), true),
            (2, None, true),
            (4, Some(0x0000_2503), true),
            (13, Some(0x0000_2503), true),
        ] {
            assert_eq!(is_emulated(cause, instruction), emulated, "{cause} {instruction:x?}");
        }
    }
}
