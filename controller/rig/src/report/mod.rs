//! Reports: what a run amounts to, for people and for other programs.
//!
//! **Owns** the judgement over several attempts, the comparison with a baseline, and the
//! text forms: JUnit, JSON, TAP 14 and GitHub's. **Refuses** to read or write files and
//! to look at a clock: everything here is a pure function of its arguments.
//!
//! # Design
//! *Agreement by construction.* [`RunReport::new`] settles and clips a verdict once; its
//! [`rows`](RunReport::rows) say once per test case, plus at most one row for the plan
//! itself, whether that is the target's failure, an error, flaky, skipped or good. Every
//! writer renders those rows and nothing else, so no two of them can differ, and none is
//! green unless the verdict is a pass.
//!
//! *Text is hostile.* Names and messages come from a target. Each is cut to a bounded
//! length with a note, control characters become visible escapes, and each format then
//! escapes what is special to it.

pub mod baseline;
mod combine;
mod github;
mod json;
mod junit;
mod rows;
mod run_report;
mod tap;
mod text;

pub use combine::combine;
pub use github::{annotations, summary};
pub use json::{AttemptLine, PropertyLine, VerdictDocument, json};
pub use junit::junit;
pub use rows::{ReportRow, RowOutcome};
pub use run_report::{AttemptReport, ReportFormat, RunReport, SourceLocation, settle};
pub use tap::tap;

/// Says why a report cannot be written or read back.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The XML writer refused.
    #[error("could not write the report as XML")]
    Xml(#[from] quick_junit::SerializeError),
    /// The JSON reader or writer refused.
    #[error("not a JSON document of the expected form")]
    Json(#[from] serde_json::Error),
    /// The document is of another kind.
    #[error("this is {found:?}, not a {wanted} document")]
    OtherFormat {
        /// What it says it is.
        found: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// The document was written by a newer Jig.
    #[error("its format version is {found}, this jig knows up to {known}: use a newer jig")]
    Newer {
        /// Its version.
        found: u32,
        /// The newest version this program knows.
        known: u32,
    },
}

impl ReportError {
    /// Says who has to act.
    pub fn fault(&self) -> jig_model::Fault {
        match self {
            Self::Xml(_) => jig_model::Fault::Bug,
            Self::Json(_) | Self::OtherFormat { .. } | Self::Newer { .. } => {
                jig_model::Fault::Usage
            }
        }
    }
}

#[cfg(test)]
mod agreement;
