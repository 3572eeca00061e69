//! What can be wrong with a virtual probe.

use jig_drivers::qemu::debug::ChannelError;
use jig_model::protocol::DriverError;

use super::bus::BusError;

/// Says why a virtual probe could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum VirtualBoardError {
    /// The profile does not say what a probe finds.
    #[error("board {board} has no [emulation.debug] in its profile")]
    NotDescribed {
        /// The board.
        board: String,
    },
    /// The machine cannot be launched.
    #[error("launch the emulated board")]
    Launch(#[source] DriverError),
    /// A debug channel failed at the start.
    #[error("talk to the emulated board")]
    Channel(#[source] ChannelError),
    /// The emulator did not tell what is where.
    #[error("the emulator gave no memory map")]
    NoMemoryMap,
    /// The board failed.
    #[error("use the emulated board: {0}")]
    Board(String),
    /// probe-rs does not take the board's description.
    #[error("describe the chip to probe-rs")]
    Description(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server's socket cannot be made.
    #[error("serve the virtual probe at {at}")]
    Serve {
        /// Where.
        at: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// Makes the failure of a verb of that of a bus.
pub(super) fn failed(error: BusError) -> VirtualBoardError {
    VirtualBoardError::Board(error.to_string())
}
