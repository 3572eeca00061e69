//! What was observed, a row each: runs, steps of recovery, and what fixes came to.
//!
//! Owns the memory that lessons are drawn from. A run is noted in the same transaction as what is learnt
//! from it, so that a process that is killed between has done neither, and nothing is learnt twice.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::observed::{ObservedRepair, ObservedRun};
use crate::unit::UnitId;

/// Most runs that are remembered: some hundred megabytes at most, and years of a busy rig.
const RUNS: i64 = 100_000;

/// Tables of their own, beside those of the first version: a store without them gets them when it is
/// opened, and a program that does not know them leaves them alone.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS run (
    run TEXT PRIMARY KEY, at_us INTEGER NOT NULL, kind TEXT NOT NULL, place TEXT, plan TEXT, image TEXT,
    signature TEXT, body TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_before ON run (place, plan, image, at_us);
CREATE INDEX IF NOT EXISTS run_signature ON run (signature, at_us) WHERE signature IS NOT NULL;
CREATE INDEX IF NOT EXISTS run_age ON run (at_us);
CREATE TABLE IF NOT EXISTS recovery (
    run TEXT NOT NULL, number INTEGER NOT NULL, place TEXT NOT NULL, cause TEXT NOT NULL,
    step TEXT NOT NULL, ok INTEGER NOT NULL, PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS recovery_step ON recovery (place, cause, step);
CREATE TABLE IF NOT EXISTS fix (
    change TEXT NOT NULL, run TEXT NOT NULL, unit TEXT NOT NULL, class TEXT NOT NULL, board TEXT NOT NULL,
    worked INTEGER NOT NULL, at_us INTEGER NOT NULL, PRIMARY KEY (change, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fix_class ON fix (class, board) WHERE worked = 1;
CREATE TABLE IF NOT EXISTS chore (name TEXT PRIMARY KEY, at_us INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Kinds of runs that fail and pass by themselves; others are noted, and not counted.
pub(super) const NATURAL: &str = "run";
const ON_PURPOSE: &str = "on purpose";
const REPAIR: &str = "repair";

/// Makes the tables where they are missing.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    let select = "SELECT count(*) FROM sqlite_schema WHERE name = 'chore'";
    if connection.query_row(select, [], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(());
    }
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    change.execute_batch(TABLES)?;
    change.commit()
}

/// Tells whether a run was learnt from.
pub(super) fn is_known(connection: &Connection, run: &str) -> rusqlite::Result<bool> {
    let select = "SELECT count(*) FROM run WHERE run = ?1";
    Ok(connection.prepare(select)?.query_row([run], |row| row.get::<_, i64>(0))? > 0)
}

/// Notes a run of the rig, and its steps of recovery.
pub(super) fn note_run(change: &Connection, run: &ObservedRun, body: &str) -> rusqlite::Result<()> {
    let natural = !run.drill && !run.in_repair;
    let kind = if natural { NATURAL } else { ON_PURPOSE };
    let signature = run.failure.as_ref().map(|failure| &failure.signature);
    let image = run.image.as_ref().map(|image| &image.name);
    change.execute(
        "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            run.run,
            run.at.as_microsecond(),
            kind,
            run.place,
            run.plan,
            image,
            signature,
            body
        ],
    )?;
    let Some(place) = run.place.as_ref().filter(|_| !run.drill) else { return Ok(()) };
    let mut insert = change.prepare("INSERT INTO recovery VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (number, step) in (1_i64..).zip(&run.recoveries) {
        insert.execute(params![run.run, number, place, step.cause, step.step, step.ok])?;
    }
    Ok(())
}

/// Notes a run of the repair loop.
pub(super) fn note_repair(
    change: &Connection,
    run: &ObservedRepair,
    body: &str,
) -> rusqlite::Result<()> {
    change.execute(
        "INSERT INTO run VALUES (?1, ?2, ?3, ?4, NULL, NULL, ?5, ?6)",
        params![run.run, run.at.as_microsecond(), REPAIR, run.place, run.failure.signature, body],
    )?;
    Ok(())
}

/// Forgets the oldest runs where there are too many. Their units stay.
pub(super) fn forget_oldest(change: &Connection) -> rusqlite::Result<()> {
    let runs: i64 = change.query_row("SELECT count(*) FROM run", [], |row| row.get(0))?;
    if runs > RUNS {
        let oldest = "SELECT run FROM run ORDER BY at_us LIMIT ?1";
        let delete = format!("DELETE FROM run WHERE run IN ({oldest})");
        change.execute(&delete, [runs - RUNS + RUNS / 100])?;
    }
    Ok(())
}

/// Returns the last run of the same place, plan and file before one.
pub(super) fn run_before(
    change: &Connection,
    run: &ObservedRun,
) -> rusqlite::Result<Option<String>> {
    let Some(image) = run.image.as_ref().map(|image| &image.name) else { return Ok(None) };
    let select = "SELECT body FROM run WHERE place = ?1 AND plan IS ?2 AND image = ?3
        AND at_us <= ?4 AND kind = ?5 ORDER BY at_us DESC LIMIT 1";
    let row = params![run.place, run.plan, image, run.at.as_microsecond(), NATURAL];
    change.prepare(select)?.query_row(row, |row| row.get(0)).optional()
}

/// Returns the last run of the same place, plan and file before one that is noted already. A row that cannot
/// be read is none.
pub(super) fn before(
    change: &Connection,
    run: &ObservedRun,
) -> rusqlite::Result<Option<ObservedRun>> {
    // The run's own row would be found first: it is taken as seen a moment earlier.
    let Ok(at) = run.at.checked_sub(jiff::SignedDuration::from_micros(1)) else {
        return Ok(None);
    };
    let earlier = ObservedRun { at, ..run.clone() };
    Ok(run_before(change, &earlier)?.and_then(|body| serde_json::from_str(&body).ok()))
}

/// Returns a run of the rig.
pub(super) fn run_of(change: &Connection, run: &str) -> rusqlite::Result<Option<ObservedRun>> {
    let select = "SELECT body FROM run WHERE run = ?1 AND kind = ?2";
    let body: Option<String> =
        change.prepare(select)?.query_row([run, NATURAL], |row| row.get(0)).optional()?;
    Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
}

/// Returns the last runs of the place, the plan and the file of one; those that cannot be read are left out.
pub(super) fn runs_at(
    change: &Connection,
    run: &ObservedRun,
    most: u32,
) -> rusqlite::Result<Vec<ObservedRun>> {
    let Some(image) = run.image.as_ref().map(|image| &image.name) else { return Ok(Vec::new()) };
    let select = "SELECT body FROM run WHERE place = ?1 AND plan IS ?2 AND image = ?3 AND kind = ?4
        ORDER BY at_us DESC LIMIT ?5";
    runs_that(change, select, params![run.place, run.plan, image, NATURAL, most])
}

/// Returns the last runs that failed with a signature; those that cannot be read are left out.
pub(super) fn failures_with(
    change: &Connection,
    signature: &str,
    most: u32,
) -> rusqlite::Result<Vec<ObservedRun>> {
    let select = "SELECT body FROM run WHERE signature = ?1 AND kind = ?2
        ORDER BY at_us DESC LIMIT ?3";
    runs_that(change, select, params![signature, NATURAL, most])
}

fn runs_that(
    change: &Connection,
    select: &str,
    values: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Vec<ObservedRun>> {
    let mut query = change.prepare(select)?;
    let rows = query.query_map(values, |row| row.get::<_, String>(0))?;
    let bodies: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(bodies.iter().filter_map(|body| serde_json::from_str(body).ok()).collect())
}

/// Returns the runs in which a change was the fix of a unit.
pub(super) fn runs_of_fix(
    change: &Connection,
    what: &str,
    unit: &UnitId,
) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT run FROM fix WHERE change = ?1 AND unit = ?2 AND worked = 1
        ORDER BY at_us DESC LIMIT 16";
    let mut query = change.prepare(select)?;
    let rows = query.query_map([what, unit.as_str()], |row| row.get(0))?;
    rows.collect()
}

/// Counts the runs that failed with a signature.
pub(super) fn count_of(change: &Connection, signature: &str) -> rusqlite::Result<u64> {
    let select = "SELECT count(*) FROM run WHERE signature = ?1 AND kind = ?2";
    change.prepare(select)?.query_row([signature, NATURAL], |row| row.get(0))
}

/// Counts how often a step of recovery worked, and how often it was taken.
pub(super) fn recoveries_of(
    change: &Connection,
    place: &str,
    cause: &str,
    step: &str,
) -> rusqlite::Result<(u64, u64)> {
    let select = "SELECT ifnull(sum(ok), 0), count(*) FROM recovery
        WHERE place = ?1 AND cause = ?2 AND step = ?3";
    let counts = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    change.prepare(select)?.query_row([place, cause, step], counts)
}

/// A change, and what came of it in a run.
pub(super) struct FixRow<'f> {
    pub(super) change: &'f str,
    pub(super) run: &'f str,
    pub(super) unit: &'f UnitId,
    pub(super) class: &'f str,
    pub(super) board: &'f str,
    pub(super) worked: bool,
    pub(super) at: Timestamp,
}

/// Notes what a change came to; tells whether that was new.
pub(super) fn note_fix(change: &Connection, fix: &FixRow<'_>) -> rusqlite::Result<bool> {
    let FixRow { change: what, run, unit, class, board, worked, at } = fix;
    let insert = "INSERT OR IGNORE INTO fix VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = params![what, run, unit.as_str(), class, board, worked, at.as_microsecond()];
    Ok(change.execute(insert, row)? > 0)
}

/// Returns the units of which a change was a fix.
pub(super) fn units_fixed_by(change: &Connection, what: &str) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT DISTINCT unit FROM fix WHERE change = ?1 AND worked = 1 LIMIT 16";
    let mut query = change.prepare(select)?;
    let rows = query.query_map([what], |row| row.get(0))?;
    rows.collect()
}

/// Returns the units of fixes of a class on a kind of board, the newest first, and their number.
pub(super) fn fixes_of_class(
    change: &Connection,
    class: &str,
    board: &str,
) -> rusqlite::Result<Vec<String>> {
    let select = "SELECT unit FROM fix WHERE worked = 1 AND class = ?1 AND board = ?2
        GROUP BY unit ORDER BY max(at_us) DESC LIMIT 1000";
    let mut query = change.prepare(select)?;
    let rows = query.query_map([class, board], |row| row.get(0))?;
    rows.collect()
}

/// What is known of the runs of a signature, without one of them.
pub(super) struct SeenRuns {
    pub(super) count: u64,
    pub(super) last: Option<(String, i64)>,
}

/// Counts the runs of a signature that are older than one.
pub(super) fn seen_runs(
    connection: &Connection,
    signature: &str,
    without: &str,
) -> rusqlite::Result<SeenRuns> {
    let of = "FROM run WHERE signature = ?1 AND run <> ?2 AND kind = ?3";
    let row = params![signature, without, NATURAL];
    let count = connection.query_row(&format!("SELECT count(*) {of}"), row, |row| row.get(0))?;
    let last = connection
        .query_row(&format!("SELECT run, at_us {of} ORDER BY at_us DESC LIMIT 1"), row, |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(SeenRuns { count, last })
}

/// Tells whether something that is done now and then is due, and notes that it is done.
pub(super) fn is_due(
    change: &Connection,
    name: &str,
    now: Timestamp,
    every_us: i64,
) -> rusqlite::Result<bool> {
    let select = "SELECT at_us FROM chore WHERE name = ?1";
    let last: Option<i64> = change.query_row(select, [name], |row| row.get(0)).optional()?;
    // A clock that was set back makes nothing wait for ever.
    let waited = last.map(|last| now.as_microsecond().saturating_sub(last));
    if waited.is_some_and(|waited| (0..every_us).contains(&waited)) {
        return Ok(false);
    }
    let insert = "INSERT OR REPLACE INTO chore VALUES (?1, ?2)";
    change.execute(insert, params![name, now.as_microsecond()])?;
    Ok(true)
}
