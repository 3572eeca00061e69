//! Why a board is not held, or not reached where it is held.

use jig_drivers::serial::capture_service::CaptureServiceError;
use jig_model::command::{LineError, Refusal};
use jig_model::{ConsoleName, Fault, PlaceName};

use crate::{CatalogueError, ProbeCommandError, SwitchError};

/// Says why a board is not held, or why a command did not reach a board that another process holds.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The place is not known.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The board was not started, or not left in order.
    #[error(transparent)]
    Board(#[from] ProbeCommandError),
    /// The power of the place was not switched.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The socket of the place cannot be made or used.
    #[error(transparent)]
    Socket(#[from] CaptureServiceError),
    /// A line cannot be written or understood.
    #[error("the process that holds {place} is not understood")]
    Line {
        /// The place.
        place: PlaceName,
        /// Why.
        #[source]
        error: LineError,
    },
    /// The process that holds the board has ended before it answered.
    #[error("the process that held {0} has ended before it answered")]
    Gone(PlaceName),
    /// Another terminal sends to the console at which a command would be typed.
    #[error("no command can be typed at {console} of {place}, which is held: {by}")]
    ConsoleTaken {
        /// The place.
        place: PlaceName,
        /// The console.
        console: ConsoleName,
        /// Who sends; may hold any text.
        by: String,
    },
    /// The process that holds the board refuses the command; may hold any text.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
}

impl HoldError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Board(error) => error.fault(),
            Self::Switch(error) => error.fault(),
            Self::Socket(_) | Self::Line { .. } | Self::Gone(_) | Self::ConsoleTaken { .. } => {
                Fault::Lab
            }
            Self::Refused(refusal) => refusal.fault,
        }
    }
}
