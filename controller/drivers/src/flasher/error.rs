//! Why a flasher did not flash.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jig_model::Cause;
use jig_model::profile::FormatNotTaken;
use jig_model::protocol::DriverError;
use nix::sys::signal::Signal;

use super::arguments::Unfilled;
use super::made::NotMade;
use super::output::BadPattern;
use super::touch::TouchError;
use crate::process::SpawnError;
use crate::serial::capture_service::CaptureServiceError;

/// Says why a flasher did not flash.
#[derive(Debug, thiserror::Error)]
pub enum FlasherError {
    /// An argument cannot be filled in.
    #[error(transparent)]
    Unfilled(#[from] Unfilled),
    /// It takes no such image; callers have checked that before they begin.
    #[error("{0} ({help})", help = .0.help)]
    Format(FormatNotTaken),
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
    /// It is not installed.
    #[error("start {program}: it is not installed (try: {install})")]
    NotInstalled {
        /// The flasher.
        program: String,
        /// The command that installs it.
        install: String,
    },
    /// A file for it was not made.
    #[error(transparent)]
    NotMade(#[from] NotMade),
    /// The boot loader was not started.
    #[error(transparent)]
    Touch(#[from] TouchError),
    /// It failed in a way that is known.
    #[error("{program}: {why} (it said {line:?}; try: {help}; all of it is in {log})")]
    Known {
        /// The flasher.
        program: String,
        /// The cause that the failure makes.
        cause: Cause,
        /// What has happened.
        why: String,
        /// The line that shows it.
        line: Box<str>,
        /// What to do next.
        help: Box<str>,
        /// Name of the file with its output.
        log: String,
        /// How it ended.
        #[source]
        source: Box<FlasherError>,
    },
    /// No boot loader answered it, because its port cannot be opened.
    #[error("{program}: {fault} (it said {line:?}; try: {}; all of it is in {log})", fault.help(port))]
    NoPort {
        /// The flasher.
        program: String,
        /// The port.
        port: String,
        /// Why.
        fault: PortFault,
        /// The line that made it look.
        line: Box<str>,
        /// Name of the file with its output.
        log: String,
        /// How it ended.
        #[source]
        source: Box<FlasherError>,
    },
    /// It printed nothing for too long.
    #[error("{program} printed nothing for {idle:?}; {said}")]
    Idle {
        /// The flasher.
        program: String,
        /// How long it may print nothing.
        idle: Duration,
        /// What it said last.
        said: LastWords,
    },
    /// It waits for an answer, which no flasher gets.
    #[error(
        "{program} asks {question:?} and is not answered (give it an argument that answers; all \
         of its output is in {log})"
    )]
    Asks {
        /// The flasher.
        program: String,
        /// The question.
        question: String,
        /// Name of the file with its output.
        log: String,
    },
    /// It ended well and does not say that it has flashed.
    #[error(
        "{program} ended with code {code}, but no line says that it has flashed (`{pattern}`); \
         {said}"
    )]
    NoSuccess {
        /// The flasher.
        program: String,
        /// The code.
        code: i32,
        /// The pattern that a line has to match.
        pattern: String,
        /// What it said last.
        said: LastWords,
    },
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

/// Why a serial port cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortFault {
    /// There is none of this name.
    Missing,
    /// It belongs to others.
    Forbidden,
}

impl fmt::Display for PortFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the serial port is not there",
            Self::Forbidden => "this user may not open the serial port",
        })
    }
}

impl PortFault {
    fn help(self, port: &str) -> String {
        match self {
            Self::Missing => {
                format!("jig discover lists the ports; plug the board in, or correct {port}")
            }
            Self::Forbidden => "sudo usermod -aG dialout $USER, then log in again".to_owned(),
        }
    }
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
            Self::NotInstalled { .. } => Cause::HostCommandMissing,
            Self::Known { cause, .. } => *cause,
            Self::Touch(error) => error.cause(),
            Self::NotMade(NotMade::Unwritable { .. }) => Cause::StorageFailed,
            Self::NotMade(_) | Self::Idle { .. } | Self::Asks { .. } | Self::NoSuccess { .. } => {
                Cause::DeployFailed
            }
            Self::NoPort { .. }
            | Self::Unfilled(_)
            | Self::Format(_)
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
