//! What other processes tell the process that holds a board.

use serde::{Deserialize, Serialize};

use super::Command;

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
