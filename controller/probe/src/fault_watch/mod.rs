//! Watches an emulated board while it runs, and keeps what a fault left on its stack.
//!
//! A firmware's own handler may print and go on, end the emulator, reset the board or lock
//! it up; then the stack is lost. So the machine is stopped at the first instruction of its fault
//! handlers, for the few milliseconds it takes to copy registers and RAM, and goes on as if nothing
//! had been.
//!
//! # Design
//! *Passive until it matters.* The breakpoints are set while the machine stands at its
//! launch; after that nothing is sent until one is hit or a post-mortem is requested. A run costs
//! one thread and about a millisecond.
//!
//! *Handlers are found in the vector table of reset.* A program that moves its table
//! elsewhere has its stack copied only as far as they share handlers.
//!
//! *The emulator reports each exception.* What the core took and left is known whatever its handlers
//! do to vector tables, cause and status; see `jig_drivers::qemu::ExceptionLog`.
//!
//! *RISC-V is looked at when it is asked for.* There, interrupts and faults enter by the same
//! address, and a breakpoint would stop each tick of a timer. So nothing is copied, and a
//! post-mortem finds out whether the core stands in a fault; see `trap_watch.rs` for the proof.
//!
//! *The first faults count.* A fault that repeats is not copied more than a few times.
//!
//! *A green end is looked at more closely where there is a reason*: the core executes an exception,
//! or has taken a fault in this boot. Else it costs one question; see `fault_stand.rs` for the
//! proof.

mod capture;
mod fault_loop;
mod fault_stand;
mod halted_core;
mod registers;
mod stopped_core;
mod telling;
mod trap_watch;
mod watch;

pub(crate) use capture::{PC, XPSR, windows};
pub(crate) use fault_loop::{FaultMachine, FaultStand, Registers, WATCHED};
pub(crate) use fault_stand::fault_shape;
pub(crate) use registers::{at_end, ended_in_handler, suspicion_name};
pub(crate) use stopped_core::standing_fault;
pub(crate) use telling::told;
pub use watch::WatchedEmulator;
pub(crate) use watch::stands_where_it_failed;
