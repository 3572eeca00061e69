//! What the store is asked.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::schema::KnowledgeStore;
use super::write::NO_ID;
use crate::error::KnowledgeError;
use crate::unit::{KnowledgeUnit, UnitId};

/// A unit and where it stands in the store.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChangedUnit {
    pub(crate) doc: u32,
    pub(crate) unit: KnowledgeUnit,
}

/// An answer to whether a unit was what a question was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FeedbackRow {
    pub(crate) question: String,
    pub(crate) id: UnitId,
    pub(crate) accepted: bool,
}

/// One change of a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// Number of the change.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// What happened.
    pub what: String,
    /// The unit before an edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<KnowledgeUnit>>,
}

/// Two units that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The first one.
    pub one: UnitId,
    /// How they belong together.
    pub kind: String,
    /// The other one.
    pub other: UnitId,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCounts {
    /// Units, archived ones too.
    pub units: u64,
    /// Archived units.
    pub archived: u64,
    /// Units in use that are not proven.
    pub pending: u64,
    /// Units in use that are proven.
    pub verified: u64,
    /// Units in use that are refuted.
    pub rejected: u64,
    /// Answers to whether a unit was what a question was about.
    pub feedback: u64,
    /// Number of the last change.
    pub change: u64,
}

impl KnowledgeStore {
    pub(super) fn load(
        &self,
        connection: &Connection,
        doc: i64,
    ) -> rusqlite::Result<Result<KnowledgeUnit, KnowledgeError>> {
        let select = "SELECT body FROM unit WHERE doc = ?1";
        let body: String = connection.prepare(select)?.query_row([doc], |row| row.get(0))?;
        Ok(self.lowered(&body))
    }

    fn lowered(&self, body: &str) -> Result<KnowledgeUnit, KnowledgeError> {
        serde_json::from_str(body)
            .map_err(|error| self.damaged(format!("a unit cannot be read: {error}")))
    }

    /// Returns a unit.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn unit(&self, id: &UnitId) -> Result<KnowledgeUnit, KnowledgeError> {
        let select = "SELECT body FROM unit WHERE id = ?1";
        let found: Option<String> = self.with(|connection| {
            connection.prepare(select)?.query_row([id.as_str()], |row| row.get(0)).optional()
        })?;
        self.lowered(&found.ok_or_else(|| KnowledgeError::Unknown(id.clone()))?)
    }

    /// Returns units by their numbers in the store; those that are gone or damaged are left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn units(&self, docs: &[u32]) -> Result<Vec<ChangedUnit>, KnowledgeError> {
        let select = "SELECT body FROM unit WHERE doc = ?1";
        let rows = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let mut rows = Vec::with_capacity(docs.len());
            for doc in docs {
                if let Some(body) = query.query_row([doc], |row| row.get(0)).optional()? {
                    rows.push((*doc, body));
                }
            }
            Ok::<Vec<(u32, String)>, rusqlite::Error>(rows)
        })?;
        let unit =
            |(doc, body): (u32, String)| Some(ChangedUnit { doc, unit: self.lowered(&body).ok()? });
        Ok(rows.into_iter().filter_map(unit).collect())
    }

    /// Returns the number of a unit in the store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn doc_of(&self, id: &UnitId) -> Result<Option<u32>, KnowledgeError> {
        let select = "SELECT doc FROM unit WHERE id = ?1";
        self.with(|connection| {
            connection.prepare(select)?.query_row([id.as_str()], |row| row.get(0)).optional()
        })
    }

    /// Returns numbers of the units of a signature, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn of_signature(&self, signature: &str) -> Result<Vec<u32>, KnowledgeError> {
        let select = "SELECT doc FROM unit WHERE signature = ?1 ORDER BY doc DESC LIMIT 100";
        self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query.query_map([signature], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// Returns units that changed behind a change, in order, as many as asked for.
    ///
    /// # Errors
    /// The store cannot be read. A damaged unit is left out.
    pub(crate) fn changed_behind(
        &self,
        seq: u64,
        most: usize,
    ) -> Result<(Vec<ChangedUnit>, Option<u64>), KnowledgeError> {
        let select = "SELECT doc, seq, body FROM unit WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let rows = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query.query_map(params![seq, most as u64], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<(u32, u64, String)>>>()
        })?;
        let last = rows.last().map(|(_, seq, _)| *seq);
        let unit = |(doc, _, body): (u32, u64, String)| {
            Some(ChangedUnit { doc, unit: self.lowered(&body).ok()? })
        };
        Ok((rows.into_iter().filter_map(unit).collect(), last))
    }

    /// Returns how many units changed behind a change.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn count_behind(&self, seq: u64) -> Result<u64, KnowledgeError> {
        let select = "SELECT count(*) FROM unit WHERE seq > ?1";
        self.with(|connection| connection.prepare(select)?.query_row([seq], |row| row.get(0)))
    }

    /// Returns the number of the last change.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn last_change(&self) -> Result<u64, KnowledgeError> {
        let select = "SELECT ifnull(max(seq), 0) FROM unit";
        self.with(|connection| connection.prepare(select)?.query_row([], |row| row.get(0)))
    }

    /// Returns what has happened to a unit, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn history(&self, id: &UnitId) -> Result<Vec<HistoryLine>, KnowledgeError> {
        type Row = (u64, i64, String, String, Option<String>);
        let select =
            "SELECT history.seq, at_us, who, what, before FROM history JOIN unit USING (doc)
            WHERE id = ?1 ORDER BY history.seq";
        let rows = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query.query_map([id.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })?;
            rows.collect::<rusqlite::Result<Vec<Row>>>()
        })?;
        let line = |(seq, at, by, what, before): Row| {
            let at = Timestamp::from_microsecond(at)
                .map_err(|_| self.damaged("a change has no time"))?;
            let before = before.map(|body| self.lowered(&body)).transpose()?.map(Box::new);
            Ok(HistoryLine { seq, at, by, what, before })
        };
        rows.into_iter().map(line).collect()
    }

    /// Returns the links of a unit.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn links(&self, id: &UnitId) -> Result<Vec<Link>, KnowledgeError> {
        let select = "SELECT one, kind, other FROM link WHERE one = ?1 OR other = ?1";
        let rows = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query
                .query_map([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<rusqlite::Result<Vec<(String, String, String)>>>()
        })?;
        let id = |text: String| text.parse().map_err(|_| self.damaged(NO_ID));
        let link = |(one, kind, other)| Ok(Link { one: id(one)?, kind, other: id(other)? });
        rows.into_iter().map(link).collect()
    }

    /// Returns all feedback, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn feedback(&self) -> Result<Vec<FeedbackRow>, KnowledgeError> {
        let select = "SELECT question, id, accepted FROM feedback ORDER BY number";
        let rows = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<rusqlite::Result<Vec<(String, String, bool)>>>()
        })?;
        let row = |(question, id, accepted): (String, String, bool)| {
            let id = id.parse().map_err(|_| self.damaged(NO_ID))?;
            Ok(FeedbackRow { question, id, accepted })
        };
        rows.into_iter().map(row).collect()
    }

    /// Counts what the store holds.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn counts(&self) -> Result<StoreCounts, KnowledgeError> {
        self.with(|connection| {
            let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u64>(0));
            let of = |status: &str| {
                let sql = "SELECT count(*) FROM unit WHERE archived = 0 AND status = ?1";
                connection.query_row(sql, [status], |row| row.get::<_, u64>(0))
            };
            Ok(StoreCounts {
                units: count("SELECT count(*) FROM unit")?,
                archived: count("SELECT count(*) FROM unit WHERE archived = 1")?,
                pending: of("pending")?,
                verified: of("verified")?,
                rejected: of("rejected")?,
                feedback: count("SELECT count(*) FROM feedback")?,
                change: count("SELECT ifnull(max(seq), 0) FROM unit")?,
            })
        })
    }
}
