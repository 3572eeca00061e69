//! Debug probes, real and virtual: flash, debug and read boards through probe-rs.
//!
//! The only crate that sees probe-rs; none of its types leave this crate. Each probe has one
//! owner, a named thread; everybody else holds a [`ProbeHandle`].
//!
//! Refuses to decide anything: it does as asked and says what it found.

mod core_state;
mod error;
mod flash;
mod snapshot;
mod virtual_probe;

pub use core_state::{CoreState, HaltReason, RegisterValue, ResetInto};
pub use error::ProbeError;
pub use flash::{
    EraseReport, EraseScope, FlashPhase, FlashProgress, FlashReport, FlashRequest, Payload, Segment,
};
pub use snapshot::{CoreKind, CoreSnapshot, MemoryRange};
pub use virtual_probe::{ServeAt, ServerHandle, VirtualBoard, VirtualBoardError, VirtualStats};
