//! The record of a run: `record.json`.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jig_model::{BoardId, ConsoleName, Identity, PlaceName, Purpose, RunId, SessionTrace, Verdict};
use serde::{Deserialize, Serialize};

use super::disk::{self, Durability};
use super::{Child, StoreError};

/// The format's name; a file without it is not ours.
const FORMAT: &str = "jig-run";
/// The newest version of the format this program knows.
const VERSION: u32 = 1;
/// Largest record that is read. A case takes some 150 bytes, a message up to a few KiB;
/// a hundred attempts of a thousand cases stay far below.
const MAX_RECORD: u64 = 256 << 20;

/// Says where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Under way, or killed and not yet swept: only the lock tells.
    Running,
    /// Ended with a verdict.
    Ended,
    /// Its jig was killed; found by a later start.
    Abandoned,
}

/// Which plan a run follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// Its name.
    pub name: String,
    /// Where it came from: a path, or `built-in`.
    pub origin: String,
}

/// Which image a run used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecord {
    /// The file, as the user named it.
    pub path: String,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// Its build id, if it carries one.
    pub build_id: Option<String>,
}

/// One boot of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootRecord {
    /// Counts from 1 within the attempt.
    pub boot: u32,
    /// Where its output starts in the primary console's log.
    pub offset: u64,
}

/// One attempt of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// Counts from 1.
    pub attempt: u32,
    /// What it was for. Only tests count.
    #[serde(default, skip_serializing_if = "Purpose::is_test")]
    pub purpose: Purpose,
    /// What it amounts to.
    pub verdict: Verdict,
    /// Whether the rig failed, was recovered, and the attempt was made again: it then counts
    /// for nothing in the run's verdict.
    #[serde(default)]
    pub replaced: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// The workflow machine's own record, with history and location.
    pub workflow: serde_json::Value,
    /// Its boots.
    pub boots: Vec<BootRecord>,
    /// The consoles that were captured.
    pub consoles: Vec<ConsoleName>,
}

/// What a later start found and did about a run whose jig was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// When it was found. When the run really stopped is not known.
    pub at: Timestamp,
    /// Processes of it that still ran and were killed.
    pub killed: Vec<Child>,
    /// What was recovered or found damaged, in words.
    pub remarks: Vec<String>,
}

/// Everything that is known about a run. Unknown is null, never a guess.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Always `jig-run`.
    pub format: String,
    /// Version of this format.
    pub version: u32,
    /// The run; also the name of its directory.
    pub id: RunId,
    /// Where it stands.
    pub state: RunState,
    /// The program that ran it.
    pub jig_version: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How long it took, on the monotonic clock.
    pub duration_ms: Option<u64>,
    /// Who asked for it. Records of older programs do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The session that asked for it, and its trace; nothing where no session did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<SessionTrace>,
    /// The place it ran on.
    pub place: Option<PlaceName>,
    /// The kind of board.
    pub board: Option<BoardId>,
    /// The plan it followed.
    pub plan: Option<PlanRecord>,
    /// The images it put on the board.
    pub images: Vec<ImageRecord>,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptRecord>,
    /// What it amounts to.
    pub verdict: Option<Verdict>,
    /// The exit code that follows from the verdict.
    pub exit_code: Option<u8>,
    /// Facts about the host: kernel, emulator version and the like.
    pub host: BTreeMap<String, String>,
    /// What a sweep did, if one had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept: Option<SweepRecord>,
}

/// The part that every version of the format has.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

impl RunRecord {
    /// Builds a record that knows nothing but the id.
    pub(super) fn unknown(id: RunId) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            id,
            state: RunState::Running,
            jig_version: None,
            started: None,
            ended: None,
            duration_ms: None,
            identity: None,
            asked: None,
            place: None,
            board: None,
            plan: None,
            images: Vec::new(),
            attempts: Vec::new(),
            verdict: None,
            exit_code: None,
            host: BTreeMap::new(),
            swept: None,
        }
    }

    /// Sets the verdict, and the exit code that follows from it.
    pub(super) fn conclude(&mut self, verdict: Verdict) {
        self.exit_code = Some(jig_model::exit::of_verdict(verdict.kind));
        self.verdict = Some(verdict);
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Refuses newer versions, and says what is wrong with a damaged file.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        Self::parse(path, &disk::read_bounded(path, MAX_RECORD)?)
    }

    /// Reads the content of a record; `path` names it in errors.
    ///
    /// # Errors
    /// As [`RunRecord::read`].
    pub fn parse(path: &Path, content: &[u8]) -> Result<Self, StoreError> {
        check_head(path, content)?;
        serde_json::from_slice(content).map_err(|e| StoreError::damaged(path, e.to_string()))
    }

    /// Replaces the record on disk, in one step.
    pub(super) fn write(&self, path: &Path, durability: Durability) -> Result<(), StoreError> {
        if let Ok(content) = disk::read_bounded(path, MAX_RECORD)
            && let Err(newer @ StoreError::Newer { .. }) = check_head(path, &content)
        {
            return Err(newer);
        }
        let mut content =
            serde_json::to_vec_pretty(self).map_err(|e| StoreError::encoding(path, e))?;
        content.push(b'\n');
        disk::replace(path, &content, durability)
    }
}

/// Checks format and version. The version decides before the shape: a newer shape is newer,
/// not damaged.
fn check_head(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let head: Head = serde_json::from_slice(content)
        .map_err(|e: serde_json::Error| StoreError::damaged(path, e.to_string()))?;
    if head.format != FORMAT {
        return Err(StoreError::damaged(path, format!("it does not say that it is {FORMAT}")));
    }
    if head.version > VERSION {
        let path = path.to_owned();
        return Err(StoreError::Newer { path, found: head.version, known: VERSION });
    }
    Ok(())
}
