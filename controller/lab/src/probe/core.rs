//! Resetting, halting, resuming and stepping a core, and running it to a breakpoint.

use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{
    BoardResetCommand, BreakpointOutcome, BreakpointReply, CodeLocation, EventSink, Reply, ResetBy,
    ResetMethod, ResetReply,
};
use jig_model::debug::{CoreState, HaltReason};
use jig_probe::{Leave, ResetInto};
use jig_rig::workflow::CancelToken;
use tokio::time::{Instant, sleep};

use super::ProbeCommandError;
use super::board::Lasting;
use super::parts::reset_by_part;
use super::port::{Port, PortDone, PortWish, symbols_of};
use super::snapshot::explained;
use super::target::CommandTarget;
use crate::Lab;

/// How often a running core is asked whether it has reached a breakpoint.
const LOOK: Duration = Duration::from_millis(10);

impl Lab {
    /// Resets a board.
    pub(crate) async fn reset(
        &self,
        command: BoardResetCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let BoardResetCommand { place, probe, by } = command;
        let target = CommandTarget::of(&self.catalogue, &place, probe)?;
        if let Some(held) = self.held_place(&target)
            && held.reset().await?
        {
            return Ok(Reply::Reset(ResetReply { place, method: ResetMethod::Emulator }));
        }
        if let Some(method) = reset_by_part(&target, by)? {
            return self.reset_by(method, &target, &*events, &cancel).await;
        }
        let halt = by == ResetBy::Probe { halt: true };
        let wish = PortWish { verb: "reset", lasting: Lasting::Board, starts: true, stays: false };
        let port = self.open_port(&target, wish, events, cancel).await?;
        let done = async {
            port.ready().await?;
            let (into, leave) = match halt {
                true => (ResetInto::Halt, Leave::Halted),
                false => (ResetInto::Run, Leave::Running),
            };
            port.done(port.handle.reset(into).await)?;
            Ok((port.core().await?, leave))
        };
        let done = done.await;
        port.close(done).await
    }
}

pub(super) async fn halt(port: &Port) -> PortDone {
    port.done(port.handle.halt().await)?;
    Ok((port.core().await?, Leave::Halted))
}

pub(super) async fn resume(port: &Port) -> PortDone {
    port.done(port.handle.run().await)?;
    Ok((port.core().await?, Leave::Running))
}

pub(super) async fn step(port: &Port, count: u32) -> PortDone {
    for _ in 0..count {
        if port.cancel.is_cancelled() {
            return Err(ProbeCommandError::Cancelled(port.place.clone()));
        }
        port.done(port.handle.step().await)?;
    }
    Ok((port.core().await?, Leave::Halted))
}

pub(super) async fn breakpoint(
    port: &Port,
    at: CodeLocation,
    reset: bool,
    timeout_ms: u64,
) -> PortDone {
    let (address, symbols) = match at {
        CodeLocation::Address(address) => (address, None),
        CodeLocation::Function { name, image } => {
            let symbols = symbols_of(&image)?;
            let address = symbols.address_of(&name);
            (address.ok_or(ProbeCommandError::NoFunction { image, name })?, Some(symbols))
        }
    };
    if reset {
        port.done(port.handle.reset(ResetInto::Halt).await)?;
    }
    port.done(port.handle.set_breakpoint(address).await)?;
    if let CoreState::Halted { .. } = port.state().await? {
        port.done(port.handle.run().await)?;
    }
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let outcome = loop {
        match port.state().await? {
            CoreState::Halted { reason: HaltReason::Breakpoint, pc } if pc == address => {
                break BreakpointOutcome::Hit;
            }
            CoreState::Halted { .. } => break BreakpointOutcome::Stopped,
            CoreState::LockedUp => break BreakpointOutcome::LockedUp,
            CoreState::Running | CoreState::Sleeping if port.cancel.is_cancelled() => {
                port.done(port.handle.clear_breakpoint(address).await)?;
                return Err(ProbeCommandError::Cancelled(port.place.clone()));
            }
            CoreState::Running | CoreState::Sleeping if Instant::now() >= deadline => {
                break BreakpointOutcome::TimedOut;
            }
            CoreState::Running | CoreState::Sleeping => sleep(LOOK).await,
        }
    };
    port.done(port.handle.clear_breakpoint(address).await)?;
    let core = port.state().await?;
    let found = match outcome {
        BreakpointOutcome::Hit | BreakpointOutcome::TimedOut => None,
        BreakpointOutcome::Stopped | BreakpointOutcome::LockedUp => {
            Some(explained(port, symbols).await?.0)
        }
    };
    let leave = match core {
        CoreState::Halted { .. } => Leave::Halted,
        CoreState::Running | CoreState::Sleeping | CoreState::LockedUp => Leave::Running,
    };
    let (place, chip) = (port.place.clone(), port.attached.chip.clone());
    let reply = BreakpointReply { place, chip, address, outcome, core, found };
    Ok((Reply::Breakpoint(reply), leave))
}
