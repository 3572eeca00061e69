//! The table of leases in a database, for many processes at once.
//!
//! # Format, version 1
//! Times are milliseconds since 1970, by the clock of the database; no process brings a time of its
//! own. Leases that have ended are kept as a history.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};

use jig_model::lease::{LeaseEnd, PlaceSelector};
use jig_model::{ClassName, LeaseId, PlaceName};
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, named_params};

use super::row::{LeaseRow, LeaseStage, PlaceRow};
use super::{LeaseError, LeaseTable};
use crate::database::{Database, DatabaseError, DatabaseFormat};

const FORMAT: DatabaseFormat = DatabaseFormat {
    what: "lease store",
    // "jigl"
    application: 0x6a69_676c,
    version: 1,
    tables: TABLES,
};

const TABLES: &str = "
CREATE TABLE place (
    name TEXT PRIMARY KEY NOT NULL,
    token INTEGER NOT NULL,
    used_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE lease (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'active', 'ended')),
    owner TEXT NOT NULL,
    need TEXT NOT NULL,
    class TEXT NOT NULL,
    priority INTEGER NOT NULL,
    yields INTEGER NOT NULL,
    comment TEXT,
    by_id INTEGER NOT NULL,
    ttl_ms INTEGER NOT NULL,
    longest_ms INTEGER,
    asked_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    busy_ms INTEGER NOT NULL,
    place TEXT,
    token INTEGER,
    granted_ms INTEGER,
    ended_ms INTEGER,
    why TEXT
) STRICT;
CREATE UNIQUE INDEX lease_of_place ON lease (place) WHERE state = 'active';
CREATE INDEX live_lease ON lease (state) WHERE state <> 'ended';
";

/// How many leases that have ended are kept: a busy rig with a lease every five minutes, a month.
const KEPT: u32 = 10_000;

/// How often the oldest are removed: not with every lease.
const REMOVE_EVERY: i64 = 64;

/// The leases of a rig, in one SQLite file that many processes use at once.
///
/// Every call may wait for the disk and for other processes: call it where blocking is allowed. A
/// change is durable when the call returns.
#[derive(Debug)]
pub struct LeaseStore {
    database: Database,
}

/// Makes an id that no other lease has: 64 random bits.
pub fn new_lease_id() -> LeaseId {
    // Its keys are taken from the system, each time anew.
    let random = RandomState::new().build_hasher().finish();
    let text = format!("lease-{random:016x}");
    text.parse().unwrap_or_else(|_| unreachable!("{text:?} is a name"))
}

impl LeaseStore {
    /// Returns where the store of a state folder is.
    pub fn path_in(state: &Path) -> PathBuf {
        state.join("leases.db")
    }

    /// Opens a store, or begins it.
    ///
    /// # Errors
    /// It cannot be written, a newer Jig wrote it, or it is damaged.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { database: Database::open(FORMAT, path)? })
    }

    /// Applies a step that often changes nothing, as [`Self::change`] does. Others do not wait for it
    /// then, and it does not wait for them.
    pub(super) fn look<T>(
        &self,
        ids: &[&LeaseId],
        mut step: impl FnMut(&mut LeaseTable, i64) -> Result<T, LeaseError>,
    ) -> Result<T, LeaseError> {
        let seen = self.database.retried(|connection| {
            let view = connection.transaction()?;
            let now = now(&view)?;
            let Ok(before) = load(&view, ids)? else { return Ok(None) };
            let mut table = before.clone();
            let done = step(&mut table, now);
            Ok((done.is_err() || table == before).then_some(done))
        })?;
        seen.unwrap_or_else(|| self.change(ids, step))
    }

    /// Applies a step to the table, in one transaction. `ids` are leases that the step asks for and
    /// that may have ended. A step that fails changes nothing.
    pub(super) fn change<T>(
        &self,
        ids: &[&LeaseId],
        mut step: impl FnMut(&mut LeaseTable, i64) -> Result<T, LeaseError>,
    ) -> Result<T, LeaseError> {
        self.database.retried(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let now = now(&change)?;
            let before = match load(&change, ids)? {
                Ok(table) => table,
                Err(reason) => return Ok(Err(self.database.damaged(reason).into())),
            };
            let mut table = before.clone();
            let done = match step(&mut table, now) {
                Ok(done) => done,
                Err(error) => return Ok(Err(error)),
            };
            if table != before {
                save(&change, &before, &table)?;
                change.commit()?;
            }
            Ok(Ok(done))
        })?
    }
}

fn now(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)")?
        .query_row([], |row| row.get(0))
}

/// Loads what lives, and what is named; says what cannot be read.
fn load(
    change: &Transaction<'_>,
    ids: &[&LeaseId],
) -> rusqlite::Result<Result<LeaseTable, String>> {
    let mut table = LeaseTable::default();
    let mut places = change.prepare_cached("SELECT name, token, used_ms FROM place")?;
    let mut rows = places.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let Ok(name) = name.parse::<PlaceName>() else {
            return Ok(Err(format!("{name:?} is no place")));
        };
        table.places.insert(name, PlaceRow { token: row.get(1)?, used: row.get(2)? });
    }
    drop(rows);
    let columns = "SELECT id, state, owner, need, class, priority, yields, comment, by_id,
        ttl_ms, longest_ms, asked_ms, until_ms, busy_ms, place, token, granted_ms, ended_ms, why
        FROM lease";
    let mut live =
        change.prepare_cached(&format!("{columns} WHERE state <> 'ended' ORDER BY seq"))?;
    let mut rows = live.query([])?;
    while let Some(row) = rows.next()? {
        match read(row)? {
            Ok(row) => table.leases.push(row),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    drop(rows);
    let mut named = change.prepare_cached(&format!("{columns} WHERE id = ?1"))?;
    for id in ids {
        let mut rows = named.query([id.as_str()])?;
        let Some(row) = rows.next()? else { continue };
        match read(row)? {
            Ok(row) if table.leases.iter().any(|known| known.id == row.id) => {}
            Ok(row) => table.leases.push(row),
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(table))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Result<LeaseRow, String>> {
    let id: String = row.get(0)?;
    let (state, need, class): (String, String, String) = (row.get(1)?, row.get(3)?, row.get(4)?);
    let place: Option<String> = row.get(14)?;
    let why: Option<String> = row.get(18)?;
    let (token, granted, ended): (Option<u64>, Option<i64>, Option<i64>) =
        (row.get(15)?, row.get(16)?, row.get(17)?);
    let lowered = || -> Option<(LeaseId, PlaceSelector, ClassName, LeaseStage)> {
        let place = match &place {
            Some(place) => Some(place.parse::<PlaceName>().ok()?),
            None => None,
        };
        let stage = match state.as_str() {
            "queued" => LeaseStage::Queued,
            "active" => LeaseStage::Active { place: place?, token: token?, granted: granted? },
            "ended" => {
                let why: LeaseEnd = serde_json::from_str(why.as_deref()?).ok()?;
                LeaseStage::Ended { place, at: ended?, why }
            }
            _ => return None,
        };
        Some((id.parse().ok()?, need.parse().ok()?, class.parse().ok()?, stage))
    };
    let Some((id, need, class, stage)) = lowered() else {
        return Ok(Err(format!(
            "lease {:?} cannot be read",
            id.chars().take(64).collect::<String>()
        )));
    };
    Ok(Ok(LeaseRow {
        id,
        owner: row.get(2)?,
        need,
        class,
        priority: row.get(5)?,
        yields: row.get(6)?,
        comment: row.get(7)?,
        by_id: row.get(8)?,
        ttl: row.get(9)?,
        longest: row.get(10)?,
        asked: row.get(11)?,
        until: row.get(12)?,
        busy: row.get(13)?,
        stage,
    }))
}

/// Writes the rows that differ.
fn save(change: &Transaction<'_>, before: &LeaseTable, after: &LeaseTable) -> rusqlite::Result<()> {
    let mut put_place = change.prepare_cached(
        "INSERT INTO place (name, token, used_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (name) DO UPDATE SET token = excluded.token, used_ms = excluded.used_ms",
    )?;
    for (name, row) in &after.places {
        if before.places.get(name) != Some(row) {
            put_place.execute((name.as_str(), row.token, row.used))?;
        }
    }
    let changed = |row: &&LeaseRow| !before.leases.contains(row);
    // What ends makes room for what begins: a place has one active lease.
    let mut rows: Vec<&LeaseRow> = after.leases.iter().filter(changed).collect();
    rows.sort_by_key(|row| !matches!(row.stage, LeaseStage::Ended { .. }));
    for row in rows {
        put(change, row)?;
    }
    Ok(())
}

fn put(change: &Transaction<'_>, row: &LeaseRow) -> rusqlite::Result<()> {
    let (state, place, token, granted, ended, why) = match &row.stage {
        LeaseStage::Queued => ("queued", None, None, None, None, None),
        LeaseStage::Active { place, token, granted } => {
            ("active", Some(place), Some(*token), Some(*granted), None, None)
        }
        LeaseStage::Ended { place, at, why } => {
            let why = serde_json::to_string(why)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            ("ended", place.as_ref(), None, None, Some(*at), Some(why))
        }
    };
    let mut put = change.prepare_cached(
        "INSERT INTO lease (id, state, owner, need, class, priority, yields, comment, by_id,
            ttl_ms, longest_ms, asked_ms, until_ms, busy_ms, place, token, granted_ms, ended_ms, why)
         VALUES (:id, :state, :owner, :need, :class, :priority, :yields, :comment, :by_id,
            :ttl, :longest, :asked, :until, :busy, :place, :token, :granted, :ended, :why)
         ON CONFLICT (id) DO UPDATE SET state = excluded.state, until_ms = excluded.until_ms,
            busy_ms = excluded.busy_ms, place = excluded.place,
            token = coalesce(excluded.token, token),
            granted_ms = coalesce(excluded.granted_ms, granted_ms),
            ended_ms = excluded.ended_ms, why = excluded.why",
    )?;
    put.execute(named_params! {
        ":id": row.id.as_str(),
        ":state": state,
        ":owner": row.owner,
        ":need": row.need.to_string(),
        ":class": row.class.as_str(),
        ":priority": row.priority,
        ":yields": row.yields,
        ":comment": row.comment,
        ":by_id": row.by_id,
        ":ttl": row.ttl,
        ":longest": row.longest,
        ":asked": row.asked,
        ":until": row.until,
        ":busy": row.busy,
        ":place": place.map(PlaceName::as_str),
        ":token": token,
        ":granted": granted,
        ":ended": ended,
        ":why": why,
    })?;
    if change.last_insert_rowid() % REMOVE_EVERY == 0 {
        change
            .prepare(
                "DELETE FROM lease WHERE state = 'ended' AND seq <=
                    (SELECT max(seq) FROM lease) - ?1",
            )?
            .execute([KEPT])?;
    }
    Ok(())
}
