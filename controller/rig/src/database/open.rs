//! How a database is opened, or begun.
//!
//! Its `application_id` tells it from other databases, and its `user_version` is the version of its
//! tables.
//!
//! # Design
//! *The journal stays behind*: to copy it into the file costs two flushes, which is too much for each command.
//! But who opens a database that no other process has open reads the whole journal, and no journal begins anew
//! while each process writes once. So a process that closes a database copies a journal that has grown.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::DatabaseError;
use super::busy_timeout::BusyTimeout;

/// What tells a database from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseFormat {
    /// What it is, for messages: `health store`.
    pub(crate) what: &'static str,
    /// Its `application_id`.
    pub(crate) application: i64,
    /// The newest version that this program knows; there is no older one that it reads.
    pub(crate) version: i64,
    /// The statements that make its tables.
    pub(crate) tables: &'static str,
}

/// How often SQLite itself looks again before it says that a database is in use, and the pause between
/// two looks. Its own pauses grow to a tenth of a second, in which a place stands idle.
const LOOKS: i32 = 250;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Pause before a refused command is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// Size from which on a journal is copied when a database is closed: some twenty changes. To read one of this size
/// takes less time than to open the rest.
const GROWN: u64 = 256 << 10;

/// An open database. Every call may wait for the disk and for other processes.
pub(crate) struct Database {
    format: DatabaseFormat,
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Database {
    /// Opens a database, and makes it where there is none. Its folder is made, too.
    pub(crate) fn open(format: DatabaseFormat, path: &Path) -> Result<Self, DatabaseError> {
        let what = format.what;
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o750).create(folder);
            let path = path.to_owned();
            made.map_err(|source| DatabaseError::Folder { what, path, source })?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags);
        let connection = connection.map_err(|error| DatabaseError::of(what, path, error))?;
        let database = Self { format, path: path.to_owned(), connection: Mutex::new(connection) };
        database.retried(prepare)?;
        let newest = format.version;
        match database.version()? {
            Some(found) if found == newest => Ok(database),
            Some(found) if found > newest => {
                let path = path.to_owned();
                Err(DatabaseError::Newer { what, path, found, known: newest })
            }
            Some(found) => Err(database.damaged(format!("there is no format {found}"))),
            None => {
                database.retried(|connection| create(connection, format))?;
                // Another process may have made it a moment before.
                match database.version()? {
                    Some(found) if found == newest => Ok(database),
                    _ => Err(database.damaged(SOMETHING_ELSE)),
                }
            }
        }
    }

    /// Returns its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Says that it does not hold what it should.
    pub(crate) fn damaged(&self, reason: impl Into<String>) -> DatabaseError {
        DatabaseError::damaged(self.format.what, &self.path, reason)
    }

    /// Says that something of this program's own cannot be written as JSON.
    pub(crate) fn unencoded(&self, source: serde_json::Error) -> DatabaseError {
        DatabaseError::Encode { what: self.format.what, path: self.path.clone(), source }
    }

    /// Does something that others may be in the way of. SQLite's own waiting leaves out some
    /// moments, such as two processes that open a new database at once.
    pub(crate) fn retried<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let mut connection = self.connection();
        let mut timeout = BusyTimeout::new(&self.path);
        loop {
            match work(&mut connection) {
                Err(error)
                    if matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    ) && !timeout.is_over() =>
                {
                    std::thread::sleep(PAUSE);
                }
                other => {
                    return other.map_err(|e| DatabaseError::of(self.format.what, &self.path, e));
                }
            }
        }
    }

    /// Copies a journal that has grown into the file, unless other processes use it now: one of those will.
    fn copy_grown_journal(&self) -> rusqlite::Result<()> {
        let mut journal = self.path.as_os_str().to_owned();
        journal.push("-wal");
        if std::fs::metadata(journal).is_ok_and(|about| about.len() >= GROWN) {
            let mut connection = self.connection();
            connection.busy_handler(None::<fn(i32) -> bool>)?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic cannot leave half a change behind: SQLite rolls it back.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the version; nothing for a new file.
    fn version(&self) -> Result<Option<i64>, DatabaseError> {
        let both = self.retried(|connection| {
            // One view of both: another process may make the tables between two looks.
            let view = connection.unchecked_transaction()?;
            let number =
                |name: &str| view.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok((number("application_id")?, number("user_version")?))
        })?;
        match both {
            (application, version) if application == self.format.application => Ok(Some(version)),
            (0, 0) => Ok(None),
            _ => Err(self.damaged(SOMETHING_ELSE)),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A journal that is not copied is read by who opens the database next, and copied by who closes it.
        if let Err(error) = self.copy_grown_journal() {
            tracing::debug!(path = %self.path.display(), %error, "the journal was not copied");
        }
    }
}

const SOMETHING_ELSE: &str = "it is a database of something else";

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(look_again))?;
    // Not with each command: see above.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // The file may come from another program.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    }
    connection.pragma_update(None, "synchronous", "full")
}

fn look_again(looks: i32) -> bool {
    std::thread::sleep(BETWEEN_LOOKS);
    looks < LOOKS
}

/// Makes the tables, unless another process has made them or the file holds others.
fn create(connection: &mut Connection, format: DatabaseFormat) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        change.execute_batch(format.tables)?;
        change.pragma_update(None, "application_id", format.application)?;
        change.pragma_update(None, "user_version", format.version)?;
    }
    change.commit()
}
