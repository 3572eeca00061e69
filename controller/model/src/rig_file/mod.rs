//! The rig file: which places there are, and where runs are kept.
//!
//! A place binds a board profile to the parts that make it real: an emulator, or any of debug
//! probe, consoles, power, reset, flasher and network of a real board. Each part is a key of its
//! own below `[[place]]`, so that an unknown one is an unknown key. What places may share stands
//! beside them: power devices in `[[power]]`, of which a place names one and an outlet.
//!
//! Refuses to look anything up: texts and their origins are handed in, the main file first
//! and drop-ins after it.

mod access;
mod capture;
mod checks;
mod claims;
mod console_transports;
mod deploy_at;
mod flasher;
mod knowledge;
mod known_boards;
mod leases;
mod lower;
mod parts;
mod place;
mod power;
mod raw;
mod raw_parts;
mod reset;
mod serve;
mod shell;
mod types;

pub use knowledge::KnowledgeSettings;
pub use lower::RigText;
pub use parts::{
    CaptureClient, ConsoleTransport, EmulatorDeploy, EmulatorPart, Endpoint, FlasherPart,
    ProbePart, ResetCommand, ResetLine, ResetPart,
};
pub use place::{MissingPart, Needed};
pub use serve::{MetricsAddress, NotMetricsAddress, NotSocketMode, ServeSettings, SocketMode};
pub use types::{Canary, CaptureLimits, Hub, Network, Place, Rig, RunStorage, UnknownPlace};

#[cfg(test)]
mod tests;
