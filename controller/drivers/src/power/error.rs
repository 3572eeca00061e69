//! Why power could not be switched.

use std::io;
use std::time::Duration;

use jig_model::Cause;
use jig_model::protocol::{DriverError, PowerState};

use super::SecretError;
use super::human::{AskError, PERSON};
use crate::process::SpawnError;

/// Says why a power device could not do as asked. Always the lab's fault.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// It did not answer in time.
    #[error("{what} did not answer within {timeout:?}")]
    TimedOut {
        /// What was awaited.
        what: String,
        /// How long.
        timeout: Duration,
    },
    /// It cannot be reached.
    #[error("reach {what}")]
    Unreachable {
        /// The device.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The device refused the command.
    #[error("{what} refused: {why}")]
    Refused {
        /// The device.
        what: String,
        /// The reason, in the words of the device or of its protocol.
        why: String,
    },
    /// The answer cannot be parsed.
    #[error("{what} answered nonsense: {said}")]
    Garbage {
        /// The device.
        what: String,
        /// The answer, quoted and truncated.
        said: String,
    },
    /// The device took the command, and still reports the contrary.
    #[error("{what} was switched {asked}, but still says the contrary after {timeout:?}")]
    Mismatch {
        /// The outlet.
        what: String,
        /// What it was told.
        asked: &'static str,
        /// How long it had.
        timeout: Duration,
    },
    /// The power sense sees the contrary of what the device says.
    #[error("{what} {claim}, but {sense} sees the contrary after {timeout:?}")]
    Contradicted {
        /// The outlet.
        what: String,
        /// What the device was told or reports.
        claim: String,
        /// The name of the power sense.
        sense: String,
        /// How long it had.
        timeout: Duration,
    },
    /// Another process uses it without end.
    #[error("{what} was in use by other processes for {timeout:?}")]
    Busy {
        /// The device.
        what: String,
        /// How long.
        timeout: Duration,
    },
    /// A person did not switch it.
    #[error("{PERSON} did not switch it")]
    Person(#[from] AskError),
    /// A secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A program cannot be started.
    #[error(transparent)]
    Program(#[from] SpawnError),
    /// Something of this host that it needs cannot be used.
    #[error("use {what}")]
    Unusable {
        /// What.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl PowerError {
    /// Returns the cause that a run ends with over this.
    pub fn cause(&self) -> Cause {
        match self {
            Self::TimedOut { .. } | Self::Unreachable { .. } | Self::Busy { .. } => {
                Cause::PowerUnreachable
            }
            Self::Mismatch { .. } | Self::Contradicted { .. } => Cause::PowerMismatch,
            Self::Refused { .. }
            | Self::Garbage { .. }
            | Self::Person(_)
            | Self::Secret(_)
            | Self::Program(_)
            | Self::Unusable { .. } => Cause::PowerFailed,
        }
    }

    /// Takes a device's answer that cannot be parsed. At most 120 bytes of it are kept.
    pub(crate) fn garbage(what: impl Into<String>, said: &[u8]) -> Self {
        Self::Garbage { what: what.into(), said: quote(said) }
    }

    pub(super) fn refused(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), why: why.into() }
    }

    pub(super) fn unusable(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Unusable { what: what.into(), source: source.into() }
    }
}

impl From<PowerError> for DriverError {
    fn from(error: PowerError) -> Self {
        Self::of(error.cause(), error)
    }
}

/// Quotes a device's answer: escaped and truncated.
pub(super) fn quote(said: &[u8]) -> String {
    const MOST: usize = 120;
    let shown = said.get(..MOST).unwrap_or(said).escape_ascii();
    let more = if said.len() > MOST { "..." } else { "" };
    format!("\"{shown}{more}\"")
}

/// Returns a state as a word.
pub(super) fn word(state: PowerState) -> &'static str {
    match state {
        PowerState::On => "on",
        PowerState::Off => "off",
    }
}
