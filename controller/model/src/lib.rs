//! The nouns and protocols of Jig.
//!
//! **Invariant: this crate is pure.** It performs no I/O, reads no clock and no
//! environment, spawns nothing, and knows no async runtime. Everything in it can
//! be built and compared in a unit test.

pub mod access;
pub mod capture_service;
pub mod cause;
pub mod chip;
mod chip_name;
pub mod command;
pub mod coverage;
pub mod debug;
pub mod diagnostic;
pub mod document;
pub mod event;
pub mod exit;
pub mod fault;
pub mod flasher;
pub mod identity;
pub mod image;
pub mod known_good;
pub mod lease;
pub mod machine;
pub mod name;
pub mod note;
pub mod pattern;
pub mod plan;
pub mod post_mortem;
pub mod power;
pub mod profile;
pub mod program;
pub mod protocol;
pub mod recovery;
pub mod redact;
pub mod result;
pub mod rig_file;
pub mod shell;
pub mod signature;
mod size;
mod strictness;
pub mod trace;
pub mod verdict;

pub use cause::{Cause, VerdictKind};
pub use chip_name::ChipName;
pub use diagnostic::{LocatedProblem, Problem, Problems};
pub use event::{Purpose, RunEvent, StampedEvent};
pub use fault::{Fault, chain};
pub use identity::{Identity, IdentityName};
pub use name::{
    ActionName, BoardId, ClassName, ConsoleName, DeviceName, LeaseId, NameError, PlaceName, RunId,
    TagName,
};
pub use note::Note;
pub use size::byte_size;
pub use strictness::Strictness;
pub use trace::{SessionTrace, TraceId};
pub use verdict::{Evidence, ImageSeen, Verdict};
