//! Flashing and debugging: arguments become a command, the answer becomes text or JSON.
//!
//! What a verb prints with `--json` is said where the verb is.

mod access;
mod debug;
mod flash;
mod listing;
mod memory;
mod registers;
mod rtt;
mod run_control;
mod serve;

pub(crate) use debug::{backtrace, dump, gdb};
pub(crate) use flash::{erase, flash};
pub(crate) use listing::probes;
pub(crate) use memory::memory;
pub(crate) use registers::registers;
pub(crate) use rtt::rtt;
pub(crate) use run_control::{breakpoint, halt, reset, resume, step};
pub(crate) use serve::probe;
