//! The journal of a repair run: the only place where its state is.
//!
//! Owns the rows, their chain of hashes and the file. Rows are appended and never changed. Any
//! process may append a request; the one with the [`crate::driver_lock`] drives the run.
//!
//! # Format, version 1
//! An SQLite database with one table. `body` is an [`Entry`] as JSON; `hash` is SHA-256 of the hash
//! of the row before, the number, the time and the body. Times are milliseconds since 1970, UTC.

mod chain;
mod entry;
mod fact;
mod schema;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

pub use chain::BrokenChain;
pub use entry::{
    Contract, Effect, Entry, EvidenceRef, Intent, Outcome, Request, StepResult, SubmittedPatch,
};
pub use fact::{Fact, FailedBaseline, Proposed};
pub use jig_agents::Usage;

pub use crate::digest::Digest;
use crate::redact::Redactor;

/// Most bytes of a row. What is longer belongs into a file that the row names.
const MAX_BODY: usize = 256 << 10;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// Milliseconds since 1970, UTC.
    pub time_ms: u64,
    /// What it says.
    pub entry: Entry,
    /// Its hash.
    pub hash: Digest,
}

/// Says why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// SQLite refused.
    #[error("could not use the journal {path}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// There is a journal already.
    #[error("{path} exists: a journal is begun once")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file is no journal.
    #[error("{path} is not the journal of a repair run")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("{path} has version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// A row was changed, or is damaged.
    #[error("{path} was changed or is damaged")]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where.
        #[source]
        source: BrokenChain,
    },
    /// A row is too long.
    #[error("a row of {0} bytes is longer than the {MAX_BODY} bytes that a row may have")]
    TooLong(usize),
    /// An entry cannot be written as JSON.
    #[error("could not write an entry as JSON")]
    Json(#[source] serde_json::Error),
}

/// The journal of one run.
///
/// Every call waits for the disk: call it where blocking is allowed. A row is durable when the call
/// that appends it returns.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    db: Connection,
    redactor: Redactor,
}

impl Journal {
    /// Begins a journal in a folder.
    ///
    /// # Errors
    /// The folder holds one already, or cannot be written.
    pub fn begin(
        folder: &Path,
        contract: Contract,
        redactor: Redactor,
    ) -> Result<Self, JournalError> {
        let path = path_in(folder);
        let mut journal = Self { db: schema::create(&path)?, path, redactor };
        journal.append(&Entry::Begun(contract))?;
        Ok(journal)
    }

    /// Opens the journal of a folder.
    ///
    /// # Errors
    /// There is none, a newer program wrote it, or it is not a journal.
    pub fn open(folder: &Path, redactor: Redactor) -> Result<Self, JournalError> {
        let path = path_in(folder);
        Ok(Self { db: schema::open(&path)?, path, redactor })
    }

    /// Appends rows that are durable together: all of them, or none. No other process appends
    /// meanwhile.
    ///
    /// # Errors
    /// A row is not appended, or they cannot be written together; then none is.
    pub fn together<T, E: From<JournalError>>(
        &mut self,
        append: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let run = |journal: &Self, sql| {
            journal.db.execute_batch(sql).map_err(|source| journal.failed(source))
        };
        run(self, "BEGIN IMMEDIATE")?;
        let appended =
            append(self).and_then(|appended| Ok(run(self, "COMMIT").map(|()| appended)?));
        if appended.is_err() {
            // SQLite may have done it by itself.
            let _ = run(self, "ROLLBACK");
        }
        appended
    }

    /// Appends a row, secrets removed.
    ///
    /// # Errors
    /// The row is too long, or cannot be written; then nothing is.
    pub fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if self.db.is_autocommit() {
            return self.together(|journal| journal.append(entry));
        }
        let mut body = serde_json::to_value(entry).map_err(JournalError::Json)?;
        self.redactor.value(&mut body);
        let body = body.to_string();
        if body.len() > MAX_BODY {
            return Err(JournalError::TooLong(body.len()));
        }
        schema::append(&self.db, body).map_err(|source| self.failed(source))
    }

    /// Reads the rows behind a number, each checked against the hash of the row before it.
    ///
    /// # Errors
    /// A row was changed, is missing or cannot be read.
    pub fn rows_behind(&self, seq: u64, hash: Digest) -> Result<Vec<Row>, JournalError> {
        let found = schema::rows_behind(&self.db, seq).map_err(|source| self.failed(source))?;
        let mut last = (seq, hash);
        let checked = found.into_iter().map(|stored| {
            let row = chain::checked(stored, last)?;
            last = (row.seq, row.hash);
            Ok(row)
        });
        let broken = |source| JournalError::Broken { path: self.path.clone(), source };
        checked.collect::<Result<_, _>>().map_err(broken)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// See [`Self::rows_behind`].
    pub fn rows(&self) -> Result<Vec<Row>, JournalError> {
        self.rows_behind(0, Digest::default())
    }

    /// Copies the rows up to a number into a new journal, from which another run goes on. The rows
    /// keep their times and hashes, so that both journals show where they part.
    ///
    /// # Errors
    /// The folder holds a journal already, or a row is damaged.
    pub fn fork(&self, seq: u64, folder: &Path) -> Result<Self, JournalError> {
        let rows = schema::rows_behind(&self.db, 0).map_err(|source| self.failed(source))?;
        let path = path_in(folder);
        let redactor = self.redactor.clone();
        let mut fork = Self { db: schema::create(&path)?, path, redactor };
        schema::copy(&mut fork.db, rows.iter().take_while(|row| row.seq <= seq))
            .map_err(|source| fork.failed(source))?;
        fork.rows()?;
        Ok(fork)
    }

    fn failed(&self, source: rusqlite::Error) -> JournalError {
        JournalError::Database { path: self.path.clone(), source }
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("journal.db")
}

/// Returns the time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
