//! The rig file: which places there are, and where runs are kept.
//!
//! A place binds a board profile to the resource that makes it real: an emulator, or a
//! debug probe on a real board. Each kind is a table of its own below `[[place]]`, so that
//! a new kind is a new key and an unknown one is an unknown key. What places may share stands
//! beside them: power devices in `[[power]]`, of which a place names one and an outlet.
//!
//! Refuses to look anything up: texts and their origins are handed in, the main file first
//! and drop-ins after it.

mod capture;
mod checks;
mod lower;
mod power;
mod raw;
mod types;
mod wires;

pub use lower::RigText;
pub use types::{
    Canary, CaptureLimits, ConsoleWire, EmulatorDeploy, EmulatorResource, Hub, KeeperSeat, Network,
    Place, ProbeResource, Resource, Rig, RunStorage, UnknownPlace, WireEnd, WireProtocol,
};

#[cfg(test)]
mod tests;
