//! Flasher presets: what Jig knows about the programs that flash boards, as data.
//!
//! Owns the presets of `board-profiles/flashers/presets.toml` ([`FlasherPresets`]), the options that
//! a board or a place gives them, and the keys that `[deploy]` of a profile and `flasher` of a place
//! share. A preset becomes a [`FlashCommand`](crate::profile::FlashCommand), in which nothing of a
//! preset is left to look up.
//!
//! Refuses to know a program by name: what is particular to one is data.

mod checks;
mod install;
mod keys;
mod known_failure;
mod options;
mod origin;
mod preset;
mod raw;
#[cfg(test)]
mod tests;
mod volume;

pub use install::InstallHint;
pub(crate) use keys::{FlasherKeys, RawOptions, flasher_table};
pub use known_failure::KnownFailure;
pub use options::leave_out;
pub use origin::ExampleOrigin;
pub use preset::{FlasherPreset, FlasherPresets, PresetExample, PresetOption};
pub(crate) use volume::VolumeKeys;
pub use volume::{VolumeChoice, VolumeCopy, VolumeFormat};
