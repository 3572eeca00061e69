//! How commands, events and replies travel between processes: a line of JSON each.
//!
//! # Design
//! Each line names its version before anything else is looked at, so that a program refuses what
//! a newer one says instead of misunderstanding it. Unknown fields are refused for the same
//! reason: within a version there are none.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Command, CommandEvent, HeldBoardFacts, HolderOrder, Refusal, Reply};

/// Version of what is said.
pub const VERSION: u32 = 4;

/// Longest line in bytes, its end included: a plan of the longest kind, escaped, fits.
pub const MOST_LINE: usize = 2 << 20;

/// A line, with the version of the program that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionedLine<T> {
    version: u32,
    say: T,
}

/// The version of a line, whatever else it holds.
#[derive(Deserialize)]
struct LineVersion {
    version: u32,
}

/// What a worker says on its standard output. The last line is a reply or a refusal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerLine {
    /// Something happened.
    Event(CommandEvent),
    /// The command was carried out.
    Reply(Reply),
    /// It was not.
    Refused(Refusal),
}

/// Says why a line is not understood.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is too long.
    #[error("a line of {len} bytes; {MOST_LINE} at most")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// A program of another version wrote it.
    #[error("it is of version {found}, and this program reads only version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It is not what it should be.
    #[error("not a line of version {VERSION}")]
    Malformed(#[source] serde_json::Error),
}

/// Writes a value as a line, without its end.
///
/// # Errors
/// A path in it is not UTF-8, or it is longer than a line may be.
pub fn to_line<T: Serialize>(say: &T) -> Result<String, LineError> {
    let line = serde_json::to_string(&VersionedLine { version: VERSION, say })
        .map_err(LineError::Malformed)?;
    match line.len() {
        len if len > MOST_LINE => Err(LineError::TooLong { len }),
        _ => Ok(line),
    }
}

fn from_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    if line.len() > MOST_LINE {
        return Err(LineError::TooLong { len: line.len() });
    }
    let LineVersion { version } = serde_json::from_slice(line).map_err(LineError::Malformed)?;
    if version != VERSION {
        return Err(LineError::Version { found: version });
    }
    let line: VersionedLine<T> = serde_json::from_slice(line).map_err(LineError::Malformed)?;
    Ok(line.say)
}

impl Command {
    /// Reads a command from a line.
    ///
    /// # Errors
    /// The line is too long, of another version, or no command.
    pub fn from_line(line: &[u8]) -> Result<Self, LineError> {
        from_line(line)
    }
}

impl HolderOrder {
    /// Reads what a client tells the holder of a place.
    ///
    /// # Errors
    /// The line is too long, of another version, or no order.
    pub fn from_line(line: &[u8]) -> Result<Self, LineError> {
        from_line(line)
    }
}

impl HeldBoardFacts {
    /// Reads what the holder of a place tells about its board.
    ///
    /// # Errors
    /// The line is too long, of another version, or no such answer.
    pub fn from_line(line: &[u8]) -> Result<Self, LineError> {
        from_line(line)
    }
}

impl WorkerLine {
    /// Reads what a worker said.
    ///
    /// # Errors
    /// The line is too long, of another version, or says nothing that a worker says.
    pub fn from_line(line: &[u8]) -> Result<Self, LineError> {
        from_line(line)
    }
}
