//! Debug probes, real and virtual: flash, debug and read boards through probe-rs.
//!
//! The only crate that sees probe-rs; none of its types leave this crate. Each probe has one
//! owner, a named thread; all others hold a [`ProbeHandle`].
//!
//! Refuses to decide anything: it does as asked and says what it found.

mod chips;
mod code_map;
mod core_dump;
mod core_state;
mod debug_info;
mod diagnosis;
mod error;
mod exit_code;
mod fatal_halt;
mod fault_status;
mod fault_watch;
mod flash;
mod gdb;
mod glasgow;
mod image_ranges;
mod line_coverage;
mod listing;
mod masked_loop;
mod post_mortem;
mod ranges;
mod register_dump;
mod rig;
mod riscv;
mod rtos;
mod rtt;
mod semihosting;
mod snapshot;
mod stack_overrun;
mod swd_only;
mod target_description;
mod test_coverage;
mod thumb;
mod virtual_probe;
mod worker;

pub use chips::DescribedChips;
pub use core_dump::{CoreDump, CoreDumpError};
pub use core_state::ResetInto;
pub use debug_info::{Backtrace, Symbols, SymbolsError, backtrace};
pub use error::ProbeError;
pub use fault_watch::WatchedEmulator;
pub use flash::{EraseScope, FlashLeft, FlashRequest};
pub use gdb::{Debuggee, GdbEndpoint, GdbServer, GdbServerError, ProbeDebuggee};
pub use jig_model::debug::{
    AttachMethod, CoreState, EraseReport, FlashPhase, FlashProgress, FlashReport, HaltReason,
    MemoryWidth, RegisterValue,
};
pub use jig_model::image::{Payload, Segment};
pub use line_coverage::line_coverage;
pub use listing::{ProbeInfo, list_probes, list_probes_now};
pub use post_mortem::{Why, explain};
pub use ranges::SnapshotCoverage;
pub use register_dump::parse_register_dump;
pub use rig::{EmulatedProbeFactory, ProbeFactory};
pub use rtt::{
    DefmtDecoder, DefmtError, DefmtItem, DefmtTable, RttBlock, RttChannel, RttError, TargetMemory,
};
pub use snapshot::{CoreKind, CoreSnapshot, MemoryRange};
pub use virtual_probe::{
    ChipDescription, ServeAt, ServerHandle, VirtualBoard, VirtualBoardError, VirtualStats,
};
pub use worker::{
    AttachMode, AttachOptions, Attached, Cancel, ChipMemoryKind, ChipRegion, Leave, Opener,
    ProbeHandle, ProbeSource, check_flashable, options_from_env,
};
