//! Flashing and debugging: one verb, one answer.
//!
//! Each verb opens the board's debug port ([`port`]), does one thing and lets go. What a verb
//! prints with `--json` is said where the verb is.

mod debug;
mod flash;
mod help;
mod listing;
mod memory;
mod place;
mod port;
mod registers;
mod rtt;
mod run_control;
mod serve;
mod tap;

pub(crate) use debug::{backtrace, dump, gdb};
pub(crate) use flash::{erase, flash};
pub(crate) use listing::probes;
pub(crate) use memory::memory;
pub(in crate::commands) use place::served_places;
pub(in crate::commands) use port::runtime;
pub(crate) use registers::registers;
pub(crate) use rtt::rtt;
pub(crate) use run_control::{breakpoint, halt, reset, resume, step};
pub(crate) use serve::probe;
