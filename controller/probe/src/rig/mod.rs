//! Boards behind a debug probe as a rig drives them: power, reset, deployment, consoles.
//!
//! A real board and an emulated one are the same type here ([`board`]); they differ in their
//! [`backing`]. Refuses policy: it knows no plan and no verdict.
//!
//! # Design
//! *One owner.* A task holds the session and does one thing at a time: what it is asked for,
//! emptying and filling the rings of RTT, and a look at the core's state 40 times a second.
//!
//! *Power of a board without a power device.* `on` attaches, resets and lets the core
//! run; `off` halts it, so that nothing of the program runs, and keeps the session aside
//! ([`parked`]) for the next `on`, because to close a session lets the core run. RAM
//! survives that, so `on` clears it (256 KiB of each memory) behind an image of this run: else a
//! program that counts its boots there would do something else in the second attempt. Where the
//! profile deploys by a program of its own,
//! that program needs the probe: then `off` lets go of it, and the core runs on unwatched.
//!
//! *Faults are caught on their way.* The core halts at the entry of HardFault, is copied and
//! let run on within a look, so that the firmware's own handler still tells its story.
//!
//! *What a target leaves in its rings dies with its RAM.* They are emptied before a reset and
//! before the power is taken; an emulated board whose program ends the emulator takes along
//! what it printed by RTT in the last milliseconds.

mod backing;
mod board;
mod consoles;
mod deployed;
mod factory;
mod handle;
mod look;
mod open_fault;
mod parked;
mod probed_core;
mod progress;
mod sink;
#[cfg(test)]
mod tests;
mod transport;

/// How soon a core is looked at again of which something is awaited: that its program calls its host,
/// or that it stops.
const SOON: std::time::Duration = std::time::Duration::from_millis(1);

pub use factory::{EmulatedProbeFactory, ProbeFactory};
