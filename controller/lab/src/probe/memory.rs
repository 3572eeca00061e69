//! Reading and writing memory. The core is left as it was.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use jig_model::command::{MemoryReadReply, MemoryWrittenReply, Reply};
use jig_model::debug::{CoreState, MemoryWidth};
use jig_probe::{ChipMemoryKind, Leave, ProbeError};

use super::ProbeCommandError;
use super::port::{Port, PortDone};

/// Most bytes of one read: what a person or a file can want of a microcontroller.
pub(super) const MOST: u64 = 64 << 20;

pub(super) async fn read(
    port: &Port,
    range: Range<u64>,
    width: MemoryWidth,
    output: Option<PathBuf>,
) -> PortDone {
    let leave = as_it_is(port).await?;
    let (address, length) = (range.start, range.end - range.start);
    let len = usize::try_from(length).unwrap_or(usize::MAX);
    let mut bytes = accessed(port, port.handle.read_as(width, address, len).await)?;
    if let Some(path) = output {
        fs::write(&path, std::mem::take(&mut bytes))
            .map_err(|source| ProbeCommandError::Unwritable { path, source })?;
    }
    let reply = MemoryReadReply { place: port.place.clone(), address, length, bytes };
    Ok((Reply::MemoryRead(reply), leave))
}

pub(super) async fn write(
    port: &Port,
    address: u64,
    bytes: Vec<u8>,
    width: MemoryWidth,
) -> PortDone {
    let written = bytes.len() as u64;
    if let Some(address) = first_in_flash(port, address..address.saturating_add(written)) {
        return Err(ProbeCommandError::WritesFlash { place: port.place.clone(), address });
    }
    let leave = as_it_is(port).await?;
    accessed(port, port.handle.write_as(width, address, bytes).await)?;
    let reply = MemoryWrittenReply { place: port.place.clone(), address, written };
    Ok((Reply::MemoryWritten(reply), leave))
}

/// Returns the first of some addresses that is in flash: there, a write is lost without an error.
fn first_in_flash(port: &Port, wanted: Range<u64>) -> Option<u64> {
    let memory = port.attached.memory.iter();
    let flash = memory.filter(|region| region.kind == ChipMemoryKind::Flash);
    let first = flash.map(|region| (region.start.max(wanted.start), region.end.min(wanted.end)));
    first.filter(|(start, end)| start < end).map(|(start, _)| start).min()
}

/// Names the place in what a probe says of addresses that the caller chose.
fn accessed<T>(port: &Port, done: Result<T, ProbeError>) -> Result<T, ProbeCommandError> {
    match done {
        Err(error @ ProbeError::BusFault { .. }) => {
            Err(ProbeCommandError::NoSuchMemory { board: port.board.clone(), error })
        }
        done => port.done(done),
    }
}

/// Says how the core is left as it is.
pub(super) async fn as_it_is(port: &Port) -> Result<Leave, ProbeCommandError> {
    Ok(match port.state().await? {
        CoreState::Halted { .. } => Leave::Halted,
        CoreState::Running | CoreState::Sleeping | CoreState::LockedUp => Leave::Running,
    })
}
