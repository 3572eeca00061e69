//! The store's file: how it is opened, and its tables.
//!
//! # Format, version 1
//! An SQLite database whose `application_id` is [`APPLICATION`] and whose `user_version` is the
//! version. Times are microseconds since 1970, UTC.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::HealthError;

/// The newest version that this program knows.
pub(super) const VERSION: i64 = 1;

/// "jigh": tells the store from other databases.
const APPLICATION: i64 = 0x6a69_6768;

/// How long other processes may have the store. One note takes some milliseconds and a disk's
/// flush; a hundred of them that come at once are through within a second or two. A process that
/// keeps the store for longer has locked it, and health is unknown to a run then.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// How long SQLite itself waits before it says that the store is in use.
const BUSY: Duration = Duration::from_millis(250);

/// Pause before a refused command is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// The figures stand in columns of their own, so that SQLite counts them; the rest of an event
/// is JSON.
const TABLES: &str = "
CREATE TABLE place (
    name TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    since_us INTEGER,
    why TEXT NOT NULL,
    passes INTEGER NOT NULL,
    failures INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    served INTEGER,
    passed INTEGER,
    cured INTEGER,
    flash_ms INTEGER,
    gaps INTEGER
) STRICT;
CREATE INDEX event_of_place ON event (place, seq);
CREATE INDEX event_in_time ON event (place, kind, at_us);
";

/// Opens the store, and makes it where there is none.
pub(super) fn open(path: &Path) -> Result<Connection, HealthError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(|e| HealthError::of(path, e))?;
    retried(path, || prepare(&connection))?;
    match version(path, &connection)? {
        Some(VERSION) => Ok(connection),
        Some(found) if found > VERSION => {
            Err(HealthError::Newer { path: path.to_owned(), found, known: VERSION })
        }
        Some(found) => Err(HealthError::damaged(path, format!("there is no format {found}"))),
        None => {
            retried(path, || create(&mut connection))?;
            // Another process may have made it a moment before.
            match version(path, &connection)? {
                Some(VERSION) => Ok(connection),
                _ => Err(HealthError::damaged(path, "it is a database of something else")),
            }
        }
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // Closing does not copy the journal into the file: that would cost every command two
    // flushes. SQLite does it by itself once the journal has grown.
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

/// Returns the version; nothing for a new file.
fn version(path: &Path, connection: &Connection) -> Result<Option<i64>, HealthError> {
    let both = retried(path, || {
        // One view of both: another process may make the tables between two looks.
        let view = connection.unchecked_transaction()?;
        let number = |name: &str| view.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        Ok((number("application_id")?, number("user_version")?))
    })?;
    match both {
        (APPLICATION, version) => Ok(Some(version)),
        (0, 0) => Ok(None),
        _ => Err(HealthError::damaged(path, "it is a database of something else")),
    }
}

/// Makes the tables, unless another process has made them or the file holds others.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        change.execute_batch(TABLES)?;
        change.pragma_update(None, "application_id", APPLICATION)?;
        change.pragma_update(None, "user_version", VERSION)?;
    }
    change.commit()
}

/// Does something that others may be in the way of. SQLite's own waiting leaves out some
/// moments, such as two processes that open a new store at once.
pub(super) fn retried<T>(
    path: &Path,
    mut what: impl FnMut() -> rusqlite::Result<T>,
) -> Result<T, HealthError> {
    let began = Instant::now();
    loop {
        match what() {
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                ) && began.elapsed() < TIMEOUT =>
            {
                std::thread::sleep(PAUSE);
            }
            other => return other.map_err(|e| HealthError::of(path, e)),
        }
    }
}
