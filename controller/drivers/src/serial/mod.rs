//! Serial ports: of this host, of servers that pass them on, and whatever else calls itself
//! a terminal.
//!
//! Owns opening a port and moving its bytes ([`SerialPort`]), opening it again when it
//! goes away for a while ([`ReconnectingTransport`]), and the consoles of a place in a run
//! ([`ConsolesFactory`]). Refuses to know what hangs on the other end and how long a caller wants
//! to wait for it, and never becomes the session's controlling terminal.
//!
//! # Design
//! *Ports of this host are `tokio-serial`'s* (`open_tty.rs` says what is done beside it, and
//! why); breaks and modem lines go by a copy of the descriptor on another thread (`line.rs`).
//!
//! *A transport that the capture service has* is borrowed there each time it is opened
//! ([`capture_service`]); else the port is opened.
//!
//! *Overruns and garbled characters* are told where they are counted: an RFC 2217 server reports
//! overruns, the driver of a tty has counters ([`line_errors`]). A pseudo-terminal has none, and
//! nothing is said of it. *Another program at the same port* is noticed when it opens it
//! ([`sharing`]).

pub mod capture_service;
mod command;
mod console_port;
mod error;
mod holder;
mod line;
mod line_errors;
mod open_tty;
mod part;
mod port;
mod port_watch;
mod ports;
mod reconnecting;
mod rfc2217;
mod sharing;
mod socket;
mod telnet;
#[cfg(test)]
pub(crate) mod test_pty;
#[cfg(test)]
mod tests;
mod tty;
mod tty_ioctl;

pub(crate) use command::PROGRAM;
pub use error::SerialError;
pub use holder::port_user;
pub(crate) use holder::{holder_pid, named, openers};
pub(crate) use line::control;
pub(crate) use open_tty::OpenTty;
pub use open_tty::TtyError;
pub use part::ConsolesFactory;
pub use port::{SerialPort, TakenOver};
pub use ports::UNDER_WAY;
pub use reconnecting::ReconnectingTransport;
pub use tty::TtyTransport;

/// Tells whether two speeds are the same to a receiver: its sampling drifts by half a bit in
/// ten, which leaves some 5 % for both ends; 3 % is our share.
fn is_close(wanted: u32, got: u32) -> bool {
    u64::from(wanted.abs_diff(got)) * 100 <= u64::from(wanted) * 3
}
