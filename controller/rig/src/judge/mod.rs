//! The verdict: a pure function of the observation.
//!
//! Owns the order in which causes decide. Refuses to look at anything but the observation:
//! no clock, no file, no board. An agent or a plan cannot report a result, only the
//! observed bytes and events can.

mod despite_rig;
mod elsewhere;
mod observation;
mod other_console;
mod rules;
mod target_exit;

pub use despite_rig::shown_despite_rig;
pub use observation::{
    AskedOfTarget, BootSign, ByteRange, ConsoleReport, CoreFinding, DoubtfulText, EarlierReport,
    ExpectedCrash, Gap, ImageIdentity, Incident, IncidentKind, Listened, Observation, OutputBehind,
    PrintedId, ReadBack, ResultLike, Standstill,
};
pub(crate) use other_console::console_advice;
pub use rules::judge;
