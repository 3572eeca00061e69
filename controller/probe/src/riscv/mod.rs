//! What is particular to RISC-V: registers as the emulator prints them, the control flow of
//! instructions, and where a trap left a core.
//!
//! Owns pure functions of text, bytes and snapshots; refuses to speak to anything.

mod decode;
mod registers;
mod trap;
mod wait_loop;

pub(crate) use decode::{CodeFlow, Sweep, call_length, is_call_before};
pub(crate) use registers::parse_registers;
pub(crate) use trap::{
    Trap, TrapStand, in_call, in_interrupt, in_reported, interrupt, interrupted_at,
    masked_interrupt, nowhere, stand,
};
pub(crate) use wait_loop::wait_loop_before;
