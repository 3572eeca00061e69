//! Keeping a board powered.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::PlaceName;

/// Keeps a board powered for the commands of other processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldCommand {
    /// The place.
    pub place: PlaceName,
    /// The image to put on the board first, as `FILE` or `FILE.bin@ADDRESS`; without one the board
    /// boots what it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// How long to wait for another process that uses the board, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// Whether the board is released when the lease that the command names ends, which it does not
    /// keep from ending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_lease: bool,
}
