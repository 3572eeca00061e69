//! One owner per probe: a named thread that holds the probe-rs session.
//!
//! probe-rs blocks, and a session belongs to one thread. All other code holds a [`ProbeHandle`]:
//! requests go to the thread one after the other, answers come back once.
//!
//! # Design
//! *A request is a closure over the session*, not a case of an enum: the methods of the
//! handle are the closed list of what can be asked, and each says what it asks for where it
//! is declared.
//!
//! *A probe that hangs is given up, not waited for.* A thread that is stuck in a driver
//! cannot be killed. When the worker shows no sign of progress for the deadline, the caller
//! gets [`ProbeError::Hung`](crate::ProbeError::Hung), later ones get `Gone`, and what can cut
//! the transport is asked to: a probe behind a socket then fails all its calls, so that its thread
//! ends. A thread that hangs in a USB driver stays until the process ends, with the device.
//!
//! *Progress, not duration, is watched.* To flash a megabyte may take minutes, but no single
//! step of it takes longer than the slowest sector.
//!
//! *A panic of a driver is an answer*: the request gets `ProbeLost`, the thread ends.

mod attach;
#[cfg(test)]
mod board_tests;
mod core;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
pub(crate) mod fake_flash;
mod flash;
mod handle;
mod leash;
mod open_session;
mod options;
mod remote;
mod selector;
mod semihost;
mod source;
mod target_memory;
#[cfg(test)]
mod tests;
mod translate;

pub(crate) use attach::built_in;
pub(crate) use flash::algorithm;
pub use flash::{Cancel, check_flashable};
pub use handle::{Leave, ProbeHandle};
pub use options::{
    AttachMode, AttachOptions, Attached, ChipMemoryKind, ChipRegion, options_from_env,
};
pub(crate) use selector::Address;
pub(crate) use source::OpenProbe;
pub use source::{Opener, ProbeSource};
pub(crate) use translate::nearest;
