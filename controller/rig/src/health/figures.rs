//! What the history of a place amounts to.

use jiff::Timestamp;
use jig_model::PlaceName;
use rusqlite::{Connection, OptionalExtension as _};
use serde::{Deserialize, Serialize};

use super::store::key_of;
use super::{HealthStore, HealthSubject};
use crate::database::DatabaseError;

/// A day in seconds.
const DAY: f64 = 86_400.0;

/// What happened at a place since some moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// When the first event in this time was; nothing if there was none.
    pub first: Option<Timestamp>,
    /// Runs that ended.
    pub runs: u64,
    /// Those of them that passed.
    pub passed: u64,
    /// Those of them that the rig did not spoil.
    pub served: u64,
    /// How many times recovery was tried.
    pub recoveries: u64,
    /// How many times of these it recovered the rig.
    pub recovered: u64,
    /// The middle of the times it took to put an image on the board, in milliseconds.
    pub flash_ms_median: Option<u64>,
    /// How many times console output was lost.
    pub gaps: u64,
    /// How many times of these a port had overrun.
    pub overruns: u64,
}

impl Figures {
    /// Returns the share of runs that the rig did not spoil, 0 to 1; nothing without runs.
    pub fn success_rate(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.served as f64 / self.runs as f64)
    }

    /// Returns how often a day recovery was tried, from the first event until now. Less than a
    /// day counts as one: an hour with one recovery is not a place with 24 a day.
    pub fn recoveries_per_day(&self, now: Timestamp) -> Option<f64> {
        let seconds = now.duration_since(self.first?).as_secs_f64();
        Some(self.recoveries as f64 / (seconds / DAY).max(1.0))
    }
}

/// Counts in one pass over the events that are counted.
const COUNTS: &str = "
SELECT (SELECT min(at_us) FROM event WHERE place = ?1 AND at_us >= ?2),
    count(*) FILTER (WHERE kind = 'run_ended'),
    count(*) FILTER (WHERE passed = 1),
    count(*) FILTER (WHERE served = 1),
    count(*) FILTER (WHERE kind = 'recovery_ended'),
    count(*) FILTER (WHERE cured = 1),
    count(flash_ms),
    coalesce(sum(gaps), 0),
    coalesce(sum(json_extract(body, '$.what.overruns')), 0)
FROM event WHERE place = ?1 AND kind IN ('run_ended', 'recovery_ended') AND at_us >= ?2";

impl HealthStore {
    /// Adds up what happened at a place since a moment. Only what the store still keeps is
    /// counted: the newest ten thousand events of the place.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn figures(&self, place: &PlaceName, since: Timestamp) -> Result<Figures, DatabaseError> {
        self.figures_by(&HealthSubject::default(), place, since)
    }

    /// Adds up what happened at a place that is told here since a moment.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn figures_by(
        &self,
        subject: &HealthSubject,
        place: &PlaceName,
        since: Timestamp,
    ) -> Result<Figures, DatabaseError> {
        let (mut figures, first) = self.database().retried(|connection| {
            // One view of the store for all of it.
            let view = connection.transaction()?;
            let key = key_of(&view, place, subject)?.text;
            count(&view, &key, since.as_microsecond())
        })?;
        figures.first = first.map(|us| self.time(us)).transpose()?;
        Ok(figures)
    }
}

fn count(view: &Connection, place: &str, since: i64) -> rusqlite::Result<(Figures, Option<i64>)> {
    let mut counts = view.prepare(COUNTS)?;
    let (first, mut figures, flashes) = counts.query_row((place, since), |row| {
        let figures = Figures {
            first: None,
            runs: row.get(1)?,
            passed: row.get(2)?,
            served: row.get(3)?,
            recoveries: row.get(4)?,
            recovered: row.get(5)?,
            flash_ms_median: None,
            gaps: row.get(7)?,
            overruns: row.get(8)?,
        };
        Ok((row.get::<_, Option<i64>>(0)?, figures, row.get::<_, u64>(6)?))
    })?;
    if flashes > 0 {
        // Of an even number, the lower of the two in the middle: a time that was measured.
        let middle = view
            .prepare(
                "SELECT flash_ms FROM event WHERE place = ?1 AND kind = 'run_ended'
                     AND at_us >= ?2 AND flash_ms IS NOT NULL
                 ORDER BY flash_ms LIMIT 1 OFFSET ?3",
            )?
            .query_row((place, since, (flashes - 1) / 2), |row| row.get(0))
            .optional()?;
        figures.flash_ms_median = middle;
    }
    Ok((figures, first))
}
