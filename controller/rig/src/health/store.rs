//! The store: states and history of places, kept between processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jig_model::{PlaceName, VerdictKind};
use rusqlite::{
    Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, named_params,
};
use serde::{Deserialize, Serialize};

use super::schema::{DEVICES, FORMAT};
use super::table::{needed, next};
use super::{HealthEvent, HealthPolicy, HealthState, HealthSubject, PlaceHealth, Signal};
use crate::database::{Database, DatabaseError};

/// How many events of a place are kept: with a look every five minutes, a month.
const KEPT: u32 = 10_000;
/// How often the oldest are removed: not with every note.
const REMOVE_EVERY: i64 = 64;

/// States and history of places, in one SQLite file that many processes may use at once.
///
/// Every call may wait for the disk and for other processes: call it where blocking is
/// allowed. A note is durable when the call returns.
pub struct HealthStore {
    database: Database,
    subjects: BTreeMap<PlaceName, HealthSubject>,
}

/// One event of a place's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its number; later events have higher ones.
    pub seq: i64,
    /// When it was.
    pub at: Timestamp,
    /// The state of the place after it.
    pub state: HealthState,
    /// What was seen.
    pub event: HealthEvent,
}

impl std::fmt::Debug for HealthStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HealthStore").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl HealthStore {
    /// Returns where the store of a state folder is.
    pub fn path_in(state: &Path) -> PathBuf {
        state.join("health.db")
    }

    /// Opens a store, or begins it. Its folder is made, too.
    ///
    /// # Errors
    /// It cannot be written, a newer Jig wrote it, or it is damaged.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let database = Database::open(FORMAT, path)?;
        database.retried(|connection| connection.execute_batch(DEVICES))?;
        Ok(Self { database, subjects: BTreeMap::new() })
    }

    /// Sets whose health [`Self::of`] and [`Self::note`] are about at these places, and how much it takes to
    /// change it.
    #[must_use]
    pub fn about(mut self, subjects: impl IntoIterator<Item = (PlaceName, HealthSubject)>) -> Self {
        self.subjects.extend(subjects);
        self
    }

    fn subject(&self, place: &PlaceName) -> HealthSubject {
        self.subjects.get(place).cloned().unwrap_or_default()
    }

    /// Returns the store's file.
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Returns the health of a place; one without an event is healthy.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of(&self, place: &PlaceName) -> Result<PlaceHealth, DatabaseError> {
        self.of_by(&self.subject(place), place)
    }

    /// Returns how a place is that is told here.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn of_by(
        &self,
        subject: &HealthSubject,
        place: &PlaceName,
    ) -> Result<PlaceHealth, DatabaseError> {
        let mut all = self.of_all(&[(place, subject)])?;
        all.pop().unwrap_or_else(|| Ok(PlaceHealth::unknown_to_anybody()))
    }

    /// Returns how places are that are told here, in their order: one view of all of them, which costs as much
    /// as that of one.
    ///
    /// # Errors
    /// The store cannot be read. What stands of one place is damaged.
    pub fn of_all(
        &self,
        places: &[(&PlaceName, &HealthSubject)],
    ) -> Result<Vec<Result<PlaceHealth, DatabaseError>>, DatabaseError> {
        let found = self.database.retried(|connection| {
            let view = connection.transaction()?;
            let found = places.iter().map(|(place, subject)| {
                let key = key_of(&view, place, subject)?;
                Ok((load(&view, &key.text)?, key))
            });
            found.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let lowered = found.into_iter().zip(places).map(|((found, key), (_, subject))| {
            match (found, key.before) {
                (None, Some(before)) => Ok(PlaceHealth::of_changed_place(&before)),
                (found, _) => self.lowered(found, &subject.policy),
            }
        });
        Ok(lowered.collect())
    }

    /// Notes an event of a place, and returns how the place is now.
    ///
    /// # Errors
    /// The store cannot be read or written; nothing is noted then.
    pub fn note(
        &self,
        place: &PlaceName,
        at: Timestamp,
        what: &HealthEvent,
    ) -> Result<PlaceHealth, DatabaseError> {
        self.note_by(&self.subject(place), place, at, what)
    }

    /// Notes an event of a place that is told here.
    ///
    /// # Errors
    /// The store cannot be read or written; nothing is noted then.
    pub fn note_by(
        &self,
        subject: &HealthSubject,
        place: &PlaceName,
        at: Timestamp,
        what: &HealthEvent,
    ) -> Result<PlaceHealth, DatabaseError> {
        let body = serde_json::to_string(what).map_err(|error| self.database.unencoded(error))?;
        let policy = &subject.policy;
        self.database.retried(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            note_device(&change, place, subject)?;
            let key = key_of(&change, place, subject)?.text;
            let now = match self.lowered(load(&change, &key)?, policy) {
                Ok(now) => now,
                Err(error) => return Ok(Err(error)),
            };
            let then = next(&now, at, what, policy);
            save(&change, &key, &then)?;
            append(&change, &key, at, what, &body, policy, then.state)?;
            change.commit()?;
            Ok(Ok(then))
        })?
    }

    /// Returns the newest events of a place, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(
        &self,
        place: &PlaceName,
        limit: u32,
    ) -> Result<Vec<HistoryEntry>, DatabaseError> {
        self.history_by(&self.subject(place), place, limit)
    }

    /// Returns the newest events of a place that is told here, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history_by(
        &self,
        subject: &HealthSubject,
        place: &PlaceName,
        limit: u32,
    ) -> Result<Vec<HistoryEntry>, DatabaseError> {
        let rows = self.database.retried(|connection| {
            let view = connection.transaction()?;
            let key = key_of(&view, place, subject)?.text;
            let mut query = view.prepare(
                "SELECT seq, at_us, state, body FROM event WHERE place = :place
                 ORDER BY seq DESC LIMIT :limit",
            )?;
            let params = named_params! { ":place": key, ":limit": limit };
            let found = query.query_map(params, |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
            found.collect::<rusqlite::Result<Vec<(i64, i64, String, String)>>>()
        })?;
        rows.into_iter()
            .map(|(seq, at, state, body)| {
                let event = serde_json::from_str(&body)
                    .map_err(|e| self.damaged(format!("event {seq} cannot be read: {e}")))?;
                Ok(HistoryEntry { seq, at: self.time(at)?, state: self.state(&state)?, event })
            })
            .collect()
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) fn time(&self, us: i64) -> Result<Timestamp, DatabaseError> {
        Timestamp::from_microsecond(us).map_err(|_| self.damaged(format!("{us} is no time")))
    }

    fn state(&self, text: &str) -> Result<HealthState, DatabaseError> {
        let short = || text.chars().take(40).collect::<String>();
        HealthState::of_text(text).ok_or_else(|| self.damaged(format!("{:?} is no state", short())))
    }

    pub(super) fn damaged(&self, reason: impl Into<String>) -> DatabaseError {
        self.database.damaged(reason)
    }

    fn lowered(
        &self,
        found: Option<RawHealth>,
        policy: &HealthPolicy,
    ) -> Result<PlaceHealth, DatabaseError> {
        let Some(raw) = found else { return Ok(PlaceHealth::unknown_to_anybody()) };
        let state = self.state(&raw.state)?;
        let since = raw.since_us.map(|us| self.time(us)).transpose()?;
        Ok(PlaceHealth {
            state,
            since,
            why: raw.why,
            passes_needed: needed(state, raw.passes, policy),
            passes: raw.passes,
            failures: raw.failures,
        })
    }
}

/// A place's row as it is written.
struct RawHealth {
    state: String,
    since_us: Option<i64>,
    why: String,
    passes: u32,
    failures: u32,
}

impl RawHealth {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            state: row.get(0)?,
            since_us: row.get(1)?,
            why: row.get(2)?,
            passes: row.get(3)?,
            failures: row.get(4)?,
        })
    }
}

/// Under what the row and the events of a place stand.
pub(super) struct RowKey {
    pub(super) text: String,
    /// What the devices were that had the name first, where these are others.
    before: Option<String>,
}

/// Finds out under what the row of a place stands.
pub(super) fn key_of(
    connection: &Connection,
    place: &PlaceName,
    subject: &HealthSubject,
) -> rusqlite::Result<RowKey> {
    let first: Option<String> = connection
        .prepare_cached("SELECT what FROM device WHERE place = ?1")?
        .query_row([place.as_str()], |row| row.get(0))
        .optional()?;
    let device = &subject.device;
    Ok(match first {
        // No name has a line break.
        Some(first) if !device.is_empty() && first != *device => {
            RowKey { text: format!("{place}\n{device}"), before: Some(first) }
        }
        _ => RowKey { text: place.to_string(), before: None },
    })
}

/// Notes whose the row under the name of a place is: that of the first devices that are told. What was
/// noted before there were any is theirs.
fn note_device(
    change: &Transaction<'_>,
    place: &PlaceName,
    subject: &HealthSubject,
) -> rusqlite::Result<()> {
    if !subject.device.is_empty() {
        change
            .prepare("INSERT OR IGNORE INTO device (place, what) VALUES (?1, ?2)")?
            .execute((place.as_str(), &subject.device))?;
    }
    Ok(())
}

fn load(connection: &Connection, key: &str) -> rusqlite::Result<Option<RawHealth>> {
    connection
        .prepare_cached("SELECT state, since_us, why, passes, failures FROM place WHERE name = ?1")?
        .query_row([key], RawHealth::read)
        .optional()
}

fn save(change: &Transaction<'_>, key: &str, health: &PlaceHealth) -> rusqlite::Result<()> {
    change
        .prepare(
            "INSERT OR REPLACE INTO place (name, state, since_us, why, passes, failures)
             VALUES (:name, :state, :since, :why, :passes, :failures)",
        )?
        .execute(named_params! {
            ":name": key,
            ":state": health.state.as_str(),
            ":since": health.since.map(Timestamp::as_microsecond),
            ":why": health.why,
            ":passes": health.passes,
            ":failures": health.failures,
        })?;
    Ok(())
}

fn append(
    change: &Transaction<'_>,
    key: &str,
    at: Timestamp,
    what: &HealthEvent,
    body: &str,
    policy: &HealthPolicy,
    state: HealthState,
) -> rusqlite::Result<()> {
    let (mut served, mut passed, mut recovered, mut flashed, mut lost) =
        (None, None, None, None, None);
    match what {
        HealthEvent::RunEnded { kind, flash_ms, gaps, .. } => {
            served = Some(what.signal(policy) != Some(Signal::Failed));
            passed = Some(*kind == VerdictKind::Pass);
            flashed = flash_ms.and_then(|ms| i64::try_from(ms).ok());
            lost = Some(*gaps);
        }
        HealthEvent::RecoveryEnded { step, .. } => recovered = Some(step.is_some()),
        HealthEvent::Checked(_)
        | HealthEvent::Canary { .. }
        | HealthEvent::Quarantined { .. }
        | HealthEvent::Cleared { .. } => {}
    }
    change
        .prepare(
            "INSERT INTO event
                 (place, at_us, kind, body, state, served, passed, cured, flash_ms, gaps)
             VALUES
                 (:place, :at, :kind, :body, :state, :served, :passed, :recovered, :flashed, :lost)",
        )?
        .execute(named_params! {
            ":place": key,
            ":at": at.as_microsecond(),
            ":kind": what.kind(),
            ":body": body,
            ":state": state.as_str(),
            ":served": served,
            ":passed": passed,
            ":recovered": recovered,
            ":flashed": flashed,
            ":lost": lost,
        })?;
    if change.last_insert_rowid() % REMOVE_EVERY == 0 {
        change.execute(
            "DELETE FROM event WHERE place = ?1 AND seq <=
                 (SELECT seq FROM event WHERE place = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
            (key, KEPT),
        )?;
    }
    Ok(())
}
