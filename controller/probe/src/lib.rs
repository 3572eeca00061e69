//! Debug probes, real and virtual: flash, debug and read boards through probe-rs.
//!
//! The only crate that sees probe-rs; none of its types leave this crate. Each probe has one
//! owner, a named thread; everybody else holds a [`ProbeHandle`].
//!
//! Refuses to decide anything: it does as asked and says what it found.

mod core_dump;
mod core_state;
mod debug_info;
mod diagnosis;
mod error;
mod fault_status;
mod flash;
mod gdb;
mod post_mortem;
mod register_dump;
mod snapshot;
mod target_description;
mod thumb;

pub use core_dump::{CoreDump, CoreDumpError};
pub use core_state::{CoreState, HaltReason, RegisterValue, ResetInto};
pub use debug_info::{Backtrace, Symbols, SymbolsError, backtrace};
pub use error::ProbeError;
pub use flash::{
    EraseReport, EraseScope, FlashPhase, FlashProgress, FlashReport, FlashRequest, Payload, Segment,
};
pub use gdb::{Debuggee, GdbEndpoint, GdbServer, GdbServerError, MemoryKind, MemoryRegion};
pub use post_mortem::{Why, explain};
pub use register_dump::parse_register_dump;
pub use snapshot::{CoreKind, CoreSnapshot, MemoryRange};
