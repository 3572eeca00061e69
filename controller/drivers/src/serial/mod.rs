//! Serial ports: of this host, of servers that pass them on, and whatever else calls itself
//! a terminal.
//!
//! Owns opening a port and moving its bytes ([`SerialPort`]), and opening it again when it
//! goes away for a while ([`LastingWire`]). Refuses to know what hangs on the other end and
//! how long anybody wants to wait for it, and never becomes the session's controlling terminal.
//!
//! # Design
//! *No crate for serial ports.* `tokio-serial` sets up and owns the descriptor itself: it does
//! not let `HUPCL` be taken off, so that each close pulls DTR and resets many a board, and its
//! stream believes a remembered "nothing there", which a wire must not. What it would give,
//! any speed and exclusive use, `rustix` has as safe calls.
//!
//! *Overruns.* An RFC 2217 server reports them, and they are told. The kernel's own counters
//! (`TIOCGICOUNT`) are behind a call that no crate offers without `unsafe`: they are not read.
//! A pseudo-terminal has none.

mod holder;
mod lasting;
mod port;
mod rfc2217;
mod socket;
mod telnet;
#[cfg(test)]
mod tests;
mod tty;

pub(crate) use holder::{holder_pid, named};
pub use lasting::LastingWire;
pub use port::{SerialError, SerialPort};
pub use tty::{TtyError, TtyWire};

/// Tells whether two speeds are the same to a receiver: its sampling drifts by half a bit in
/// ten, which leaves some 5 % for both ends; 3 % is our share.
fn is_close(wanted: u32, got: u32) -> bool {
    u64::from(wanted.abs_diff(got)) * 100 <= u64::from(wanted) * 3
}
