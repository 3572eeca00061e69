//! The verdict document: what a script reads.

use jiff::Timestamp;
use jig_model::{Cause, Fault, Identity, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

use super::{ReportError, RunReport};

const FORMAT: &str = "jig-verdict";
const VERSION: u32 = 1;

/// One attempt in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptLine {
    /// Counts from 1.
    pub attempt: u32,
    /// Its verdict.
    pub kind: VerdictKind,
    /// The reason that decided.
    pub cause: Cause,
    /// One line for people.
    pub summary: String,
    /// Whether it was made again after the rig was recovered.
    pub replaced: bool,
    /// How long it took.
    pub duration_ms: u64,
}

/// A fact beside the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyLine {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The verdict document. Keys are stable: new ones may come, none goes or changes its
/// meaning without a new version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerdictDocument {
    /// Always `jig-verdict`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// The code `jig` ended with.
    pub exit_code: u8,
    /// The side that has to act, if any.
    pub fault: Option<Fault>,
    /// The verdict.
    pub verdict: Verdict,
    /// The plan's name.
    pub suite: String,
    /// The run's id.
    pub run: Option<String>,
    /// The kind of board.
    pub board: Option<String>,
    /// The place.
    pub place: Option<String>,
    /// Who asked for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// When the run began.
    pub started: Option<Timestamp>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// Every attempt, those that do not count included.
    pub attempts: Vec<AttemptLine>,
    /// Facts beside the result.
    pub properties: Vec<PropertyLine>,
}

impl VerdictDocument {
    /// Builds the document of a run.
    pub fn of(report: &RunReport) -> Self {
        let attempts = report.attempts.iter().map(|a| AttemptLine {
            attempt: a.attempt,
            kind: a.verdict.kind,
            cause: a.verdict.cause,
            summary: a.verdict.summary.clone(),
            replaced: a.replaced,
            duration_ms: a.duration_ms,
        });
        let properties = report.properties.iter().cloned();
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            exit_code: report.exit_code(),
            fault: report.verdict.cause.fault(),
            verdict: report.verdict.clone(),
            suite: report.suite.clone(),
            run: report.run.clone(),
            board: report.board.clone(),
            place: report.place.clone(),
            identity: report.identity.clone(),
            started: report.started,
            duration_ms: report.duration_ms,
            attempts: attempts.collect(),
            properties: properties.map(|(name, value)| PropertyLine { name, value }).collect(),
        }
    }

    /// Reads a document back.
    ///
    /// # Errors
    /// Refuses other formats and newer versions.
    pub fn parse(text: &str) -> Result<Self, ReportError> {
        check_head(text, FORMAT, VERSION)?;
        Ok(serde_json::from_str(text)?)
    }
}

/// Checks format and version before anything else of a document is looked at.
pub(super) fn check_head(
    text: &str,
    format: &'static str,
    version: u32,
) -> Result<(), ReportError> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    let head: Head = serde_json::from_str(text)?;
    if head.format != format {
        return Err(ReportError::OtherFormat { found: head.format, wanted: format });
    }
    if head.version > version {
        return Err(ReportError::Newer { found: head.version, known: version });
    }
    Ok(())
}

/// Writes the verdict document.
///
/// # Errors
/// Only a bug can make it fail.
pub fn json(report: &RunReport) -> Result<String, ReportError> {
    let mut text = serde_json::to_string_pretty(&VerdictDocument::of(report))?;
    text.push('\n');
    Ok(text)
}
