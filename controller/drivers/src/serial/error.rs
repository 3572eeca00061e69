//! Why a serial port cannot be used.

use std::io;
use std::time::Duration;

use super::capture_service::CaptureServiceError;
use super::open_tty::TtyError;
use crate::process::SpawnError;

/// Says why a serial port cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SerialError {
    /// A tty of this host is not as it should be.
    #[error(transparent)]
    Tty(#[from] TtyError),
    /// The other end does not answer, or no longer.
    #[error("connect to {address}")]
    Connect {
        /// The address or path.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server does not do what a console needs.
    #[error("{address} {why}")]
    Refused {
        /// The address.
        address: String,
        /// What it does or does not, with no subject.
        why: String,
    },
    /// Its program cannot be started.
    #[error("open a console by a program")]
    Program(#[from] SpawnError),
    /// Its program ended before it was connected.
    #[error("{address}: {why}")]
    Ended {
        /// The program with its arguments.
        address: String,
        /// How, and what it said.
        why: String,
    },
    /// The process that holds the port does not lend it.
    #[error("borrow {address}")]
    CaptureService {
        /// The address or path.
        address: String,
        /// Why.
        #[source]
        source: CaptureServiceError,
    },
    /// It took too long.
    #[error("{address} was not there within {timeout:?}")]
    Late {
        /// The address or path.
        address: String,
        /// How long it was waited for.
        timeout: Duration,
        /// What the last try said, if one was over.
        #[source]
        source: Option<Box<SerialError>>,
    },
}

impl SerialError {
    /// Tells whether this may be another thing in a moment: what is not there may come.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            // A device may go while it is set up.
            Self::Tty(TtyError::Open { source, .. } | TtyError::Settings { source, .. }) => {
                is_absence(source)
            }
            Self::Tty(
                TtyError::NotTty { .. }
                | TtyError::Taken { .. }
                | TtyError::Speed { .. }
                | TtyError::Parity { .. },
            ) => false,
            Self::Connect { source, .. } => source.kind() != io::ErrorKind::PermissionDenied,
            Self::Program(
                SpawnError::NotFound { .. }
                | SpawnError::NoFile { .. }
                | SpawnError::NoInterpreter { .. },
            ) => false,
            Self::Program(SpawnError::Refused { .. }) | Self::Ended { .. } => true,
            // It may end, and the port be free.
            Self::CaptureService { .. } => true,
            Self::Refused { .. } | Self::Late { .. } => false,
        }
    }

    /// Tells whether this user may not open the device.
    pub(super) fn is_denied(&self) -> bool {
        matches!(self, Self::Tty(TtyError::Open { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Tells whether another process has the port.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Tty(TtyError::Taken { .. }))
    }
}

fn is_absence(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(
            error.raw_os_error(),
            Some(nix::libc::ENXIO | nix::libc::ENODEV | nix::libc::EIO)
        )
}
