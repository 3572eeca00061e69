//! Why a target's shell did not do as asked: the lab's part, or the target's.

use std::io;
use std::path::PathBuf;

use jig_model::Cause;
use jig_model::protocol::DriverError;

use super::quote::QuoteError;
use crate::ssh::{SshError, SshTargetError};

/// Says why a command was not carried out on a target, or a file not copied.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// No line of the target's shell is that command.
    #[error("the command cannot be written for the target's shell")]
    Quote(#[from] QuoteError),
    /// The host in the `[shell]` table is no address.
    #[error("the address of the target's SSH server is {at:?}")]
    Address {
        /// The address.
        at: String,
        /// What is wrong.
        #[source]
        source: SshTargetError,
    },
    /// The server refuses the user, or is not the one that is known.
    #[error("the target's SSH server cannot be used{}", hint(source))]
    Refused {
        /// Why.
        #[source]
        source: SshError,
    },
    /// There is no connection.
    #[error("the target's SSH server cannot be reached")]
    Unreachable {
        /// Why.
        #[source]
        source: SshError,
    },
    /// The connection was lost in the middle, and the target runs on.
    #[error(
        "the connection to the target was lost while it ran `{program}`; the target {}",
        if *.answers { "has not rebooted" } else { "has not answered since" }
    )]
    Lost {
        /// The program.
        program: String,
        /// Whether the target answers again.
        answers: bool,
        /// Whether nothing but an emulator of this host lies between.
        forwarded: bool,
        /// Why.
        #[source]
        source: Box<SshError>,
    },
    /// The target rebooted in the middle.
    #[error("the target rebooted while it ran `{program}`")]
    Rebooted {
        /// The program.
        program: String,
    },
    /// The server did not say how the program ended.
    #[error("the target did not say how `{program}` ended")]
    NoStatus {
        /// The program.
        program: String,
    },
    /// The target has no room for a file.
    #[error("the target has no room for {path}: {said}")]
    NoRoom {
        /// The path there.
        path: String,
        /// What it says.
        said: String,
    },
    /// The target cannot read or write a file.
    #[error("the target cannot {what} {path}: {said}")]
    File {
        /// `read` or `write`.
        what: &'static str,
        /// The path there.
        path: String,
        /// What it says.
        said: String,
    },
    /// The file on the target is not the one that was sent.
    #[error("{path} on the target has SHA-256 {found}, and {sent} was sent")]
    Differs {
        /// The path there.
        path: String,
        /// The hash there.
        found: String,
        /// The hash here.
        sent: String,
    },
    /// A file of this host cannot be read or written.
    #[error("{what} {}", path.display())]
    Local {
        /// `read` or `write`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The target does not say which boot this is.
    #[error("the target does not tell its boots apart: `{program}` says nothing")]
    NoBootId {
        /// What was run.
        program: &'static str,
    },
    /// The target refused to reboot.
    #[error("the target refused to reboot (status {status}){}", said(text))]
    RebootRefused {
        /// The status of the command.
        status: i32,
        /// What it says.
        text: String,
    },
    /// The emulator does not forward the port.
    #[error("the emulator has not said where its port `{0}` is reached")]
    NotForwarded(String),
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Returns what to type or to change next, behind a message.
fn hint(error: &SshError) -> String {
    let hint = match error {
        SshError::HostKeyUnknown { key, file, .. } => Some(format!(
            "compare the fingerprint with that on the target, then write host_key = \"accept-new\" \
             in [place.shell], or add to {}: {}",
            file.display(),
            key.line
        )),
        // Those speak of options that only the rig of another host has.
        SshError::Unsupported { .. } | SshError::Handshake { .. } | SshError::NoProgram { .. } => {
            None
        }
        SshError::NoKeyMethod { .. } => {
            Some("allow PubkeyAuthentication in the target's sshd_config".to_owned())
        }
        error => error.help(),
    };
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

impl ShellError {
    /// Sorts why there is no connection.
    pub(super) fn connecting(source: SshError) -> Self {
        if source.is_refusal() { Self::Refused { source } } else { Self::Unreachable { source } }
    }

    /// Returns the cause that a run ends with.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Quote(_) | Self::Address { .. } | Self::Refused { .. } => Cause::ShellRefused,
            Self::Unreachable { .. }
            | Self::Lost { forwarded: false, .. }
            | Self::NoStatus { .. }
            | Self::Differs { .. }
            | Self::NotForwarded(_) => Cause::ShellUnreachable,
            Self::Lost { forwarded: true, .. } => Cause::ShellLost,
            Self::Rebooted { .. } => Cause::UnexpectedReset,
            Self::NoRoom { .. } | Self::File { .. } => Cause::TransferFailed,
            Self::Local { .. } => Cause::StorageFailed,
            Self::NoBootId { .. } | Self::RebootRefused { .. } => Cause::RebootFailed,
        }
    }
}

impl From<ShellError> for DriverError {
    fn from(error: ShellError) -> Self {
        Self::of(error.cause(), error)
    }
}

#[cfg(test)]
mod tests {
    use jig_model::Fault;

    use super::*;

    fn lost(forwarded: bool) -> ShellError {
        let (program, answers) = ("x".to_owned(), false);
        let source = SshError::Refused { at: "b:22".to_owned() };
        ShellError::Lost { program, answers, forwarded, source: Box::new(source) }
    }

    #[test]
    fn blame_follows_what_lies_between() {
        let fault = |error: ShellError| error.cause().fault().unwrap();
        assert_eq!(fault(lost(false)), Fault::Lab);
        assert_eq!(fault(lost(true)), Fault::Target);
        assert_eq!(fault(ShellError::Rebooted { program: "x".to_owned() }), Fault::Target);
        let (path, said) = ("/x".to_owned(), "No space left on device".to_owned());
        assert_eq!(fault(ShellError::NoRoom { path, said }), Fault::Target);
        let (at, user) = ("b:22".to_owned(), "u".to_owned());
        let refused = SshError::KeyRefused { at, user, tried: Vec::new(), encrypted: None };
        let refused = ShellError::connecting(refused);
        assert!(refused.to_string().contains("ssh-copy-id -p 22 u@b"), "{refused}");
        assert_eq!((refused.cause(), fault(refused)), (Cause::ShellRefused, Fault::Lab));
    }
}
