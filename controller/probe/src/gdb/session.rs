//! One client, from its arrival to its end.

use std::time::Duration;

use gdbstub::common::Signal;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{GdbStubBuilder, SingleThreadStopReason};

use super::connection::{GdbConnection, GdbInput};
use super::debuggee::Debuggee;
use super::target::GdbTarget;
use crate::{CoreState, ProbeError};

/// How often a running core is looked at: as often as a person notices, at the cost of some
/// accesses to the debug port. The first looks come sooner: most runs of a script are short.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];
const SOON: u32 = 20;

/// How long a packet may be: what gdb asks for at once.
const PACKET: usize = 16 * 1024;

/// What ended a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GdbSessionEnd {
    /// The client left, in order or not.
    Left,
    /// The server shall end.
    Stop,
}

/// Serves a client, and leaves the core as it was: running or halted, without breakpoints of
/// the client's.
pub(super) fn serve(connection: GdbConnection<'_>, debuggee: &mut dyn Debuggee) -> GdbSessionEnd {
    let was_running = match debuggee.state() {
        Ok(state) => matches!(state, CoreState::Running | CoreState::Sleeping),
        Err(error) => {
            tracing::warn!(%error, "a gdb client is turned away: the core does not answer");
            return GdbSessionEnd::Left;
        }
    };
    let board = if was_running { debuggee.halt() } else { Ok(()) };
    let board = board.and_then(|()| GdbTarget::new(debuggee));
    let mut board = match board {
        Ok(board) => board,
        Err(error) => {
            tracing::warn!(%error, "a gdb client is turned away: the core cannot be halted");
            return GdbSessionEnd::Left;
        }
    };
    let end = talk(connection, &mut board);
    if let Err(error) = board.leave(was_running) {
        tracing::warn!(%error, "the core could not be left as it was before gdb came");
    }
    end
}

fn talk(connection: GdbConnection<'_>, board: &mut GdbTarget<'_>) -> GdbSessionEnd {
    let stub = GdbStubBuilder::new(connection).packet_buffer_size(PACKET).build();
    let machine = match stub.map(|stub| stub.run_state_machine(board)) {
        Ok(Ok(machine)) => machine,
        Ok(Err(error)) => return left(&error),
        Err(error) => return left(&error),
    };
    let mut machine = machine;
    let mut looks = 0;
    loop {
        let next = match machine {
            GdbStubStateMachine::Idle(mut idle) => {
                looks = 0;
                match idle.borrow_conn().next(None) {
                    GdbInput::Byte(byte) => idle.incoming_data(board, byte),
                    GdbInput::Nothing => Ok(idle.into()),
                    GdbInput::Closed => return GdbSessionEnd::Left,
                    GdbInput::Stop => return GdbSessionEnd::Stop,
                }
            }
            GdbStubStateMachine::Running(mut running) => {
                // The client is heard before the core is looked at, so that a core that stops
                // all the time cannot keep it from interrupting.
                let wait = match board.has_stopped() {
                    true => Duration::ZERO,
                    false => LOOKS[usize::from(looks >= SOON)],
                };
                match running.borrow_conn().next(Some(wait)) {
                    GdbInput::Byte(byte) => running.incoming_data(board, byte),
                    GdbInput::Nothing => {
                        looks += 1;
                        match stop_reason(board) {
                            Ok(Some(reason)) => running.report_stop(board, reason),
                            Ok(None) => Ok(running.into()),
                            Err(error) => return left(&error),
                        }
                    }
                    GdbInput::Closed => return GdbSessionEnd::Left,
                    GdbInput::Stop => return GdbSessionEnd::Stop,
                }
            }
            GdbStubStateMachine::CtrlCInterrupt(interrupted) => {
                if let Err(error) = board.interrupt() {
                    return left(&error);
                }
                let reason = SingleThreadStopReason::Signal(Signal::SIGINT);
                interrupted.interrupt_handled(board, Some(reason))
            }
            GdbStubStateMachine::Disconnected(_) => return GdbSessionEnd::Left,
        };
        machine = match next {
            Ok(machine) => machine,
            Err(error) => return left(&error),
        };
    }
}

fn stop_reason(
    board: &mut GdbTarget<'_>,
) -> Result<Option<SingleThreadStopReason<u32>>, ProbeError> {
    Ok(board.stopped()?.map(SingleThreadStopReason::Signal))
}

fn left(error: &dyn std::error::Error) -> GdbSessionEnd {
    tracing::info!(%error, "a gdb session broke");
    GdbSessionEnd::Left
}
