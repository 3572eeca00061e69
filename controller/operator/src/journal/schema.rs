//! The journal's file: how it is made and opened, and its table.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params,
};

use super::SessionJournalError;
use super::clock::{ClockReading, session_ms};
use crate::digest::RowHash;

/// The newest version that this program knows.
pub(super) const VERSION: i64 = 2;

/// "jigs": tells the journal of a session from other databases.
const APPLICATION: i64 = 0x6a69_6773;

/// How long a row of another process is waited for.
const BUSY: Duration = Duration::from_secs(10);

const TABLE: &str = "
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    time_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;
CREATE TRIGGER journal_keeps_rows BEFORE UPDATE ON journal
BEGIN SELECT raise(ABORT, 'rows of a journal are never changed'); END;
CREATE TRIGGER journal_keeps_all_rows BEFORE DELETE ON journal
BEGIN SELECT raise(ABORT, 'rows of a journal are never removed'); END;
";

/// Since version 2. A row for each start of a host on which rows were appended.
const CLOCKS: &str = "
CREATE TABLE IF NOT EXISTS clocks (
    boot TEXT PRIMARY KEY, wall_ms INTEGER NOT NULL, running_ms INTEGER NOT NULL
) STRICT;
";

/// A row as it stands in the file.
pub(super) struct StoredRow {
    pub(super) seq: u64,
    pub(super) time_ms: u64,
    pub(super) body: String,
    pub(super) hash: RowHash,
}

/// Makes the file of a journal. It is durable with its first row: what stands in the file itself is synced here
/// once, and the rest is in its log, which that row syncs.
pub(super) fn create(path: &Path) -> Result<Connection, SessionJournalError> {
    let failed = |source| SessionJournalError::Database { path: path.to_owned(), source };
    let mut db = Connection::open(path).map_err(failed)?;
    let begin = |db: &mut Connection| -> rusqlite::Result<bool> {
        db.busy_timeout(BUSY)?;
        db.pragma_update(None, "synchronous", "off")?;
        db.pragma_update(None, "journal_mode", "wal")?;
        make(db)
    };
    if !begin(&mut db).map_err(failed)? {
        return Err(SessionJournalError::Exists { path: path.to_owned() });
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    for file in [path, folder] {
        let synced = File::open(file).and_then(|file| file.sync_all());
        synced.map_err(|error| failed(rusqlite::Error::ToSqlConversionFailure(Box::new(error))))?;
    }
    db.pragma_update(None, "synchronous", "full").map_err(failed)?;
    Ok(db)
}

/// Makes the table; tells whether there was none.
fn make(db: &mut Connection) -> rusqlite::Result<bool> {
    let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let empty = making.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if empty {
        making.execute_batch(TABLE)?;
        making.execute_batch(CLOCKS)?;
        making.pragma_update(None, "application_id", APPLICATION)?;
        making.pragma_update(None, "user_version", VERSION)?;
        making.commit()?;
    }
    Ok(empty)
}

/// Opens the file of a journal.
pub(super) fn open(path: &Path) -> Result<Connection, SessionJournalError> {
    let failed = |source| SessionJournalError::Database { path: path.to_owned(), source };
    let db =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = match number("application_id") {
        Ok(APPLICATION) => number("user_version").map_err(failed)?,
        Err(error) if error.sqlite_error_code() != Some(ErrorCode::NotADatabase) => {
            return Err(failed(error));
        }
        _ => return Err(SessionJournalError::Foreign { path: path.to_owned() }),
    };
    if version > VERSION {
        let path = path.to_owned();
        return Err(SessionJournalError::Newer { path, found: version, known: VERSION });
    }
    durable(&db).map_err(failed)?;
    Ok(db)
}

/// A row must outlive a power cut as soon as it is written, unless it says otherwise: a call that flashes a
/// board is not made before its intent is on the disk.
fn durable(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")
}

/// Appends rows behind the last one, in one transaction that excludes other writers: number and hash of the
/// row before must not change meanwhile. `first` is made what the journal keeps of the clocks.
pub(super) fn append(
    db: &mut Connection,
    (bodies, synced): (Vec<String>, bool),
    first: &mut ClockReading,
    now: impl Fn() -> ClockReading,
) -> rusqlite::Result<()> {
    // Outside of a transaction: within one it has no effect.
    db.pragma_update(None, "synchronous", if synced { "full" } else { "normal" })?;
    let appending = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last = "SELECT seq, hash, time_ms FROM journal ORDER BY seq DESC LIMIT 1";
    let last = appending.query_row(last, [], |row| {
        Ok((row.get::<_, u64>(0)?, RowHash(row.get(1)?), row.get::<_, u64>(2)?))
    });
    let (mut seq, mut hash, mut last_ms) = last.optional()?.unwrap_or_default();
    keep_clocks(&appending, first)?;
    let insert = "INSERT INTO journal (seq, time_ms, kind, body, hash)
                  VALUES (?1, ?2, json_extract(?3, '$.kind'), ?3, ?4)";
    let mut insert = appending.prepare_cached(insert)?;
    for body in bodies {
        seq += 1;
        let time_ms = session_ms(first, &now()).max(last_ms);
        hash = hash.followed_by(seq, time_ms, &body);
        insert.execute(params![seq, time_ms, body, hash.0])?;
        last_ms = time_ms;
    }
    drop(insert);
    appending.commit()
}

/// Keeps the clocks of this start of the host, unless another process has.
fn keep_clocks(db: &Connection, first: &mut ClockReading) -> rusqlite::Result<()> {
    if let Some(kept) = clocks(db, &first.boot)? {
        *first = kept;
        return Ok(());
    }
    db.execute_batch(CLOCKS)?;
    let insert = "INSERT INTO clocks (boot, wall_ms, running_ms) VALUES (?1, ?2, ?3)";
    db.execute(insert, params![first.boot, first.wall_ms, first.running_ms])?;
    Ok(())
}

/// Returns what the journal keeps of the clocks of a start of the host.
fn clocks(db: &Connection, boot: &str) -> rusqlite::Result<Option<ClockReading>> {
    let there = "SELECT 1 FROM sqlite_schema WHERE name = 'clocks'";
    let there = db.prepare_cached(there)?.exists([])?;
    if !there {
        return Ok(None);
    }
    let select = "SELECT wall_ms, running_ms FROM clocks WHERE boot = ?1";
    let kept = db.prepare_cached(select)?.query_row([boot], |row| {
        Ok(ClockReading { wall_ms: row.get(0)?, running_ms: row.get(1)?, boot: boot.to_owned() })
    });
    kept.optional()
}

/// Returns the clocks by which the time of a session is counted now: those that the journal keeps, or those of
/// this moment, which lie behind the last row.
pub(super) fn first_clocks(db: &Connection, now: ClockReading) -> rusqlite::Result<ClockReading> {
    if let Some(kept) = clocks(db, &now.boot)? {
        return Ok(kept);
    }
    let last: Option<u64> =
        db.query_row("SELECT max(time_ms) FROM journal", [], |row| row.get(0))?;
    Ok(ClockReading { wall_ms: now.wall_ms.max(last.unwrap_or_default()), ..now })
}

/// Reads the rows behind a number, in order.
pub(super) fn rows_behind(db: &Connection, seq: u64) -> rusqlite::Result<Vec<StoredRow>> {
    db.prepare_cached("SELECT seq, time_ms, body, hash FROM journal WHERE seq > ?1 ORDER BY seq")?
        .query_map([seq], |row| {
            Ok(StoredRow {
                seq: row.get(0)?,
                time_ms: row.get(1)?,
                body: row.get(2)?,
                hash: RowHash(row.get(3)?),
            })
        })?
        .collect()
}
