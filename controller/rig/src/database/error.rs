//! What can go wrong with a database.

use std::io;
use std::path::{Path, PathBuf};

use jig_model::Fault;
use rusqlite::ErrorCode;

/// Says why a database could not do as asked. Each says which one: `health store`.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its folder cannot be made.
    #[error("could not make the folder of the {what} {}", path.display())]
    Folder {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It may not be written.
    #[error("may not write the {what} {}", path.display())]
    Unwritable {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The disk is full.
    #[error("no space left to write the {what} {}", path.display())]
    Full {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Other processes did not give it free in time.
    #[error("the {what} {} was in use for too long", path.display())]
    Busy {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer Jig wrote it.
    #[error(
        "the {what} {} has format version {found}, this jig knows up to {known}",
        path.display()
    )]
    Newer {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// It does not hold what it should.
    #[error("the {what} {} is damaged: {reason}", path.display())]
    Damaged {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// SQLite failed for another reason.
    #[error("the {what} {} cannot be used", path.display())]
    Sqlite {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// An event of Jig's own cannot be written as JSON.
    #[error("could not encode what belongs into the {what} {}", path.display())]
    Encode {
        /// Which database.
        what: &'static str,
        /// Its file.
        path: PathBuf,
        /// What the encoder said.
        #[source]
        source: serde_json::Error,
    },
}

impl DatabaseError {
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

    pub(crate) fn damaged(what: &'static str, path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { what, path: path.to_owned(), reason: reason.into() }
    }

    /// Sorts what SQLite said by what can be done about it.
    pub(crate) fn of(what: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                Self::Damaged { what, path, reason: source.to_string() }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::Unwritable { what, path, source }
            }
            Some(ErrorCode::DiskFull) => Self::Full { what, path, source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { what, path, source }
            }
            Some(_) => Self::Sqlite { what, path, source },
            // A value of another type than this program would have written, a statement that
            // does not fit the tables: another program has changed the file.
            None => Self::Damaged { what, path, reason: source.to_string() },
        }
    }
}
