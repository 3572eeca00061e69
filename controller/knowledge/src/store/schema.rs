//! The file of the store: how it is made, opened and refused.
//!
//! # Design
//! SQLite appends a change to the journal and flushes it: some .3 ms. Copying the journal into the file
//! is what takes long: 8 ms and more, and with SQLite's defaults one insert in fifty waits for it. Here
//! another thread copies, once the journal has grown to [`JOURNAL`]; closing the store waits for
//! it. SQLite's own copying stays as a bound for when that thread does not get through. A command that
//! opens the store reads the journal first, so who closes a store with a journal of [`GROWN`] copies it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::past;
use crate::error::KnowledgeError;
use crate::unit::UnitId;

/// The newest version that this program knows.
pub(super) const VERSION: i64 = 1;

/// "jigk": tells the store from other databases.
const APPLICATION: i64 = 0x6a69_676b;

/// How long another writer is waited for. A write takes some milliseconds; who holds the store for
/// longer keeps a capture waiting no longer than this, and the draft goes to the outbox.
const BUSY: Duration = Duration::from_secs(2);

/// Pause before a refused command is tried again, where SQLite does not wait by itself.
const PAUSE: Duration = Duration::from_millis(10);

/// Journal that is copied into the file of an open store: the changes of some 200 inserts.
const JOURNAL: u64 = 16 << 20;

/// Journal that is copied when a store is closed: some fifty runs. Reading one of 10 MiB took each command
/// some 40 ms.
const GROWN: u64 = 1 << 20;

/// Pages of a journal that SQLite copies itself before a change returns.
const LONGEST: u64 = 64 << 20 >> 12;

/// The tables. `body` is the whole unit as JSON; the columns beside it are what statements look at.
const TABLES: &str = "
CREATE TABLE unit (
    doc INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL UNIQUE,
    status TEXT NOT NULL,
    archived INTEGER NOT NULL,
    signature TEXT,
    created_us INTEGER NOT NULL,
    read_us INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX unit_signature ON unit (signature) WHERE signature IS NOT NULL;
CREATE INDEX unit_unread ON unit (read_us) WHERE archived = 0;
CREATE TABLE band (
    band INTEGER NOT NULL, hash INTEGER NOT NULL, doc INTEGER NOT NULL,
    PRIMARY KEY (band, hash, doc)
) STRICT, WITHOUT ROWID;
CREATE TABLE seen (draft TEXT PRIMARY KEY, doc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE history (
    doc INTEGER NOT NULL, seq INTEGER NOT NULL, at_us INTEGER NOT NULL, who TEXT NOT NULL,
    what TEXT NOT NULL, before TEXT,
    PRIMARY KEY (doc, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE link (
    one TEXT NOT NULL, kind TEXT NOT NULL, other TEXT NOT NULL,
    PRIMARY KEY (one, kind, other)
) STRICT, WITHOUT ROWID;
CREATE TABLE feedback (
    number INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, question TEXT NOT NULL, id TEXT NOT NULL,
    accepted INTEGER NOT NULL
) STRICT;
CREATE TABLE identity (store INTEGER NOT NULL) STRICT;
";

/// An open store. Every call may wait for the disk and for other processes.
pub struct KnowledgeStore {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// Copies the journal into the file.
    copying: Mutex<Option<JoinHandle<()>>>,
    /// Tells it from other stores, so that no index of another one is used.
    identity: u64,
}

impl std::fmt::Debug for KnowledgeStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnowledgeStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KnowledgeStore {
    /// Opens the store, and makes it where there is none. Its folder is made, too.
    ///
    /// # Errors
    /// It cannot be used, is of a newer version, or is something else.
    pub fn open(path: &Path) -> Result<Self, KnowledgeError> {
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o750).create(folder);
            made.map_err(|error| KnowledgeError::file(folder, error))?;
        }
        let flags = FLAGS | OpenFlags::SQLITE_OPEN_CREATE;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|e| KnowledgeError::of(path, e))?;
        let mut store = Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            copying: Mutex::default(),
            identity: 0,
        };
        store.with(|connection| prepare(connection))?;
        if store.version()?.is_none() {
            store.with(create)?;
        }
        match store.version()? {
            Some(VERSION) => {}
            Some(found) if found > VERSION => {
                let path = path.to_owned();
                return Err(KnowledgeError::Newer { path, found, known: VERSION });
            }
            Some(found) => return Err(store.damaged(format!("there is no format {found}"))),
            None => return Err(store.damaged(SOMETHING_ELSE)),
        }
        store.with(past::prepare)?;
        let select = "SELECT store FROM identity";
        let identity: i64 =
            store.with(|connection| connection.query_row(select, [], |row| row.get(0)))?;
        store.identity = identity.cast_unsigned();
        Ok(store)
    }

    /// Returns its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what tells it from other stores.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Says that it does not hold what it should.
    pub(super) fn damaged(&self, reason: impl Into<String>) -> KnowledgeError {
        KnowledgeError::damaged(&self.path, reason)
    }

    /// Does something that others may be in the way of. SQLite's own waiting leaves out some
    /// moments, such as two processes that open a new store at once.
    pub(super) fn with<T>(
        &self,
        mut work: impl FnMut(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, KnowledgeError> {
        // A panic cannot leave half a change behind: SQLite rolls it back.
        let mut connection: MutexGuard<'_, Connection> =
            self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        loop {
            match work(&mut connection) {
                Err(error)
                    if matches!(
                        error.sqlite_error_code(),
                        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    ) && began.elapsed() < BUSY =>
                {
                    std::thread::sleep(PAUSE);
                }
                other => return other.map_err(|error| KnowledgeError::of(&self.path, error)),
            }
        }
    }

    /// Does something in a transaction that excludes other writers. An error of the work rolls it back.
    pub(super) fn change<T>(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<Result<T, KnowledgeError>>,
    ) -> Result<T, KnowledgeError> {
        let done = self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&change)?;
            if done.is_ok() {
                change.commit()?;
            }
            Ok(done)
        })?;
        self.copy_journal();
        done
    }

    /// Tells whether the journal is longer than a length.
    fn journal_exceeds(&self, length: u64) -> bool {
        let journal = with_end(&self.path, "-wal");
        std::fs::metadata(&journal).is_ok_and(|about| about.len() > length)
    }

    /// Begins to copy the journal into the file if it has grown. The change is durable already: what fails
    /// here is tried again after the next one.
    fn copy_journal(&self) {
        if !self.journal_exceeds(JOURNAL) {
            return;
        }
        let mut copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        if copying.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let path = self.path.clone();
        let copy = move || {
            // Readers and writers go on meanwhile; what they hold, and what fails, is left for the next
            // time.
            let _ = Connection::open_with_flags(&path, FLAGS).and_then(|connection| {
                connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            });
        };
        *copying = std::thread::Builder::new().name("journal".to_owned()).spawn(copy).ok();
    }

    /// Looks for damage in the whole file, which takes as long as reading it.
    ///
    /// # Errors
    /// It is damaged, or cannot be read.
    pub fn check(&self) -> Result<(), KnowledgeError> {
        let found: String = self.with(|connection| {
            connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        })?;
        if found == "ok" { Ok(()) } else { Err(self.damaged(found)) }
    }

    /// Returns the version; nothing for a new file.
    fn version(&self) -> Result<Option<i64>, KnowledgeError> {
        let both = self.with(|connection| {
            // One view of both: another process may make the tables between two looks.
            let view = connection.unchecked_transaction()?;
            let number =
                |name: &str| view.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            Ok((number("application_id")?, number("user_version")?))
        })?;
        match both {
            (APPLICATION, version) => Ok(Some(version)),
            (0, 0) => Ok(None),
            _ => Err(self.damaged(SOMETHING_ELSE)),
        }
    }
}

impl Drop for KnowledgeStore {
    fn drop(&mut self) {
        let copying = self.copying.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = copying.take() {
            // Were it to panic, the journal would stay as it is.
            let _ = thread.join();
        }
        if self.journal_exceeds(GROWN) {
            // A process that has the store open, too, is not waited for: it copies when it closes.
            let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = connection.busy_timeout(Duration::ZERO).and_then(|()| {
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            });
        }
    }
}

const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

const SOMETHING_ELSE: &str = "it is a database of something else";

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // The file may come from another program.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    // Closing does not copy the journal into the file: that costs a command two flushes.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != "wal" {
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    }
    connection.pragma_update(None, "wal_autocheckpoint", LONGEST)?;
    // A journal that was copied begins anew, and its file is cut: so its length says how much is not copied.
    connection.pragma_update_and_check(None, "journal_size_limit", JOURNAL, |_| Ok(()))?;
    // With NORMAL a power cut takes acknowledged units with it: 1,200 to 1,500 were lost in a test.
    connection.pragma_update(None, "synchronous", "full")
}

/// Makes the tables, unless another process has made them or the file holds others.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let tables: i64 =
        change.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 {
        return Ok(());
    }
    change.execute_batch(TABLES)?;
    // The digits of a drawn name are as good a number as another.
    let drawn = i64::from_str_radix(&UnitId::random().as_str()[2..], 16).unwrap_or_default();
    change.execute("INSERT INTO identity VALUES (?1)", [drawn])?;
    change.pragma_update(None, "application_id", APPLICATION)?;
    change.pragma_update(None, "user_version", VERSION)?;
    change.commit()
}
