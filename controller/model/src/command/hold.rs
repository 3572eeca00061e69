//! Keeping a board powered, and what other processes tell the process that does.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Command;
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
}

/// What a client tells the holder of a place. The first order of a connection is the command; the
/// holder answers with the lines of a worker ([`WorkerLine`](super::WorkerLine)). A connection that
/// ends cancels its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum HolderOrder {
    /// Carries out a command on the held board.
    Command(Box<Command>),
    /// Input for the command.
    Input {
        /// The bytes.
        #[serde(with = "super::hex_bytes")]
        bytes: Vec<u8>,
    },
    /// The input has ended.
    InputEnd,
    /// Cancels the command.
    Cancel,
}
