//! The store of cases and revisions: one file beside the sessions, which many processes share.
//!
//! # Format, version 1
//! An SQLite database in WAL mode with full sync. `body` is a [`SessionCase`] or an [`InstructionRevision`] as
//! JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use jig_agents::roles::{AgentRole, RoleBook, RoleBookError};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde::de::DeserializeOwned;

use super::case::{CaseRole, FailureClass, SessionCase};
use super::revision::{
    CaseComparison, InstructionRevision, RevisionStatus, RoleInstruction, sentence,
};

/// How many sessions have to fail by one class before a revision is proposed, where nothing else is said.
pub const REPEATS: usize = 3;

/// Most cases that are kept; the oldest go.
const MAX_CASES: u64 = 5000;

/// Name of the file.
const FILE: &str = "memory.db";

/// The newest version that this program knows.
const VERSION: i64 = 1;

/// "jigm": tells the file from other databases.
const APPLICATION: i64 = 0x6a69_676d;

/// How long another process is waited for.
const BUSY: Duration = Duration::from_secs(1);

const TABLES: &str = "
CREATE TABLE cases (
    trace TEXT PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    goal TEXT NOT NULL,
    class TEXT,
    resolved_by TEXT,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX cases_by_class ON cases (class);
CREATE INDEX cases_by_goal ON cases (goal);
CREATE TABLE revisions (
    number INTEGER PRIMARY KEY,
    class TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL
) STRICT;
";

/// Says why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaseStoreError {
    /// SQLite refused.
    #[error("could not use {path}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// It is another file, or one of a newer program.
    #[error("{path} is not a store of cases that this program knows")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The prompts of this program are malformed.
    #[error(transparent)]
    Prompts(#[from] RoleBookError),
    /// There is no such revision.
    #[error("there is no revision {0}")]
    NoRevision(u64),
    /// It was decided before.
    #[error("revision {0} is {1}")]
    Decided(u64, RevisionStatus),
    /// Recorded cases speak against it.
    #[error(
        "of the recorded cases to which revision {number} applies, {} failed by its class and {} passed without it",
        comparison.concerned,
        comparison.passed
    )]
    NotBetter {
        /// The revision.
        number: u64,
        /// What the cases say.
        comparison: CaseComparison,
    },
}

/// What became of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptCase {
    /// How many sessions failed by its class, this one included.
    pub times: usize,
    /// Earlier sessions that failed at the same goal, which this one has reached, by their traces.
    pub resolves: Vec<String>,
    /// The revision that was proposed now.
    pub proposed: Option<u64>,
}

/// The cases and revisions of a folder of sessions.
#[derive(Debug)]
pub struct CaseStore {
    path: PathBuf,
    db: Connection,
}

type Stored<T> = Result<T, CaseStoreError>;

impl CaseStore {
    /// Tells whether a folder has a store.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).is_file()
    }

    /// Opens the store of a folder, and makes it where there is none.
    ///
    /// # Errors
    /// The file cannot be used, or is another one.
    pub fn open(folder: &Path) -> Stored<Self> {
        let path = folder.join(FILE);
        let failed = |source| CaseStoreError::Database { path: path.clone(), source };
        let mut db = Connection::open(&path).map_err(failed)?;
        match prepared(&mut db) {
            Ok(true) => Ok(Self { path, db }),
            Ok(false) => Err(CaseStoreError::Foreign { path }),
            Err(source) => Err(CaseStoreError::Database { path, source }),
        }
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> CaseStoreError + use<> {
        let path = self.path.clone();
        move |source| CaseStoreError::Database { path: path.clone(), source }
    }

    /// Keeps a case, notes what it resolves, and proposes a revision where as many sessions have failed by its
    /// class as `repeats` says. A session is kept once.
    ///
    /// # Errors
    /// The store cannot be written; nothing of it is then.
    pub fn keep(&mut self, case: &SessionCase, repeats: usize) -> Stored<KeptCase> {
        let failed = self.failed();
        let mut keep = || -> rusqlite::Result<KeptCase> {
            let keeping = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let kept = keep(&keeping, case, repeats.max(1))?;
            keeping.commit()?;
            Ok(kept)
        };
        keep().map_err(failed)
    }

    /// Lists the revisions by their numbers.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn revisions(&self) -> Stored<Vec<InstructionRevision>> {
        bodies(&self.db, "SELECT body FROM revisions ORDER BY number").map_err(self.failed())
    }

    /// Lists the cases, the oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn cases(&self) -> Stored<Vec<SessionCase>> {
        bodies(&self.db, "SELECT body FROM cases ORDER BY at_ms, trace").map_err(self.failed())
    }

    /// Returns the instruction of a role as it is used now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn instruction(&self, role: CaseRole) -> Stored<RoleInstruction> {
        let roles = self.instructed(&RoleBook::built_in()?)?;
        Ok(RoleInstruction::of(role, roles.of(role.asked())?))
    }

    /// Adds to the instructions of models what was approved for their roles. What a role may do, and the form of
    /// its answers, stay as they are.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn instructed(&self, roles: &RoleBook) -> Stored<RoleBook> {
        let (mut roles, revisions) = (roles.clone(), self.revisions()?);
        for &role in AgentRole::ALL {
            let holds = |one: &&InstructionRevision| {
                one.class.role.asked() == role && one.status == RevisionStatus::Approved
            };
            let (mut added, mut more) = (String::new(), 0_u32);
            for revision in revisions.iter().filter(holds) {
                added.push_str(&format!("{}\n", revision.sentence));
                more = more.saturating_add(1);
            }
            let Ok(prompt) = roles.of(role).cloned() else { continue };
            if more == 0 {
                continue;
            }
            let version = prompt.version.saturating_add(more);
            // One that is too long is left out: the others still hold.
            if let Err(error) = roles.instruct(role, version, &(prompt.instruction + &added)) {
                tracing::warn!(%role, "{error}");
            }
        }
        Ok(roles)
    }

    /// Finds a revision.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn revision(&self, number: u64) -> Stored<InstructionRevision> {
        let mut all = self.revisions()?.into_iter();
        all.find(|one| one.number == number).ok_or(CaseStoreError::NoRevision(number))
    }

    /// Compares a revision with the recorded cases.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn compare(&self, number: u64) -> Stored<CaseComparison> {
        Ok(CaseComparison::of(&self.revision(number)?.class, &self.cases()?))
    }

    /// Approves or rejects a revision. One against which recorded cases speak is approved only where `anyway`
    /// says so.
    ///
    /// # Errors
    /// There is none, it was decided before, cases speak against it, or the store cannot be written.
    pub fn decide(
        &mut self,
        number: u64,
        (approve, anyway): (bool, bool),
        (by, at): (&str, Timestamp),
    ) -> Stored<InstructionRevision> {
        let mut revision = self.revision(number)?;
        if revision.status != RevisionStatus::Proposed {
            return Err(CaseStoreError::Decided(number, revision.status));
        }
        let comparison = self.compare(number)?;
        if approve && !anyway && !comparison.is_better() {
            return Err(CaseStoreError::NotBetter { number, comparison });
        }
        revision.status = if approve { RevisionStatus::Approved } else { RevisionStatus::Rejected };
        revision.decided = Some((by.to_owned(), at));
        revision.comparison = Some(comparison);
        let body = text_of(&revision).map_err(self.failed())?;
        // Another process may have decided meanwhile.
        let proposed = "UPDATE revisions SET body = ?2
                        WHERE number = ?1 AND json_extract(body, '$.status') = 'proposed'";
        let changed = self.db.execute(proposed, params![number, body]).map_err(self.failed())?;
        match changed {
            0 => Err(CaseStoreError::Decided(number, self.revision(number)?.status)),
            _ => Ok(revision),
        }
    }
}

/// Makes the tables where there are none; tells whether the file is one of this program.
fn prepared(db: &mut Connection) -> rusqlite::Result<bool> {
    db.busy_timeout(BUSY)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let empty = making.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if empty {
        making.execute_batch(TABLES)?;
        making.pragma_update(None, "application_id", APPLICATION)?;
        making.pragma_update(None, "user_version", VERSION)?;
    }
    let number = |name: &str| making.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let known = number("application_id")? == APPLICATION && number("user_version")? <= VERSION;
    making.commit()?;
    Ok(known)
}

fn keep(db: &Transaction<'_>, case: &SessionCase, repeats: usize) -> rusqlite::Result<KeptCase> {
    let class = case.class.as_ref().map(FailureClass::key);
    let (at_ms, body) = (case.at.as_millisecond(), text_of(case)?);
    let new = db.execute(
        "INSERT OR IGNORE INTO cases (trace, at_ms, goal, class, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![case.trace_id, at_ms, case.goal, class, body],
    )?;
    let mut kept = KeptCase::default();
    if new == 0 {
        return Ok(kept);
    }
    db.execute(
        "DELETE FROM cases WHERE trace IN
         (SELECT trace FROM cases ORDER BY at_ms DESC, trace DESC LIMIT -1 OFFSET ?1)",
        [MAX_CASES],
    )?;
    if case.passed {
        let open = "SELECT trace FROM cases
                    WHERE goal = ?1 AND class IS NOT NULL AND resolved_by IS NULL ORDER BY at_ms";
        let mut open = db.prepare(open)?;
        let open = open.query_map([&case.goal], |row| row.get::<_, String>(0))?;
        kept.resolves = open.collect::<rusqlite::Result<_>>()?;
        for trace in &kept.resolves {
            let noted = "UPDATE cases SET resolved_by = ?2 WHERE trace = ?1";
            db.execute(noted, params![trace, case.trace_id])?;
        }
    }
    if let (Some(key), Some(class)) = (class, &case.class) {
        let alike = "SELECT trace FROM cases WHERE class = ?1 ORDER BY at_ms, trace";
        let mut alike = db.prepare(alike)?;
        let alike = alike.query_map([&key], |row| row.get::<_, String>(0))?;
        let alike: Vec<String> = alike.collect::<rusqlite::Result<_>>()?;
        kept.times = alike.len();
        let known = "SELECT 1 FROM revisions WHERE class = ?1";
        let known = db.query_row(known, [&key], |_| Ok(())).optional()?.is_some();
        if alike.len() >= repeats && !known {
            kept.proposed = Some(propose(db, case.at, (&key, class), alike)?);
        }
    }
    Ok(kept)
}

/// Proposes a revision for a class that has come back.
fn propose(
    db: &Transaction<'_>,
    at: Timestamp,
    (key, class): (&str, &FailureClass),
    cases: Vec<String>,
) -> rusqlite::Result<u64> {
    let resolved_by = helpers(db, key, class)?;
    let next = "SELECT coalesce(max(number), 0) + 1 FROM revisions";
    let number: u64 = db.query_row(next, [], |row| row.get(0))?;
    let revision = InstructionRevision {
        number,
        class: class.clone(),
        sentence: sentence(class, cases.len(), &resolved_by),
        cases,
        proposed_at: at,
        status: RevisionStatus::Proposed,
        decided: None,
        comparison: None,
    };
    let insert = "INSERT INTO revisions (number, class, body) VALUES (?1, ?2, ?3)";
    db.execute(insert, params![number, key, text_of(&revision)?])?;
    Ok(number)
}

/// Names the tools of the rig that sessions used which reached a goal of failed ones, and the failed ones did
/// not: names of a closed list, whatever a plan called.
fn helpers(db: &Transaction<'_>, key: &str, class: &FailureClass) -> rusqlite::Result<Vec<String>> {
    let failed: Vec<SessionCase> = bodies_with(db, "SELECT body FROM cases WHERE class = ?1", key)?;
    let passed: Vec<SessionCase> = bodies_with(
        db,
        "SELECT body FROM cases WHERE trace IN (SELECT resolved_by FROM cases WHERE class = ?1)",
        key,
    )?;
    let known = crate::tools::rig_tools();
    let mut helpers: Vec<String> = passed.into_iter().flat_map(|case| case.tools).collect();
    helpers.retain(|tool| {
        known.find(tool).is_some()
            && class.tool.as_ref() != Some(tool)
            && !failed.iter().any(|case| case.tools.contains(tool))
    });
    helpers.sort();
    helpers.dedup();
    helpers.truncate(3);
    Ok(helpers)
}

fn text_of<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn bodies<T: DeserializeOwned>(db: &Connection, query: &str) -> rusqlite::Result<Vec<T>> {
    let mut query = db.prepare(query)?;
    let rows = query.query_map([], |row| row.get::<_, String>(0))?;
    rows.map(|body| read(&body?)).collect()
}

fn bodies_with<T: DeserializeOwned>(
    db: &Connection,
    query: &str,
    key: &str,
) -> rusqlite::Result<Vec<T>> {
    let mut query = db.prepare(query)?;
    let rows = query.query_map([key], |row| row.get::<_, String>(0))?;
    rows.map(|body| read(&body?)).collect()
}

fn read<T: DeserializeOwned>(body: &str) -> rusqlite::Result<T> {
    serde_json::from_str(body).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}
