//! Serial ports of this host, and whatever else calls itself a terminal.
//!
//! Owns opening a tty and moving its bytes. Refuses to know what hangs on the other end,
//! and never becomes the session's controlling terminal.

mod tty;

pub use tty::{TtyError, TtyWire};
