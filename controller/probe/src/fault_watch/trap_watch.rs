//! Finds out whether an emulated RISC-V core stands in the handler of a fault for good.

use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_model::profile::BoardProfile;

use super::capture::capture_riscv;
use crate::debug_info::unwind;
use crate::riscv::{Trap, TrapStand, stand};
use crate::{CoreSnapshot, Symbols};

/// How long a handler is watched for coming back to what faulted. One that emulates an
/// instruction does so within microseconds.
const WATCHED: Duration = Duration::from_millis(20);

/// Looks twice; returns the core where it stands in a fault, or where no return from one shows.
/// The machine stands afterwards.
pub(super) fn standing_in_trap(
    channels: &mut DebugChannels,
    profile: &BoardProfile,
    symbols: Option<&Symbols>,
) -> Result<Option<CoreSnapshot>, ChannelError> {
    channels.gdb.stand()?;
    let Some((_, first)) = look(channels, profile, symbols)? else { return Ok(None) };
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
    Ok(same.then_some(snapshot))
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
    let mut before = Packets::default();
    let mut after = Packets::default();
    for place in places {
        before.insert_breakpoint(place);
        after.remove_breakpoint(place);
    }
    channels.gdb.resume(before)?;
    let stopped = channels.gdb.wait(WATCHED)?;
    if stopped.is_none() {
        channels.gdb.interrupt()?;
    }
    channels.gdb.perform(&after)?;
    Ok(stopped == Some(Stop::Trapped))
}
