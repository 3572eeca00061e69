//! Backtraces and core dumps. A running core is stopped for the moment they take.

use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::PathBuf;

use jig_model::command::{BacktraceReply, DumpReply, Reply};
use jig_model::debug::CoreState;
use jig_model::post_mortem::PostMortem;
use jig_probe::{CoreDump, CoreSnapshot, Leave, SnapshotCoverage, Symbols, Why, explain};

use super::ProbeCommandError;
use super::port::{Port, PortDone};

pub(super) async fn backtrace(port: &Port, symbols: Option<Symbols>) -> PortDone {
    let (found, leave) = explained(port, symbols).await?;
    Ok((Reply::Backtrace(BacktraceReply { place: port.place.clone(), found }), leave))
}

/// Explains where a core stands, and leaves it as it was.
pub(super) async fn explained(
    port: &Port,
    symbols: Option<Symbols>,
) -> Result<(PostMortem, Leave), ProbeCommandError> {
    let why = match port.state().await? {
        CoreState::LockedUp => Why::LockUp,
        CoreState::Running | CoreState::Sleeping | CoreState::Halted { .. } => Why::Fault,
    };
    let (snapshot, leave) = look(port, None).await?;
    Ok((explain(&snapshot, symbols.as_ref(), why), leave))
}

pub(super) async fn dump(port: &Port, output: PathBuf, memory: Vec<Range<u64>>) -> PortDone {
    let memory = if memory.is_empty() { port.ram() } else { memory };
    let (snapshot, leave) = look(port, Some(memory.clone())).await?;
    let SnapshotCoverage { read, unreadable } = SnapshotCoverage::of(&snapshot, &memory);
    if read == 0 {
        return Err(ProbeCommandError::NoMemory);
    }
    let written = File::create(&output)
        .and_then(|file| CoreDump::write(&snapshot, &mut BufWriter::new(file)));
    if let Err(source) = written {
        return Err(ProbeCommandError::Unwritable { path: output, source });
    }
    let reply = DumpReply {
        place: port.place.clone(),
        core: output,
        memory: read,
        unreadable,
        registers: snapshot.registers.len(),
    };
    Ok((Reply::Dumped(reply), leave))
}

/// Copies a core's registers and memory, and leaves it as it was; what a backtrace needs, if
/// no memory is named.
async fn look(
    port: &Port,
    memory: Option<Vec<Range<u64>>>,
) -> Result<(CoreSnapshot, Leave), ProbeCommandError> {
    let runs = match port.state().await? {
        // A core that locked up answers only while it is halted.
        CoreState::Running | CoreState::Sleeping | CoreState::LockedUp => true,
        CoreState::Halted { .. } => false,
    };
    if runs {
        port.done(port.handle.halt().await)?;
    }
    let snapshot = match memory {
        Some(memory) => port.handle.snapshot(memory).await,
        None => port.handle.snapshot_of_stacks(&port.ram()).await,
    };
    if runs {
        port.done(port.handle.run().await)?;
    }
    let leave = if runs { Leave::Running } else { Leave::Halted };
    Ok((port.done(snapshot)?, leave))
}
