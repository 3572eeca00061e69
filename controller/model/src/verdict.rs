//! What a run amounts to, with the evidence it rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::note::Note;
use crate::result::TestReport;
use crate::{Cause, VerdictKind};

/// Points at bytes of a run's file that a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Path relative to the run's directory, with `/`.
    pub file: String,
    /// First byte of the range.
    pub start: u64,
    /// One past the last byte of the range.
    pub end: u64,
    /// What the range shows, in a few words; may quote the target (escape before printing).
    pub note: String,
}

/// What shows that the image that ran is the one that was deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageSeen {
    /// The emulator has loaded it.
    Loaded,
    /// The board was read back after the deployment, and held it.
    ReadBack,
    /// The firmware has printed its build id.
    BuildId,
}

/// Says what a run, or one attempt of it, amounts to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Pass, fail, flaky, environment error, inconclusive or cancelled.
    pub kind: VerdictKind,
    /// The reason that decided.
    pub cause: Cause,
    /// One line for people, lower case; may quote the target (escape before printing).
    pub summary: String,
    /// What the verdict rests on, the deciding range first.
    pub evidence: Vec<Evidence>,
    /// The test cases as the target reported them; empty where it reported none.
    pub tests: TestReport,
    /// What the rig had to do beside, such as attaching twice; decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub notes: Vec<Note>,
    /// For how many milliseconds the board was watched behind the end of what the plan waits for,
    /// in time that the board had. Absent where the target ended first, or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listened_ms: Option<u64>,
    /// What shows that the image that ran is the one that was deployed. Absent where nothing does, such as
    /// behind a program that flashes the board and reads nothing back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_seen: Option<ImageSeen>,
}

impl Verdict {
    /// Builds the verdict that a cause implies, without evidence.
    pub fn of(cause: Cause, summary: impl Into<String>) -> Self {
        Self {
            kind: cause.verdict(),
            cause,
            summary: summary.into(),
            evidence: Vec::new(),
            tests: TestReport::default(),
            notes: Vec::new(),
            listened_ms: None,
            image_seen: None,
        }
    }
}
