//! Runs.

use std::path::PathBuf;

use jiff::Timestamp;
use jig_model::{BoardId, Cause, PlaceName, RunId, VerdictKind, chain};
use jig_rig::store::{PlanRecord, RunEntry, RunState, RunStore, StoreError, lost_runs};
use serde::{Deserialize, Serialize};

use super::RigViewError;

/// Length of a page in bytes of JSON, at which it ends: half of what a message may hold.
const PAGE: usize = 1 << 20;

/// Runs of a listing, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunPage {
    /// The folder of the runs.
    pub folder: String,
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// Whether there are older ones.
    pub more: bool,
}

/// A run of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// Its name.
    pub id: RunId,
    /// Where it stands.
    pub standing: RunStanding,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The place it ran on.
    pub place: Option<PlaceName>,
    /// The kind of board.
    pub board: Option<BoardId>,
    /// The plan it followed.
    pub plan: Option<PlanRecord>,
    /// What it amounts to.
    pub verdict: Option<VerdictKind>,
    /// Why.
    pub cause: Option<Cause>,
    /// The same in words; may hold any text.
    pub summary: Option<String>,
    /// Why its record cannot be read, if so.
    pub broken: Option<BrokenRecord>,
}

/// Where a run stands; its lock knows better than its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStanding {
    /// Under way.
    Running,
    /// The process that made it was killed, and what it left is not removed yet.
    Killed,
    /// Ended with a verdict.
    Ended,
    /// The process that made it was killed; a later one has cleaned up.
    Abandoned,
    /// Its record cannot be read.
    Broken,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenRecord {
    /// What is wrong.
    pub trouble: RecordTrouble,
    /// The same in words; may hold any text.
    pub words: String,
}

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordTrouble {
    /// A newer jig wrote it, in this version of the format.
    Newer(u32),
    /// It does not say what a record says.
    Damaged,
    /// The disk does not answer.
    Unreadable,
}

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundRun {
    /// Its name.
    pub run: RunId,
    /// Its folder.
    pub dir: PathBuf,
    /// Whether it is under way.
    pub live: bool,
}

impl RunStanding {
    /// Says where a run stands.
    pub fn of(entry: &RunEntry) -> Self {
        match (&entry.record, entry.live) {
            (Err(_), false) => Self::Broken,
            (_, true) => Self::Running,
            (Ok(record), false) => match record.state {
                // The lock is free: its jig is dead, and its leftovers are not removed yet.
                RunState::Running => Self::Killed,
                RunState::Ended => Self::Ended,
                RunState::Abandoned => Self::Abandoned,
            },
        }
    }

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Killed => "killed",
            Self::Ended => "ended",
            Self::Abandoned => "abandoned",
            Self::Broken => "broken",
        }
    }
}

impl RunSummary {
    /// Sums up a run.
    pub fn of(entry: &RunEntry) -> Self {
        let record = entry.record.as_ref().ok();
        let verdict = record.and_then(|record| record.verdict.as_ref());
        let broken = entry.record.as_ref().err().map(|error| BrokenRecord {
            trouble: match error {
                StoreError::Newer { found, .. } => RecordTrouble::Newer(*found),
                StoreError::Damaged { .. } => RecordTrouble::Damaged,
                _ => RecordTrouble::Unreadable,
            },
            words: chain(error),
        });
        Self {
            id: entry.dir.id().clone(),
            standing: RunStanding::of(entry),
            started: record.and_then(|record| record.started),
            duration_ms: record.and_then(|record| record.duration_ms),
            place: record.and_then(|record| record.place.clone()),
            board: record.and_then(|record| record.board.clone()),
            plan: record.and_then(|record| record.plan.clone()),
            verdict: verdict.map(|verdict| verdict.kind),
            cause: verdict.map(|verdict| verdict.cause),
            summary: verdict.map(|verdict| verdict.summary.clone()),
            broken,
        }
    }
}

impl RunPage {
    /// Lists the runs that are older than `before`, or the newest ones.
    pub(super) fn of(store: &RunStore, before: Option<&RunId>) -> Result<Self, RigViewError> {
        let folder = store.root().display().to_string();
        let (mut runs, mut len) = (Vec::new(), 0);
        for entry in store.newest_before(before)? {
            if len >= PAGE {
                return Ok(Self { folder, runs, more: true });
            }
            let summary = RunSummary::of(&entry);
            // What cannot be written as JSON is refused where it is sent.
            len += serde_json::to_vec(&summary).map_or(0, |json| json.len());
            runs.push(summary);
        }
        Ok(Self { folder, runs, more: false })
    }
}

impl FoundRun {
    /// Finds a run, also where it was put aside because its own folder was lost.
    pub(super) fn find(store: &RunStore, wanted: &str) -> Result<Self, RigViewError> {
        let found = store.open(wanted).or_else(|error| match error {
            StoreError::NotFound { .. } => {
                RunStore::new(lost_runs()).open(wanted).map_err(|_| error)
            }
            error => Err(error),
        });
        match found {
            Ok(entry) => {
                let (run, dir) = (entry.dir.id().clone(), entry.dir.path().to_owned());
                Ok(Self { run, dir, live: entry.live })
            }
            Err(StoreError::NotFound { .. }) if store.newest_before(None)?.next().is_none() => {
                Err(RigViewError::NoRuns { folder: store.root().to_owned() })
            }
            Err(error) => Err(error.into()),
        }
    }
}
