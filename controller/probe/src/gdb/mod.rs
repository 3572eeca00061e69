//! A server for gdb: any client of its remote protocol debugs a board through it.
//!
//! Owns the listening socket, one client at a time, and the thread they live on. What is
//! debugged is behind [`Debuggee`]. Refuses to decide about the board: when a client leaves,
//! in order or not, its breakpoints are taken back, and the core runs or stands as it did
//! when the client came.

mod arch;
mod connection;
mod debuggee;
mod monitor;
mod probe_debuggee;
mod server;
mod session;
mod socket;
mod target;
#[cfg(test)]
mod tests;

pub use debuggee::Debuggee;
pub use probe_debuggee::ProbeDebuggee;
pub use server::{GdbServer, GdbServerError};
pub use socket::GdbEndpoint;
