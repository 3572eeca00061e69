//! Records of a session, for logs and exports: each row of its journal as what happened. Pure.
//!
//! A record has time, level, session, trace, kind, message, data and duration. The journal stays the truth:
//! a record that was lost is rebuilt from its row.

mod fold;
mod otlp;
#[cfg(test)]
mod tests;

pub use fold::{RecordFold, records_of};
pub use otlp::session_otlp;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

jig_model::words! {
    /// Names how grave a record is.
    RecordLevel, "level" {
        /// For those who look for a mistake.
        Debug = "DEBUG",
        /// What happens.
        Info = "INFO",
        /// Something is not as it should be, and the session goes on.
        Warn = "WARN",
        /// Something has failed.
        Error = "ERROR",
    }
}

jig_model::words! {
    /// Names what a record tells of.
    RecordKind, "kind of a record" {
        /// A person asks for something.
        SessionStarted = "SESSION_STARTED",
        /// A process goes on with the session.
        SessionResumed = "SESSION_RESUMED",
        /// The round is over.
        SessionEnded = "SESSION_ENDED",
        /// The session is in another state.
        State = "STATE",
        /// Questions are put, or answered.
        Clarification = "CLARIFICATION",
        /// The first plan is made.
        PlanCreated = "PLAN_CREATED",
        /// A plan replaces the one before: another iteration.
        PlanRefined = "PLAN_REFINED",
        /// A model was asked: the role, the version of its prompt, the tokens. Never the key, and not the question.
        ModelCall = "MODEL_CALL",
        /// A model has replaced a step that could not be carried out.
        StepAdjusted = "STEP_ADJUSTED",
        /// A step is carried out by another tool than planned.
        StepDegraded = "STEP_DEGRADED",
        /// A confirmation is waited for, given or refused.
        Confirmation = "CONFIRMATION",
        /// A tool is about to be called.
        ToolCallStarted = "TOOL_CALL_STARTED",
        /// A tool has answered.
        ToolCall = "TOOL_CALL",
        /// Knowledge was searched: the question, what was found, and how well it fits.
        Retrieval = "RETRIEVAL",
        /// The result was verified.
        Evaluation = "EVALUATION",
        /// Something that a person should know.
        Remark = "REMARK",
        /// Files that the session had changed are as they were before.
        RolledBack = "ROLLED_BACK",
        /// Something has failed.
        Error = "ERROR",
        /// The end of the session is asked for.
        Cancelled = "CANCELLED",
        /// A case was kept for later sessions, or could not be.
        CaseStored = "CASE_STORED",
        /// Times of states and tools.
        Performance = "PERFORMANCE",
    }
}

/// A record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRecord {
    /// When, UTC.
    pub timestamp: Timestamp,
    /// How grave it is.
    pub level: RecordLevel,
    /// The session, by its name.
    pub session_id: String,
    /// Connects all records of the session, and those of the runs that it asks for.
    pub trace_id: String,
    /// What it tells of.
    pub event_type: RecordKind,
    /// What happened, in words; may quote hostile text.
    pub message: String,
    /// The facts.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}
