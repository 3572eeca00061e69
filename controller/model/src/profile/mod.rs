//! What a kind of board *is*: reviewed data, read from `board-profiles/*.toml`.

mod types;

pub use types::{
    Arch, BoardProfile, BootStage, ConsoleKind, ConsoleSpec, Emulation, FaultSignature, Limits,
    MemoryKind, MemoryRegion, Quirks, StageProbe,
};
