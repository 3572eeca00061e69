//! What a kind of board *is*: reviewed data, read from `board-profiles/*.toml`.
//!
//! A profile is read into tables as written (`raw`), judged by a list of named checks
//! (`checks`), and lowered to [`BoardProfile`], in which nothing is left to check. No file
//! is opened here.

mod at_place;
pub(crate) mod checks;
mod deploy;
mod fault_sets;
mod health;
pub(crate) mod limits;
mod lower;
mod of_chip;
pub(crate) mod placeholder;
mod raw;
mod shell_at;
mod source;
mod types;
mod usb;

pub(crate) use deploy::{DEPLOY_PLACEHOLDERS, FLASH_TIMEOUT};
pub use deploy::{Deploy, DeployMethod, DeployPart, FlashCommand, FormatNotTaken, deploy_parts};
pub use fault_sets::{FaultSetText, FaultSets};
pub use health::{CheckKind, HealthSpec};
pub(crate) use of_chip::USUAL_BAUD;
pub use placeholder::{ArgPart, PlaceholderError, arg_parts};
pub use raw::FEATURES;
pub use source::ProfileSource;
pub use types::{
    Arch, BoardProfile, BootStage, ConsoleKind, ConsoleSpec, DebugCore, DebugSpec, Emulation,
    FaultSignature, FaultText, FlashModel, KnownGoodSpec, Limits, MemoryKind, MemoryRegion,
    OnboardUsb, ProfileStatus, Quirks, SendReady, StageProbe,
};

#[cfg(test)]
pub(crate) mod tests;
