//! The shell of a target over a network, as the rig uses it.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{BoxFuture, DriverError};

/// How a command on the target ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetCommandEnd {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal, such as `SIGKILL`.
    Signalled(String),
}

impl std::fmt::Display for TargetCommandEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Signalled(signal) => write!(f, "ended by {signal}"),
        }
    }
}

/// A file that was copied from or to the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// Commands a target over a connection of its own.
///
/// Dropping a future ends the connection; what it has started on the target may go on there.
pub trait ShellPort: Send {
    /// Says where the port that an emulator forwards is reached, as `HOST:PORT`.
    fn forwarded(&mut self, address: &str);

    /// Says how long a server that does not answer yet is waited for, from now on.
    fn ready_within(&mut self, time: Duration);

    /// Runs a program to its end. Its output goes to the console of commands, standard error too; it
    /// has no input.
    ///
    /// # Errors
    /// It was not started, or its end is not known. Any status is an end.
    fn exec<'a>(
        &'a mut self,
        argv: &'a [String],
    ) -> BoxFuture<'a, Result<TargetCommandEnd, DriverError>>;

    /// Copies a file to the target, and reads it back. `to` is a path there; a folder gets the file's own
    /// name. Without `mode` the file has the permissions that it has here.
    ///
    /// # Errors
    /// The file is not there as a whole; what was there before is then still there.
    fn upload<'a>(
        &'a mut self,
        from: &'a Path,
        to: &'a str,
        mode: Option<u32>,
    ) -> BoxFuture<'a, Result<CopiedFile, DriverError>>;

    /// Copies a file of the target into a new file.
    ///
    /// # Errors
    /// The file was not copied as a whole; the new file holds what has come.
    fn download<'a>(
        &'a mut self,
        from: &'a str,
        to: &'a Path,
    ) -> BoxFuture<'a, Result<CopiedFile, DriverError>>;

    /// Returns a text that differs from boot to boot of the target.
    ///
    /// # Errors
    /// The target does not answer, or has no such text.
    fn boot_id(&mut self) -> BoxFuture<'_, Result<String, DriverError>>;

    /// Asks the target to reboot; returns when it has taken the command, or has gone with it.
    ///
    /// # Errors
    /// The target refused.
    fn reboot(&mut self) -> BoxFuture<'_, Result<(), DriverError>>;
}
