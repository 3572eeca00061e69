//! Names, lines and call chains: what an image's symbols and debug information say about a
//! core that stands still.
//!
//! Owns the reading of ELF and DWARF and the unwinding of stacks. Refuses to trust any of it:
//! images, stacks and registers are hostile data, so every walk has a bound, and what could
//! not be found out is said in words instead of guessed silently.

mod cfi;
mod context;
mod dead_code;
mod exception;
mod layouts;
mod memory;
mod names;
mod search;
mod symbols;
mod trap_code;
mod unwind;
mod variable_parts;

#[cfg(test)]
pub(crate) mod tests;

pub use symbols::{Symbols, SymbolsError};
pub use unwind::{Backtrace, backtrace};

pub(crate) use context::Context;
pub(crate) use exception::{ExcReturn, exception_name, is_fault, unstack};
pub(crate) use layouts::Layouts;
pub(crate) use memory::KnownMemory;
pub(crate) use symbols::{CodePlace, LineRow};
pub(crate) use trap_code::TrapCode;
pub(crate) use unwind::{Interrupted, Unwound, unwind, walk_thread};
