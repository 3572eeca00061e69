//! Why a flasher did not flash.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jig_model::Cause;
use jig_model::protocol::DriverError;
use nix::sys::signal::Signal;

use super::arguments::Unfilled;
use super::output::BadPattern;
use crate::process::SpawnError;
use crate::serial::capture_service::CaptureServiceError;

/// Says why a flasher did not flash.
#[derive(Debug, thiserror::Error)]
pub enum FlasherError {
    /// An argument cannot be filled in.
    #[error(transparent)]
    Unfilled(#[from] Unfilled),
    /// A pattern of the profile cannot be used.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    /// Its output cannot be kept.
    #[error("keep the flasher's output in {}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The process that keeps its port does not give it.
    #[error("get {port} for {program}")]
    Port {
        /// The port.
        port: String,
        /// The flasher.
        program: String,
        /// Why.
        #[source]
        source: CaptureServiceError,
    },
    /// It has no pipe for its output.
    #[error("start {program}")]
    Pipe {
        /// The flasher.
        program: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot be started.
    #[error(transparent)]
    Start(#[from] SpawnError),
    /// It did not end in time.
    #[error("{program} took longer than {timeout:?}; {said}")]
    TimedOut {
        /// The flasher.
        program: String,
        /// How long it had.
        timeout: Duration,
        /// What it said last.
        said: LastWords,
    },
    /// A signal ended it.
    #[error("{program} was ended by {signal}; {said}")]
    Signalled {
        /// The flasher.
        program: String,
        /// The signal.
        signal: Signal,
        /// What it said last.
        said: LastWords,
    },
    /// Its exit code means failure.
    #[error("{program} ended with code {code}; {said}")]
    Exited {
        /// The flasher.
        program: String,
        /// The code.
        code: i32,
        /// What it said last.
        said: LastWords,
    },
    /// A line of its output means failure, whatever its exit code is.
    #[error(
        "{program} ended with code {code}, but said {line:?}, which means failure (`{pattern}`)"
    )]
    Said {
        /// The flasher.
        program: String,
        /// The code.
        code: i32,
        /// The line.
        line: String,
        /// The pattern of the profile that it matches.
        pattern: String,
    },
}

/// What a flasher said last, and the name of the file that has all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWords {
    pub(super) words: String,
    pub(super) log: String,
}

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; all of it is in {}", self.words, self.log)
    }
}

impl FlasherError {
    fn cause(&self) -> Cause {
        match self {
            Self::Log { .. } => Cause::StorageFailed,
            Self::Start(error) => error.cause(Cause::HostCommandMissing, Cause::DeployFailed),
            Self::Unfilled(_)
            | Self::Pattern(_)
            | Self::Port { .. }
            | Self::Pipe { .. }
            | Self::TimedOut { .. }
            | Self::Signalled { .. }
            | Self::Exited { .. }
            | Self::Said { .. } => Cause::DeployFailed,
        }
    }
}

impl From<FlasherError> for DriverError {
    fn from(error: FlasherError) -> Self {
        Self::of(error.cause(), error)
    }
}
