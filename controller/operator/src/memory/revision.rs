//! Instructions of roles, and how they are revised. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use jig_agents::roles::RolePrompt;
use serde::{Deserialize, Serialize};

use super::case::{CaseRole, FailureClass, SessionCase};
use crate::error::OperatorCode;

jig_model::words! {
    /// Names where a revision stands.
    RevisionStatus, "status of a revision" {
        /// It waits for a person.
        Proposed = "proposed",
        /// It is part of the instruction.
        Approved = "approved",
        /// A person has refused it; the class is not proposed again.
        Rejected = "rejected",
    }
}

/// What recorded cases say about a revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseComparison {
    /// Cases that were looked at.
    pub cases: u64,
    /// Cases to which the revision applies and that failed by its class: there it may help.
    pub concerned: u64,
    /// Cases to which it applies and that failed otherwise.
    pub failed_otherwise: u64,
    /// Cases to which it applies and that passed without it: there it is a burden.
    pub passed: u64,
}

impl CaseComparison {
    /// Compares with recorded cases.
    pub fn of<'c>(class: &FailureClass, cases: impl IntoIterator<Item = &'c SessionCase>) -> Self {
        let mut compared = Self::default();
        for case in cases {
            compared.cases += 1;
            let applies = class.tool.as_ref().is_none_or(|tool| case.tools.contains(tool));
            match (applies, case.passed) {
                (false, _) => {}
                (true, true) => compared.passed += 1,
                (true, false) if case.class.as_ref() == Some(class) => compared.concerned += 1,
                (true, false) => compared.failed_otherwise += 1,
            }
        }
        compared
    }

    /// Tells whether the revision concerns more failures than it burdens passes.
    pub fn is_better(&self) -> bool {
        self.concerned > self.passed
    }
}

/// A revision of an instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionRevision {
    /// Its number, from 1.
    pub number: u64,
    /// The failure class that has come back.
    pub class: FailureClass,
    /// The sentence that is added to the instruction of the role.
    pub sentence: String,
    /// The sessions that it rests on, by their traces.
    pub cases: Vec<String>,
    /// When it was proposed.
    pub proposed_at: Timestamp,
    /// Where it stands.
    pub status: RevisionStatus,
    /// Who decided, and when.
    pub decided: Option<(String, Timestamp)>,
    /// What recorded cases said when it was decided.
    pub comparison: Option<CaseComparison>,
}

/// The instruction of a role as it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleInstruction {
    /// The role.
    pub role: CaseRole,
    /// Its version: that of the prompt that comes with the program, and one more with each revision that was
    /// approved.
    pub version: u32,
    /// The text that a model is given. The form of its answer stands behind it.
    pub text: String,
}

impl RoleInstruction {
    /// Reads the instruction of a role out of the prompt of the model that is asked in it.
    pub fn of(role: CaseRole, prompt: &RolePrompt) -> Self {
        Self { role, version: prompt.version, text: prompt.instruction.clone() }
    }

    /// Returns what a revision would change, as a unified diff.
    pub fn diff(&self, revision: &InstructionRevision) -> String {
        let lines: Vec<&str> = self.text.lines().collect();
        let Self { role, version, .. } = self;
        let (count, context) = (lines.len(), lines.len().min(3));
        let from = count - context + 1;
        let mut diff = format!(
            "--- {role} version {version}\n+++ {role} version {}\n@@ -{from},{context} +{from},{} @@\n",
            version + 1,
            context + 1
        );
        for line in &lines[count - context..] {
            let _ = writeln!(diff, " {line}");
        }
        let _ = writeln!(diff, "+{}", revision.sentence);
        diff
    }
}

/// Makes the sentence of a revision: from names of closed lists alone. `resolved_by` are tools that sessions
/// used which reached the same goal later, and the failed ones did not.
pub(super) fn sentence(class: &FailureClass, times: usize, resolved_by: &[String]) -> String {
    let FailureClass { tool, code, cause, .. } = class;
    let what = match tool {
        Some(tool) => format!("`{tool}`"),
        None => "a plan".to_owned(),
    };
    let why = cause.as_ref().map_or_else(String::new, |cause| format!(" ({cause})"));
    let advice = match resolved_by {
        [] => advice(*code).to_owned(),
        tools => {
            let tools: Vec<_> = tools.iter().map(|tool| format!("`{tool}`")).collect();
            format!("plan {} before it, which has helped", tools.join(", "))
        }
    };
    format!("{what} has failed with {code}{why} in {times} sessions: {advice}.")
}

fn advice(code: OperatorCode) -> &'static str {
    match code {
        OperatorCode::PolicyDenied => "do not plan it unless the request names it",
        OperatorCode::Io => "plan `health` of the place before it, and say what is missing",
        OperatorCode::ToolTimeout => "plan less in one step, or ask for a longer time",
        OperatorCode::InvalidArgs => "read the schema of the tool before it is planned",
        OperatorCode::Conflict => "plan `places` before it, and choose a place that is free",
        OperatorCode::BuildFail => "plan `explain` and `knowledge_search` behind it",
        OperatorCode::Model => "answer with the form of a plan and nothing else",
    }
}
