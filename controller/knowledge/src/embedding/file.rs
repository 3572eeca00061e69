//! The file of the vectors of one model. Derived: what is wrong with it is no loss, and it is made anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior, params};

use super::rows::{ByteVector, VectorRows};
use super::{EmbedError, EmbedderName};
use crate::text::digest_of;

/// Rises with the form of the tables.
const VERSION: i64 = 1;

const BUSY: Duration = Duration::from_secs(2);

/// `number` rises with each write, so that other processes read only what is new.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS about (store INTEGER NOT NULL, model TEXT NOT NULL,
    dimension INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS vector (number INTEGER PRIMARY KEY AUTOINCREMENT,
    doc INTEGER NOT NULL UNIQUE, text INTEGER NOT NULL, scale REAL NOT NULL, value BLOB NOT NULL)
    STRICT;
";

/// The vector of a unit, to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VectorRow {
    pub(crate) doc: u32,
    pub(crate) text: u64,
    pub(crate) vector: ByteVector,
}

/// An open file, and how far it was read.
pub(crate) struct VectorFile {
    connection: Connection,
    dimension: usize,
    read: i64,
}

impl std::fmt::Debug for VectorFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VectorFile").field("read", &self.read).finish_non_exhaustive()
    }
}

fn failed(error: rusqlite::Error) -> EmbedError {
    EmbedError::Vectors(error.to_string())
}

impl VectorFile {
    /// Returns the file of a model in a folder.
    pub(crate) fn path(folder: &Path, model: &EmbedderName) -> PathBuf {
        folder.join(format!("vectors-{}.db", &digest_of(&model.name)[..16]))
    }

    /// Opens the vectors of a model and a store. A file that is damaged, of another form or of another
    /// store is emptied.
    pub(crate) fn open(
        folder: &Path,
        store: u64,
        model: &EmbedderName,
    ) -> Result<Self, EmbedError> {
        let path = Self::path(folder, model);
        match Self::open_as_it_is(&path, store, model) {
            Ok(Some(file)) => return Ok(file),
            // Another process is writing: it is not ours to remove.
            Err(error) if is_busy(&error) => return Err(failed(error)),
            Ok(None) | Err(_) => {}
        }
        for end in ["", "-wal", "-shm"] {
            let mut name = path.clone().into_os_string();
            name.push(end);
            // One that cannot be removed cannot be opened either.
            let _ = fs::remove_file(PathBuf::from(name));
        }
        let found = Self::open_as_it_is(&path, store, model).map_err(failed)?;
        found.ok_or_else(|| EmbedError::Vectors(format!("{} is of another store", path.display())))
    }

    fn open_as_it_is(
        path: &Path,
        store: u64,
        model: &EmbedderName,
    ) -> rusqlite::Result<Option<Self>> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        let version = |connection: &Connection| {
            connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
        };
        if version(&connection)? == 0 {
            // A page holds some 40 vectors, and all of them are read at once.
            connection.execute_batch("PRAGMA page_size = 16384")?;
            connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if version(&change)? == 0 {
                change.execute_batch(TABLES)?;
                change.execute(
                    "INSERT INTO about VALUES (?1, ?2, ?3, 0)",
                    params![store.cast_signed(), model.name, model.dimension as u64],
                )?;
                change.pragma_update(None, "user_version", VERSION)?;
            }
            change.commit()?;
        }
        // A power cut may take the last vectors with it: they are computed anew.
        connection.pragma_update(None, "synchronous", "normal")?;
        let about =
            connection.query_row("SELECT store, model, dimension FROM about", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, u64>(2)?))
            })?;
        let is_ours = version(&connection)? == VERSION
            && about == (store.cast_signed(), model.name.clone(), model.dimension as u64);
        Ok(is_ours.then_some(Self { connection, dimension: model.dimension, read: 0 }))
    }

    /// Adds what was written since the last call.
    pub(crate) fn follow(&mut self, rows: &mut VectorRows) -> Result<(), EmbedError> {
        self.read_behind(rows).map_err(failed)
    }

    fn read_behind(&mut self, rows: &mut VectorRows) -> rusqlite::Result<()> {
        let last: i64 = self
            .connection
            .prepare("SELECT ifnull(max(number), 0) FROM vector")?
            .query_row([], |row| row.get(0))?;
        if last <= self.read {
            return Ok(());
        }
        let count: u64 = self
            .connection
            .prepare("SELECT count(*) FROM vector WHERE number > ?1")?
            .query_row([self.read], |row| row.get(0))?;
        rows.reserve(usize::try_from(count).unwrap_or_default().min(1 << 24));
        let select = "SELECT number, doc, text, scale, value FROM vector WHERE number > ?1
            ORDER BY number";
        let mut query = self.connection.prepare(select)?;
        let mut found = query.query([self.read])?;
        let mut numbers = Vec::with_capacity(self.dimension);
        while let Some(row) = found.next()? {
            let value = row.get_ref(4)?.as_blob()?;
            numbers.clear();
            numbers.extend(value.iter().map(|byte| byte.cast_signed()));
            let scale = row.get::<_, f64>(3)? as f32;
            if scale.is_finite() {
                rows.put(row.get(1)?, row.get::<_, i64>(2)?.cast_unsigned(), scale, &numbers);
            }
            self.read = row.get(0)?;
        }
        Ok(())
    }

    /// Returns the change of the store up to which each unit has a vector, if it can have one.
    pub(crate) fn seq(&self) -> Result<u64, EmbedError> {
        self.connection.query_row("SELECT seq FROM about", [], |row| row.get(0)).map_err(failed)
    }

    /// Writes vectors, and that each unit up to a change has one.
    pub(crate) fn write(&mut self, rows: &[VectorRow], seq: u64) -> Result<(), EmbedError> {
        let mut write = || {
            let change =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let insert = "INSERT OR REPLACE INTO vector (doc, text, scale, value)
                VALUES (?1, ?2, ?3, ?4)";
            let mut query = change.prepare(insert)?;
            for VectorRow { doc, text, vector } in rows {
                let value: Vec<u8> = vector.numbers.iter().map(|n| n.cast_unsigned()).collect();
                let scale = f64::from(vector.scale);
                query.execute(params![doc, text.cast_signed(), scale, value])?;
            }
            drop(query);
            // Another process may be further.
            change.execute("UPDATE about SET seq = max(seq, ?1)", [seq])?;
            change.commit()
        };
        write().map_err(failed)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str, dimension: usize) -> EmbedderName {
        EmbedderName { name: name.to_owned(), dimension }
    }

    fn row(doc: u32, text: u64) -> VectorRow {
        VectorRow { doc, text, vector: ByteVector { scale: 0.5, numbers: vec![1, -2] } }
    }

    fn read(file: &mut VectorFile) -> VectorRows {
        let mut rows = VectorRows::new(2);
        file.follow(&mut rows).unwrap();
        rows
    }

    #[test]
    fn vectors_are_read_back_by_others_and_only_what_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let model = name("m", 2);
        let open = || VectorFile::open(folder.path(), 7, &model).unwrap();
        let (mut one, mut other) = (open(), open());
        one.write(&[row(1, 10), row(2, u64::MAX)], 5).unwrap();
        let mut rows = read(&mut other);
        assert_eq!((rows.len(), rows.has(1, 10), rows.has(2, u64::MAX)), (2, true, true));
        one.write(&[row(1, 11)], 3).unwrap();
        other.follow(&mut rows).unwrap();
        assert_eq!((rows.len(), rows.has(1, 11), rows.has(1, 10)), (2, true, false));
        assert_eq!(open().seq().unwrap(), 5);
    }

    #[test]
    fn each_model_has_a_file_and_vectors_of_another_store_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let open = |store, model: &str| VectorFile::open(folder.path(), store, &name(model, 2));
        open(7, "m").unwrap().write(&[row(1, 10)], 5).unwrap();
        open(7, "n").unwrap();
        assert_eq!(read(&mut open(7, "m").unwrap()).len(), 1);
        let mut other = open(8, "m").unwrap();
        assert_eq!((read(&mut other).len(), other.seq().unwrap()), (0, 0));
    }

    #[test]
    fn a_damaged_file_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let model = name("m", 2);
        let path = VectorFile::path(folder.path(), &model);
        for bytes in [vec![7; 4096], b"SQLite format 3\0".repeat(300), Vec::new()] {
            fs::write(&path, bytes).unwrap();
            let mut file = VectorFile::open(folder.path(), 7, &model).unwrap();
            assert_eq!(read(&mut file).len(), 0);
            file.write(&[row(1, 10)], 5).unwrap();
        }
    }
}
