//! Why the audit log could not be written or read.

use std::io;
use std::path::PathBuf;

use jig_model::Fault;

/// Says why the audit log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file or folder of it cannot be used.
    #[error("could not {what} the audit log {}", path.display())]
    File {
        /// What was tried: `write`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has been writing for too long.
    #[error("another process holds the lock of the audit log {} for too long", .0.display())]
    Busy(PathBuf),
    /// Its last line is no line of this format, so none can follow it.
    #[error("the last line of the audit log {} is damaged, or of a newer jig", .0.display())]
    Damaged(PathBuf),
    /// A line cannot be written as JSON.
    #[error("a line of the audit log cannot be written")]
    Encoding(#[from] serde_json::Error),
}

impl AuditError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::File { .. } | Self::Busy(_) | Self::Damaged(_) => Fault::Lab,
            Self::Encoding(_) => Fault::Bug,
        }
    }
}
