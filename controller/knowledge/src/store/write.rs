//! Changes of the store. Each is one durable transaction.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, named_params, params};
use serde::{Deserialize, Serialize};

use super::schema::KnowledgeStore;
use crate::error::KnowledgeError;
use crate::text::{MinHash, likeness};
use crate::unit::{
    Draft, KnowledgeUnit, Standing, StandingEvent, UnitAudit, UnitContent, UnitId, UnitMetadata,
};

/// Two texts that share this much say the same.
const SAME: f64 = 0.85;

/// Most units that a draft is compared with.
const COMPARED: usize = 64;

/// Most evidence that repeats add to a unit.
pub(super) const EVIDENCE: usize = 16;

/// What became of a draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Inserted {
    /// It is a unit now.
    New {
        /// Its name.
        id: UnitId,
    },
    /// It repeats a unit, whose count was raised.
    Repeat {
        /// The unit.
        id: UnitId,
        /// How often it was seen.
        count: u64,
    },
    /// The store had it already: nothing was counted.
    Known {
        /// The unit.
        id: UnitId,
    },
}

impl Inserted {
    /// Returns the unit.
    pub fn id(&self) -> &UnitId {
        match self {
            Self::New { id } | Self::Repeat { id, .. } | Self::Known { id } => id,
        }
    }
}

/// How two units belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// They are about the same thing.
    Related,
    /// The first one says better what the other one says.
    Supersedes,
    /// They cannot both be right.
    Contradicts,
}

impl LinkKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Related, Self::Supersedes, Self::Contradicts];

    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Related => "related",
            Self::Supersedes => "supersedes",
            Self::Contradicts => "contradicts",
        }
    }
}

impl KnowledgeStore {
    /// Stores a draft as a new unit, or counts it for the unit that it repeats. The draft is clean, and may
    /// be older than its storing: a unit ages unread from `now` on.
    ///
    /// # Errors
    /// The store cannot be written; nothing is stored then.
    pub(crate) fn insert(
        &self,
        draft: &Draft,
        standing: Standing,
        now: Timestamp,
    ) -> Result<Inserted, KnowledgeError> {
        self.change(|change| self.insert_into(change, draft, (standing, now), true))
    }

    /// Stores drafts in one transaction: all of them, or none. None of them is taken for a repeat of
    /// another one.
    ///
    /// # Errors
    /// The store cannot be written; nothing is stored then.
    pub(crate) fn insert_distinct(
        &self,
        drafts: &[Draft],
        now: Timestamp,
    ) -> Result<(), KnowledgeError> {
        self.change(|change| {
            for draft in drafts {
                if let Err(error) = self.insert_into(change, draft, (Standing::NEW, now), false)? {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })
    }

    pub(super) fn insert_into(
        &self,
        change: &Connection,
        draft: &Draft,
        (standing, now): (Standing, Timestamp),
        compare: bool,
    ) -> rusqlite::Result<Result<Inserted, KnowledgeError>> {
        let prose = draft.content.prose();
        let sketch = MinHash::of(&prose);
        let known = "SELECT unit.id FROM seen JOIN unit USING (doc) WHERE seen.draft = ?1";
        if let Some(id) = id_of(change, known, draft.id.as_str())? {
            return Ok(id.map(|id| Inserted::Known { id }).map_err(|why| self.damaged(why)));
        }
        let others = if compare { candidates(change, draft, &sketch)? } else { Vec::new() };
        for doc in others {
            // One damaged unit does not keep others from being stored.
            let Ok(mut unit) = self.load(change, doc)? else { continue };
            if !repeats(draft, &prose, &unit) {
                continue;
            }
            unit.audit.count = unit.audit.count.saturating_add(1);
            unit.audit.last_seen = unit.audit.last_seen.max(draft.at);
            for source in &draft.content.evidence {
                let evidence = &mut unit.content.evidence;
                if evidence.len() < EVIDENCE && !evidence.contains(source) {
                    evidence.push(source.clone());
                }
            }
            change.execute("INSERT INTO seen VALUES (?1, ?2)", params![draft.id.as_str(), doc])?;
            let repeat = Inserted::Repeat { id: unit.id.clone(), count: unit.audit.count };
            return Ok(save(change, doc, &unit)?.map(|_| repeat));
        }
        let unit = unit_of(draft, standing);
        let body = match serde_json::to_string(&unit) {
            Ok(body) => body,
            Err(error) => return Ok(Err(KnowledgeError::Encode(error))),
        };
        let insert =
            "INSERT INTO unit (id, seq, status, archived, signature, created_us, read_us, body)
            VALUES (:id, (SELECT ifnull(max(seq), 0) + 1 FROM unit), :status, :archived, :signature,
                :at, :now, :body)";
        change.prepare(insert)?.execute(named_params! {
            ":id": unit.id.as_str(),
            ":status": unit.standing.status.word(),
            ":archived": unit.standing.archived,
            ":signature": unit.metadata.signature,
            ":at": draft.at.as_microsecond(),
            ":now": now.max(draft.at).as_microsecond(),
            ":body": body,
        })?;
        let doc = change.last_insert_rowid();
        let mut band = change.prepare("INSERT INTO band VALUES (?1, ?2, ?3)")?;
        for (number, hash) in sketch.bands() {
            band.execute(params![number, hash, doc])?;
        }
        let seen = "INSERT INTO seen VALUES (?1, ?2)";
        change.prepare(seen)?.execute(params![draft.id.as_str(), doc])?;
        Ok(Ok(Inserted::New { id: unit.id }))
    }

    /// Replaces content and metadata of a unit; what stood there goes into the history.
    ///
    /// # Errors
    /// There is no such unit, it is archived, it was changed meanwhile, or the store cannot be written.
    pub(crate) fn edit(
        &self,
        id: &UnitId,
        expected: u32,
        content: &UnitContent,
        metadata: &UnitMetadata,
        by: &str,
        at: Timestamp,
    ) -> Result<KnowledgeUnit, KnowledgeError> {
        self.modify(id, by, at, StandingEvent::Edited, |unit| {
            let found = unit.audit.version;
            if found != expected {
                return Err(KnowledgeError::Stale { id: unit.id.clone(), found, expected });
            }
            unit.content = content.clone();
            unit.metadata = metadata.clone();
            unit.audit.version = found.saturating_add(1);
            Ok(())
        })
    }

    /// Tells a unit what has happened to it.
    ///
    /// # Errors
    /// There is no such unit, that cannot happen to it, or the store cannot be written.
    pub fn tell(
        &self,
        id: &UnitId,
        event: StandingEvent,
        by: &str,
        at: Timestamp,
    ) -> Result<KnowledgeUnit, KnowledgeError> {
        self.modify(id, by, at, event, |_| Ok(()))
    }

    fn modify(
        &self,
        id: &UnitId,
        by: &str,
        at: Timestamp,
        event: StandingEvent,
        change_unit: impl Fn(&mut KnowledgeUnit) -> Result<(), KnowledgeError>,
    ) -> Result<KnowledgeUnit, KnowledgeError> {
        self.change(|change| self.modify_in(change, id, (by, at), event, &change_unit))
    }

    /// Tells a unit what has happened to it, within a change of the store.
    pub(super) fn tell_in(
        &self,
        change: &Connection,
        id: &UnitId,
        event: StandingEvent,
        said: (&str, Timestamp),
    ) -> rusqlite::Result<Result<KnowledgeUnit, KnowledgeError>> {
        self.modify_in(change, id, said, event, |_| Ok(()))
    }

    fn modify_in(
        &self,
        change: &Connection,
        id: &UnitId,
        (by, at): (&str, Timestamp),
        event: StandingEvent,
        change_unit: impl Fn(&mut KnowledgeUnit) -> Result<(), KnowledgeError>,
    ) -> rusqlite::Result<Result<KnowledgeUnit, KnowledgeError>> {
        let select = "SELECT doc FROM unit WHERE id = ?1";
        let found =
            change.query_row(select, [id.as_str()], |row| row.get::<_, i64>(0)).optional()?;
        let Some(doc) = found else { return Ok(Err(KnowledgeError::Unknown(id.clone()))) };
        let mut unit = match self.load(change, doc)? {
            Ok(unit) => unit,
            Err(error) => return Ok(Err(error)),
        };
        let before = serde_json::to_string(&unit).map_err(KnowledgeError::Encode);
        let before = match before {
            Ok(before) => before,
            Err(error) => return Ok(Err(error)),
        };
        let prose = unit.content.prose();
        match unit.standing.next(event) {
            Ok(standing) => unit.standing = standing,
            Err(why) => return Ok(Err(KnowledgeError::Standing { id: id.clone(), why })),
        }
        if let Err(error) = change_unit(&mut unit) {
            return Ok(Err(error));
        }
        unit.audit.updated_at = at;
        let seq = match save(change, doc, &unit)? {
            Ok(seq) => seq,
            Err(error) => return Ok(Err(error)),
        };
        // Who takes it back, reads it: else it would be unread for a year at once.
        if event == StandingEvent::Restored {
            let read = "UPDATE unit SET read_us = ?1 WHERE doc = ?2";
            change.execute(read, params![at.as_microsecond(), doc])?;
        }
        let remember = "INSERT INTO history VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let is_edit = event == StandingEvent::Edited;
        let kept = is_edit.then_some(before);
        change.execute(remember, params![doc, seq, at.as_microsecond(), by, event.word(), kept])?;
        sketch_anew(change, doc, &prose, &unit.content.prose())?;
        Ok(Ok(unit))
    }

    /// Links two units.
    ///
    /// # Errors
    /// One of them does not exist, they are the same, or the store cannot be written.
    pub fn link(&self, one: &UnitId, kind: LinkKind, other: &UnitId) -> Result<(), KnowledgeError> {
        if one == other {
            return Err(KnowledgeError::SelfLink(one.clone()));
        }
        self.change(|change| {
            for id in [one, other] {
                let exists = "SELECT count(*) FROM unit WHERE id = ?1";
                if change.query_row(exists, [id.as_str()], |row| row.get::<_, i64>(0))? == 0 {
                    return Ok(Err(KnowledgeError::Unknown(id.clone())));
                }
            }
            let insert = "INSERT OR IGNORE INTO link VALUES (?1, ?2, ?3)";
            change.execute(insert, [one.as_str(), kind.word(), other.as_str()])?;
            Ok(Ok(()))
        })
    }

    /// Remembers whether a unit was what a question was about.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) fn note_feedback(
        &self,
        question: &str,
        id: &UnitId,
        accepted: bool,
        at: Timestamp,
    ) -> Result<(), KnowledgeError> {
        let insert = "INSERT INTO feedback (at_us, question, id, accepted) VALUES (?1, ?2, ?3, ?4)";
        let row = params![at.as_microsecond(), question, id.as_str(), accepted];
        self.with(|connection| connection.execute(insert, row).map(drop))
    }

    /// Remembers when units were read, to the day. Nothing is written where that is known.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(crate) fn note_reads(&self, docs: &[u32], at: Timestamp) -> Result<(), KnowledgeError> {
        let now = at.as_microsecond();
        self.with(|connection| {
            let day = 86_400_000_000;
            let stale = "SELECT count(*) FROM unit WHERE doc = ?1 AND read_us < ?2";
            let mut old = Vec::new();
            for doc in docs {
                let found: i64 = connection
                    .prepare(stale)?
                    .query_row(params![doc, now - day], |row| row.get(0))?;
                if found > 0 {
                    old.push(doc);
                }
            }
            if old.is_empty() {
                return Ok(());
            }
            let change = connection.transaction()?;
            for doc in old {
                change.execute("UPDATE unit SET read_us = ?1 WHERE doc = ?2", params![now, doc])?;
            }
            change.commit()
        })
    }

    /// Returns units in use that were not read since a time.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn unread_since(&self, since: Timestamp) -> Result<Vec<UnitId>, KnowledgeError> {
        let select = "SELECT id FROM unit WHERE archived = 0 AND read_us < ?1";
        let found = self.with(|connection| {
            let mut query = connection.prepare(select)?;
            let rows = query.query_map([since.as_microsecond()], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let id = |text: String| text.parse().map_err(|_| self.damaged(NO_ID));
        found.into_iter().map(id).collect()
    }
}

pub(super) const NO_ID: &str = "a unit has no name";

type FoundId = Option<Result<UnitId, &'static str>>;

fn id_of(change: &Connection, select: &str, key: &str) -> rusqlite::Result<FoundId> {
    let found: Option<String> = change.query_row(select, [key], |row| row.get(0)).optional()?;
    Ok(found.map(|text| text.parse().map_err(|_| NO_ID)))
}

/// Returns units that a draft may repeat: those of its signature, then those of its text.
fn candidates(change: &Connection, draft: &Draft, sketch: &MinHash) -> rusqlite::Result<Vec<i64>> {
    let mut docs: Vec<i64> = Vec::new();
    if let Some(signature) = &draft.metadata.signature {
        let select = "SELECT doc FROM unit WHERE signature = ?1 ORDER BY doc DESC LIMIT 64";
        let mut query = change.prepare(select)?;
        for doc in query.query_map([signature], |row| row.get(0))? {
            docs.push(doc?);
        }
    }
    let mut query =
        change.prepare("SELECT doc FROM band WHERE band = ?1 AND hash = ?2 LIMIT 16")?;
    for (number, hash) in sketch.bands() {
        for doc in query.query_map(params![number, hash], |row| row.get(0))? {
            let doc = doc?;
            if docs.len() < COMPARED && !docs.contains(&doc) {
                docs.push(doc);
            }
        }
    }
    Ok(docs)
}

/// Tells whether a draft says what a unit says.
///
/// Two fixes of one failure are two units, and one failure on two kinds of board may have two causes.
fn repeats(draft: &Draft, prose: &str, unit: &KnowledgeUnit) -> bool {
    let differ = |one: &Option<String>, other: &Option<String>| {
        one.as_ref().zip(other.as_ref()).is_some_and(|(one, other)| one != other)
    };
    let (ours, theirs) = (&draft.metadata, &unit.metadata);
    if differ(&ours.signature, &theirs.signature) || differ(&ours.board, &theirs.board) {
        return false;
    }
    let (remedy, their_remedy) = (draft.content.remedy(), unit.content.remedy());
    let (remedy, their_remedy) = (remedy.trim(), their_remedy.trim());
    let one_remedy =
        remedy.is_empty() || remedy == their_remedy || likeness(remedy, their_remedy) >= SAME;
    let one_signature = ours.signature.is_some() && ours.signature == theirs.signature;
    one_remedy && (one_signature || likeness(prose, &unit.content.prose()) >= SAME)
}

fn unit_of(draft: &Draft, standing: Standing) -> KnowledgeUnit {
    let Draft { id, content, metadata, at, by, trigger } = draft.clone();
    let audit = UnitAudit {
        created_at: at,
        updated_at: at,
        created_by: by,
        trigger,
        version: 1,
        count: 1,
        last_seen: at,
    };
    KnowledgeUnit { id, content, metadata, standing, audit }
}

/// Sketches the text of a unit anew where it has changed.
pub(super) fn sketch_anew(
    change: &Connection,
    doc: i64,
    before: &str,
    now: &str,
) -> rusqlite::Result<()> {
    if before == now {
        return Ok(());
    }
    change.execute("DELETE FROM band WHERE doc = ?1 AND band BETWEEN 0 AND 255", [doc])?;
    for (number, hash) in MinHash::of(now).bands() {
        change.execute("INSERT INTO band VALUES (?1, ?2, ?3)", params![number, hash, doc])?;
    }
    Ok(())
}

/// Writes a unit under the next change; returns its number.
pub(super) fn save(
    change: &Connection,
    doc: i64,
    unit: &KnowledgeUnit,
) -> rusqlite::Result<Result<i64, KnowledgeError>> {
    let body = match serde_json::to_string(unit) {
        Ok(body) => body,
        Err(error) => return Ok(Err(KnowledgeError::Encode(error))),
    };
    let next = "SELECT ifnull(max(seq), 0) + 1 FROM unit";
    let seq: i64 = change.query_row(next, [], |row| row.get(0))?;
    change.execute(
        "UPDATE unit SET seq = ?1, status = ?2, archived = ?3, signature = ?4, body = ?5 WHERE doc = ?6",
        params![
            seq,
            unit.standing.status.word(),
            unit.standing.archived,
            unit.metadata.signature,
            body,
            doc
        ],
    )?;
    Ok(Ok(seq))
}
