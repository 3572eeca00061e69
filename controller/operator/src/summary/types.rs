//! The summary as it is recorded and shown.

use jig_model::RunId;
use serde::{Deserialize, Serialize};

/// What a session came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSummary {
    /// The answer to a question; may quote hostile text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer: Vec<String>,
    /// What was done, a line a step.
    pub done: Vec<String>,
    /// Why it was done.
    pub why: String,
    /// How it was verified, and what that showed.
    pub verified: String,
    /// What is at risk now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<String>,
    /// How to undo it by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
    /// What kept the session from its goal, with the class of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<String>,
    /// What to do by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// The runs that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
    /// The exit code: the gravest of the verdicts of the runs, and of what ended the session.
    pub exit_code: u8,
    /// Connects all records of the session.
    pub trace_id: String,
}
