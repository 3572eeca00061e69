//! Finds out whether an emulated RISC-V core stands in the handler of a fault for good.

use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_model::profile::BoardProfile;

use super::capture::{capture_riscv, registers_riscv};
use crate::debug_info::unwind;
use crate::riscv::{Trap, TrapStand, in_call, stand};
use crate::{CoreSnapshot, Symbols};

/// How long a handler is watched for coming back to what faulted. One that emulates an
/// instruction does so within microseconds.
const WATCHED: Duration = Duration::from_millis(20);

/// How many times as long the handler of an environment call is watched.
const CALL_WATCHES: u32 = 5;

/// How often a fault has to repeat, and how often that is tried: a tick in between hides it.
const REPEATS: u32 = 2;
const MOST_TRIES: u32 = 16;

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
    /// It stands in the handler, or no return from there shows.
    Last,
    /// Its handler returns, and the fault comes again.
    Repeats,
    /// It stands in the handler of an environment call, which does not return.
    Call,
}

/// Looks twice; returns the core where it stands in a fault, or where no return from one shows.
/// The machine stands afterwards.
pub(super) fn standing_in_trap(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<TrapFound>, ChannelError> {
    channels.gdb.stand()?;
    for trap in Trap::last(&registers_riscv(channels)?) {
        if repeats(channels, trap)? {
            let snapshot = capture_riscv(channels, profile)?;
            return Ok(Some(TrapFound { snapshot, shape: TrapShape::Repeats }));
        }
    }
    let Some((_, first)) = look(channels, profile, symbols)? else {
        return standing_in_call(channels, profile, symbols);
    };
    let faulted_itself = matches!(first, TrapStand::InHandler { handler_faulted: true, .. });
    if faulted_itself {
        channels.gdb.resume(Packets::default())?;
        std::thread::sleep(WATCHED);
        channels.gdb.interrupt()?;
    } else if came_back(channels, first.trap())? {
        return Ok(None);
    }
    let Some((snapshot, second)) = look(channels, profile, symbols)? else { return Ok(None) };
    let same = second.trap() == first.trap() || faulted_itself;
    Ok(same.then_some(TrapFound { snapshot, shape: TrapShape::Last }))
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
    Ok(second.map(|(snapshot, _)| TrapFound { snapshot, shape: TrapShape::Call }))
}

/// Tells whether the handler of a fault returns to the instruction that has faulted, which faults
/// again at once. The machine stands afterwards, at the entry of the handler if so.
fn repeats(channels: &mut DebugChannels, trap: Trap) -> Result<bool, ChannelError> {
    if run_to(channels, &[trap.at])? != Some(trap.at) {
        return Ok(false);
    }
    let mut repeated = 0;
    for _ in 0..MOST_TRIES {
        // It faults, if it is what has faulted before.
        let (entered, last) = step(channels, trap)?;
        if entered != trap.handler || last.is_none_or(|last| last.at != trap.at) {
            return Ok(false);
        }
        if repeated >= REPEATS {
            return Ok(true);
        }
        match returned(channels, trap)? {
            Return::Unchanged => repeated += 1,
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
    /// To there, but an interrupt came in between: the program may have gone on before.
    Hidden,
    Elsewhere,
}

fn returned(channels: &mut DebugChannels, trap: Trap) -> Result<Return, ChannelError> {
    for _ in 0..MOST_TRIES {
        // The first instruction of the handler may be its last.
        let (mut pc, mut last) = step(channels, trap)?;
        if pc != trap.at {
            let Some(stop) = run_to(channels, &[trap.at, trap.handler])? else { break };
            (pc, last) = (stop, last_of(&registers_riscv(channels)?, trap));
        }
        match last {
            Some(last) if pc == trap.at && last.at == trap.at => return Ok(Return::Unchanged),
            None if pc == trap.at => return Ok(Return::Hidden),
            // The handler has changed where it returns to, or another fault comes.
            Some(_) => break,
            // An interrupt.
            None => {}
        }
    }
    Ok(Return::Elsewhere)
}

/// Executes one instruction; returns where the machine stands, and the last trap if that was a
/// fault.
fn step(channels: &mut DebugChannels, trap: Trap) -> Result<(u32, Option<Trap>), ChannelError> {
    channels.gdb.step(Packets::default(), STEP)?;
    let snapshot = registers_riscv(channels)?;
    Ok((pc(&snapshot), last_of(&snapshot, trap)))
}

fn pc(snapshot: &CoreSnapshot) -> u32 {
    snapshot.register("pc").and_then(|pc| u32::try_from(pc).ok()).unwrap_or_default()
}

/// Finds the last trap that went to the same handler, if that was a fault.
fn last_of(snapshot: &CoreSnapshot, trap: Trap) -> Option<Trap> {
    Trap::last(snapshot).into_iter().find(|last| last.handler == trap.handler)
}

/// Lets the machine run for a while, or up to one of these instructions, which it returns. It stands
/// afterwards.
fn run_to(channels: &mut DebugChannels, places: &[u32]) -> Result<Option<u32>, ChannelError> {
    let mut before = Packets::default();
    let mut after = Packets::default();
    for &place in places {
        before.insert_breakpoint(place);
        after.remove_breakpoint(place);
    }
    channels.gdb.resume(before)?;
    let stopped = channels.gdb.wait(WATCHED)?;
    if stopped.is_none() {
        channels.gdb.interrupt()?;
    }
    channels.gdb.perform(&after)?;
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
    Ok(run_to(channels, &places)?.is_some())
}
