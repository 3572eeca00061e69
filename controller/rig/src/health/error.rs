//! What can go wrong with the health store.

use std::io;
use std::path::{Path, PathBuf};

use jig_model::Fault;
use rusqlite::ErrorCode;

/// Says why the health store could not do as asked. None of it stops a run: health is then
/// unknown.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The folder of the store cannot be made.
    #[error("could not make the folder of the health store {}", path.display())]
    Folder {
        /// The store.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It may not be written.
    #[error("may not write the health store {}", path.display())]
    Unwritable {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The disk is full.
    #[error("no space left to write the health store {}", path.display())]
    Full {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Other processes did not give it free in time.
    #[error("the health store {} was in use for too long", path.display())]
    Busy {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer Jig wrote it.
    #[error(
        "the health store {} has format version {found}, this jig knows up to {known}",
        path.display()
    )]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// It does not hold what it should.
    #[error("the health store {} is damaged: {reason}", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// SQLite failed for another reason.
    #[error("the health store {} cannot be used", path.display())]
    Sqlite {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// An event of Jig's own cannot be written as JSON.
    #[error("could not encode what belongs into the health store {}", path.display())]
    Encode {
        /// The store.
        path: PathBuf,
        /// What the encoder said.
        #[source]
        source: serde_json::Error,
    },
}

impl HealthError {
    /// Says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Folder { .. }
            | Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::Damaged { .. }
            | Self::Sqlite { .. } => Fault::Lab,
            Self::Newer { .. } => Fault::Usage,
            Self::Encode { .. } => Fault::Bug,
        }
    }

    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Sorts what SQLite said by what can be done about it.
    pub(super) fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { path, reason: source.to_string() }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::Unwritable { path, source }
            }
            Some(ErrorCode::DiskFull) => Self::Full { path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { path, source }
            }
            Some(_) => Self::Sqlite { path, source },
            // A value of another type than this program would have written, a statement that
            // does not fit the tables: another program has changed the file.
            None => Self::Damaged { path, reason: source.to_string() },
        }
    }
}
