//! The journal of a session: the only place where its state is.
//!
//! Owns the rows, their chain of hashes and the file. Rows are appended and never changed. Any process may
//! append a request; the one that holds the session's lock drives it.
//!
//! # Format, version 2
//! An SQLite database. Its table `journal` has the rows: `body` is a [`SessionEntry`] as JSON; `hash` is SHA-256 of the hash of
//! the row before, the number, the time and the body. Times are milliseconds since 1970, UTC, and never fall.
//! The export has a line of JSON per row: `{"seq","time_ms","hash","entry"}`. The table `clocks` says what the
//! times are counted by: see [`ClockReading`]. Version 1 has neither this table nor the host of a charter.

mod clock;
mod entry;
mod lock;
mod schema;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::redact::Redactor;
use rusqlite::Connection;
use serde_json::{Value, json};

pub use clock::{ClockReading, HostSessionClock, SessionClock};
pub use entry::{
    BlockReason, CallIntent, ChangedFiles, Charter, CharterModel, ClarifyingQuestion, CutOffEffect,
    EarlierImage, PersonRequest, PlanSource, SessionEntry, SessionFact, SessionLimits, SessionWork,
    WorkIntent, WorkOutcome,
};
pub use lock::{SessionLock, SessionLockError};

pub use crate::digest::RowHash;

/// Most bytes of a row.
pub(crate) const MAX_BODY: usize = 512 << 10;

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRow {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// Milliseconds since 1970, UTC.
    pub time_ms: u64,
    /// What it says.
    pub entry: SessionEntry,
    /// Its hash.
    pub hash: RowHash,
}

/// Says why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionJournalError {
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
    #[error("{path} is not the journal of a session")]
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
    /// A row was changed, is missing, or cannot be read.
    #[error("{path} was changed or is damaged at row {seq}: {why}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The row.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A row is too long.
    #[error("a row of {0} bytes is longer than the {MAX_BODY} bytes that a row may have")]
    TooLong(usize),
    /// An entry cannot be written as JSON.
    #[error("could not write an entry as JSON")]
    Json(#[source] serde_json::Error),
}

/// The journal of one session.
///
/// Every call waits for the disk. A row is durable when the call that appends it returns, but for those of
/// [`SessionJournal::append_lazily`]. Rows are durable in their order: none is without those before it.
#[derive(Debug)]
pub struct SessionJournal {
    path: PathBuf,
    db: Connection,
    redactor: Redactor,
    clock: Arc<dyn SessionClock>,
    /// The clocks when the time of the session began to be counted.
    first: ClockReading,
}

impl SessionJournal {
    /// Begins a journal in a folder.
    ///
    /// # Errors
    /// The folder holds one already, or cannot be written.
    pub fn begin(
        folder: &Path,
        charter: Charter,
        redactor: Redactor,
    ) -> Result<Self, SessionJournalError> {
        Self::begin_by(folder, charter, redactor, Arc::new(HostSessionClock))
    }

    /// Does so by another clock.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn begin_by(
        folder: &Path,
        charter: Charter,
        redactor: Redactor,
        clock: Arc<dyn SessionClock>,
    ) -> Result<Self, SessionJournalError> {
        let path = path_in(folder);
        let (db, first) = (schema::create(&path)?, clock.read());
        let mut journal = Self { path, db, redactor, clock, first };
        journal.append(&SessionEntry::Begun(charter))?;
        Ok(journal)
    }

    /// Opens the journal of a folder.
    ///
    /// # Errors
    /// There is none, a newer program wrote it, or it is not a journal.
    pub fn open(folder: &Path, redactor: Redactor) -> Result<Self, SessionJournalError> {
        Self::open_by(folder, redactor, Arc::new(HostSessionClock))
    }

    /// Does so by another clock.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by(
        folder: &Path,
        redactor: Redactor,
        clock: Arc<dyn SessionClock>,
    ) -> Result<Self, SessionJournalError> {
        let path = path_in(folder);
        let db = schema::open(&path)?;
        let first = schema::first_clocks(&db, clock.read())
            .map_err(|source| SessionJournalError::Database { path: path.clone(), source })?;
        Ok(Self { path, db, redactor, clock, first })
    }

    /// Returns the time of the session in milliseconds since 1970: that of a row that is appended now. It goes on
    /// steadily, also where somebody sets the clock of the host.
    pub fn now_ms(&self) -> u64 {
        clock::session_ms(&self.first, &self.clock.read())
    }

    /// Tells whether a folder has a journal.
    pub fn is_in(folder: &Path) -> bool {
        path_in(folder).is_file()
    }

    /// Appends rows that are durable together: all of them, or none. No other process appends meanwhile.
    ///
    /// # Errors
    /// A row cannot be written; then none is.
    pub fn append_all(&mut self, entries: &[SessionEntry]) -> Result<(), SessionJournalError> {
        self.written(entries, true)
    }

    /// Appends rows that the next durable row makes durable with itself. A power cut may take them before:
    /// for what can be found out again and nothing rests on yet.
    ///
    /// # Errors
    /// A row cannot be written; then none is.
    pub fn append_lazily(&mut self, entries: &[SessionEntry]) -> Result<(), SessionJournalError> {
        self.written(entries, false)
    }

    fn written(
        &mut self,
        entries: &[SessionEntry],
        synced: bool,
    ) -> Result<(), SessionJournalError> {
        let mut bodies = Vec::new();
        for entry in entries {
            let mut body = serde_json::to_value(entry).map_err(SessionJournalError::Json)?;
            self.redactor.value(&mut body);
            let body = body.to_string();
            if body.len() > MAX_BODY {
                return Err(SessionJournalError::TooLong(body.len()));
            }
            bodies.push(body);
        }
        let Self { db, clock, first, .. } = self;
        schema::append(db, (bodies, synced), first, || clock.read())
            .map_err(|source| SessionJournalError::Database { path: self.path.clone(), source })
    }

    /// Appends a row, secrets removed.
    ///
    /// # Errors
    /// The row is too long, or cannot be written; then nothing is.
    pub fn append(&mut self, entry: &SessionEntry) -> Result<(), SessionJournalError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Reads the rows behind a number, each checked against the hash of the row before it.
    ///
    /// # Errors
    /// A row was changed, is missing or cannot be read.
    pub fn rows_behind(
        &self,
        seq: u64,
        hash: RowHash,
    ) -> Result<Vec<SessionRow>, SessionJournalError> {
        let failed = |source| SessionJournalError::Database { path: self.path.clone(), source };
        let broken =
            |seq, why: String| SessionJournalError::Broken { path: self.path.clone(), seq, why };
        let mut last = (seq, hash);
        let mut rows = Vec::new();
        for stored in schema::rows_behind(&self.db, seq).map_err(failed)? {
            let schema::StoredRow { seq, time_ms, body, hash } = stored;
            if seq != last.0 + 1 {
                return Err(broken(last.0 + 1, "it is missing".to_owned()));
            }
            if hash != last.1.followed_by(seq, time_ms, &body) {
                return Err(broken(seq, "it is not what was written".to_owned()));
            }
            let entry = serde_json::from_str(&body).map_err(|e| broken(seq, e.to_string()))?;
            last = (seq, hash);
            rows.push(SessionRow { seq, time_ms, entry, hash });
        }
        Ok(rows)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// See [`Self::rows_behind`].
    pub fn rows(&self) -> Result<Vec<SessionRow>, SessionJournalError> {
        self.rows_behind(0, RowHash::default())
    }
}

impl SessionRow {
    /// Returns the row as a line of the export.
    pub fn exported(&self) -> Value {
        json!({
            "seq": self.seq,
            "time_ms": self.time_ms,
            "hash": self.hash.to_string(),
            "entry": self.entry,
        })
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("journal.db")
}

#[cfg(test)]
pub(crate) mod tests;
