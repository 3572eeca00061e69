//! What a caller says about where the rig is described.

use std::path::PathBuf;

use jig_model::lease::RigUser;

use crate::ChipAtProbe;

/// Where the rig is described, where its runs are kept, and which program helps.
#[derive(Debug, Clone, Default)]
pub struct LabConfig {
    /// Rig file; found by the catalogue's rules if not named.
    pub rig: Option<PathBuf>,
    /// Further folder of board profiles; wins over all others.
    pub boards: Option<PathBuf>,
    /// Folder of the runs; wins over the rig file.
    pub runs: Option<PathBuf>,
    /// Folder of what outlives a command: locks, kept flash, health, console logs. That of this
    /// user if not named.
    pub state: Option<PathBuf>,
    /// The `jig` program. Injected faults that need a process of their own start it.
    pub program: Option<PathBuf>,
    /// A chip on a probe that is a place, too.
    pub chip: Option<ChipAtProbe>,
    /// As whom its places are used.
    pub user: RigUser,
}
