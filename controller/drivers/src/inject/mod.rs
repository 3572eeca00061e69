//! Makes a rig fail on purpose, to try how it is noticed, blamed and recovered.
//!
//! Owns a closed [`CATALOGUE`] of faults, how they are written ([`Injection`]), and wrappers
//! for the protocols of the model, under which the real things go on working. Refuses to
//! reach into a driver: each fault strikes where one could strike a rig, at a process, a
//! transport, a call or a limit. And refuses to strike unseen: each strike is an event of the run.

mod board;
mod catalogue;
mod device;
mod flasher;
mod grammar;
mod host;
mod injector;
mod ledger;
mod line;
mod mangle;
mod port_reader;
mod power;
mod processes;
mod schedule;
#[cfg(test)]
mod tests;
mod transport;

pub use board::{InjectedFactory, primary_end};
pub use catalogue::{CATALOGUE, FaultKind, FaultSpec, Moments, Seam, Takes, When};
pub use grammar::{Argument, GrammarError, Injection, default_argument, moment};
pub use host::{Staller, stall_parent};
pub use injector::Injector;
pub use port_reader::{PortReader, steal_tty};
