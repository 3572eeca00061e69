//! Why an attempt could not be made or read.

use jig_model::protocol::DriverError;
use jig_model::{Cause, ConsoleName};

use crate::console::{FollowError, LogError, PatternSetError};
use crate::results::MarkerError;

/// Says why an attempt could not be made or read at all.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// A console's log cannot be written.
    #[error("capture a console")]
    Log(#[source] LogError),
    /// A console's log cannot be read back.
    #[error("read a console's log")]
    Follow(#[source] FollowError),
    /// A console's log cannot be searched.
    #[error("search a console's log")]
    Search(#[source] LogError),
    /// A profile's patterns cannot be compiled.
    #[error("compile the profile's patterns")]
    Patterns(#[source] PatternSetError),
    /// A plan's markers cannot be compiled.
    #[error("compile the plan's markers")]
    Markers(#[source] MarkerError),
    /// The plan names a console the board lacks.
    #[error("the board has no console {0}")]
    NoConsole(ConsoleName),
    /// The place cannot be bound.
    #[error("bind the place")]
    Bind(#[source] DriverError),
    /// A part of the attempt ended in an unforeseen way.
    #[error("a part of the attempt broke off")]
    Broken(#[source] tokio::task::JoinError),
}

impl AttemptError {
    /// Returns the cause that a run ends with for it.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Log(_) | Self::Follow(_) | Self::Search(_) => Cause::StorageFailed,
            Self::Bind(error) => error.cause,
            Self::NoConsole(_) => Cause::ConsoleLost,
            Self::Patterns(_) | Self::Markers(_) | Self::Broken(_) => Cause::InternalError,
        }
    }
}
