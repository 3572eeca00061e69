//! The process that stands between Jig and a program: confines, starts, ends, reports.
//!
//! Its standard input is a socket to Jig: an order comes in, a reply goes out, and its end means
//! that the program is to end.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use super::confine::{ConfineError, confine};
use super::probe::sandbox_gap;
use super::wire::{ProgramOrder, SupervisorOrder, SupervisorReply};
use crate::process::{Ending, NotSupervised, SupervisedEnd, SupervisedProgram, supervise};

/// Carries out one order on standard input, which must be a socket.
///
/// # Errors
/// Standard input is no socket, or has no order.
pub fn serve_order() -> io::Result<()> {
    // Standard input itself is not passed on to the program.
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut orders = BufReader::new(socket.try_clone()?);
    let mut line = Vec::new();
    orders.read_until(b'\n', &mut line)?;
    let reply = match serde_json::from_slice(&line)? {
        SupervisorOrder::Probe => SupervisorReply::Probed(sandbox_gap()),
        SupervisorOrder::Run(order) => run(order, move || {
            // Nothing more is said: this returns when Jig has gone or wants the end.
            let _ = io::copy(&mut orders.by_ref(), &mut io::sink());
        }),
    };
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    // Who does not want the reply has gone.
    let _ = socket.write_all(&text);
    let _ = socket.shutdown(Shutdown::Write);
    Ok(())
}

fn run(order: ProgramOrder, stop: impl FnOnce() + Send + 'static) -> SupervisorReply {
    let ProgramOrder { program, name, args, cwd, env, confinement } = order;
    let program = SupervisedProgram { program, name, args, cwd: cwd.into(), env };
    let prepare = || confinement.as_ref().map_or(Ok(()), confine);
    match supervise::<ConfineError>(program, prepare, stop) {
        Ok(SupervisedEnd { ending: Ending::Exited(code), all_ended }) => {
            SupervisorReply::Exited { code, all_ended }
        }
        Ok(SupervisedEnd { ending: Ending::Signalled(signal), all_ended }) => {
            SupervisorReply::Signalled { signal: signal as i32, all_ended }
        }
        Err(NotSupervised::NotPrepared(error)) => SupervisorReply::NotConfined(error.to_string()),
        Err(NotSupervised::NotStarted(error)) => {
            SupervisorReply::NotStarted { errno: error.raw_os_error(), message: error.to_string() }
        }
    }
}
