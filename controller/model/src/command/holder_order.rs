//! What other processes tell the process that holds a board.

use std::collections::BTreeMap;

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
    /// Asks about the board, in place of a command. Answered by [`HeldBoardFacts`].
    Describe,
}

/// What the holder of a place tells about its board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBoardFacts {
    /// Where the ports are reached that the emulator forwards: its name of each, and `HOST:PORT`.
    pub ports: BTreeMap<String, String>,
    /// Why the board has no power any more; nothing while it has some. May hold any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
}
