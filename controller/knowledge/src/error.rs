//! What can go wrong with knowledge.

use std::io;
use std::path::{Path, PathBuf};

use jig_model::Fault;
use rusqlite::ErrorCode;

use crate::text::SynonymError;
use crate::unit::{IllegalStanding, UnitId, UnitLimitError};

/// Says why the store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    /// A file or folder cannot be used.
    #[error("could not use {}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The store may not be written.
    #[error("may not write the knowledge store {}", path.display())]
    Unwritable {
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// The disk is full.
    #[error("no space left to write the knowledge store {}", path.display())]
    Full {
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Other processes did not give the store free in time.
    #[error("the knowledge store {} was in use for too long", path.display())]
    Busy {
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// A newer Jig wrote it.
    #[error(
        "the knowledge store {} has format version {found}, this jig knows up to {known}",
        path.display()
    )]
    Newer {
        /// Its file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// It does not hold what it should.
    #[error("the knowledge store {} is damaged: {reason}", path.display())]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// SQLite failed for another reason.
    #[error("the knowledge store {} cannot be used", path.display())]
    Sqlite {
        /// Its file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// Neither the store nor its outbox took a unit.
    #[error("nothing was kept: {store}, and neither could the outbox be written")]
    Lost {
        /// Why the store did not take it.
        store: Box<KnowledgeError>,
        /// Why the outbox did not.
        #[source]
        outbox: Box<KnowledgeError>,
    },
    /// A draft cannot be a unit.
    #[error("this cannot be a unit")]
    Limit(#[from] UnitLimitError),
    /// There is no such unit.
    #[error("there is no unit {0}")]
    Unknown(UnitId),
    /// Something cannot happen to a unit.
    #[error("{id} cannot be changed so: {why}")]
    Standing {
        /// The unit.
        id: UnitId,
        /// Why.
        why: IllegalStanding,
    },
    /// A unit was changed since it was read.
    #[error("{id} has version {found}, and the change is based on version {expected}")]
    Stale {
        /// The unit.
        id: UnitId,
        /// Its version.
        found: u32,
        /// The version that was changed.
        expected: u32,
    },
    /// A unit cannot be linked to itself.
    #[error("{0} cannot be linked to itself")]
    SelfLink(UnitId),
    /// The file of synonyms is wrong.
    #[error("the synonyms of {} cannot be used", path.display())]
    Synonyms {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: SynonymError,
    },
    /// The file of weights is wrong.
    #[error("the weights of {} cannot be used: {reason}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A unit of this program's own cannot be written as JSON.
    #[error("could not write a unit as JSON")]
    Encode(#[source] serde_json::Error),
}

impl KnowledgeError {
    /// Says who has to act.
    pub fn fault(&self) -> Fault {
        match self {
            Self::File { .. }
            | Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::Damaged { .. }
            | Self::Sqlite { .. }
            | Self::Lost { .. } => Fault::Lab,
            Self::Newer { .. }
            | Self::Limit(_)
            | Self::Unknown(_)
            | Self::Standing { .. }
            | Self::Stale { .. }
            | Self::SelfLink(_) => Fault::Usage,
            Self::Synonyms { .. } | Self::Weights { .. } => Fault::Profile,
            Self::Encode(_) => Fault::Bug,
        }
    }

    /// Tells whether the store itself failed, so that the same draft may be stored later.
    pub fn is_of_the_store(&self) -> bool {
        match self {
            Self::File { .. }
            | Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::Busy { .. }
            | Self::Newer { .. }
            | Self::Damaged { .. }
            | Self::Sqlite { .. } => true,
            Self::Lost { .. }
            | Self::Limit(_)
            | Self::Unknown(_)
            | Self::Standing { .. }
            | Self::Stale { .. }
            | Self::SelfLink(_)
            | Self::Synonyms { .. }
            | Self::Weights { .. }
            | Self::Encode(_) => false,
        }
    }

    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.into() }
    }

    /// Sorts what SQLite said by what can be done about it.
    pub(crate) fn of(path: &Path, source: rusqlite::Error) -> Self {
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
            // A value of another type than this program would have written, a statement that does
            // not fit the tables: another program has changed the file.
            None => Self::Damaged { path, reason: source.to_string() },
        }
    }
}
