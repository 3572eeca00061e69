//! The agent that edits suspect lines by templates. It asks no model and knows no more of a program
//! than its text.

use std::path::PathBuf;

use jig_model::protocol::BoxFuture;

use super::{AgentError, Answer, PatchProposal, ProposalRequest, RepairAgent};
use crate::bundle::BundlePart;
use crate::journal::Usage;
use crate::localise::{RankedSuspect, SourceLine, SuspectLine};
use crate::templates::candidates;

/// Name of the agent.
pub const TEMPLATES: &str = "templates";

/// The agent.
pub struct TemplateAgent {
    /// Work tree with the sources that are edited.
    tree: PathBuf,
}

impl TemplateAgent {
    /// Edits the sources of a work tree, which holds the code without a patch when it is asked.
    pub fn new(tree: impl Into<PathBuf>) -> Self {
        Self { tree: tree.into() }
    }

    fn answer(&self, request: &ProposalRequest) -> Result<Answer, AgentError> {
        let refused = |why: String| AgentError { why, usage: Usage::default() };
        let path = request.bundle.join(BundlePart::Suspects.file_name());
        let rows: Vec<RankedSuspect> = std::fs::read(&path)
            .map_err(|error| refused(format!("{}: {error}", path.display())))
            .and_then(|text| {
                serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))
            })?;
        let suspect = |RankedSuspect { file, line, score, .. }| SuspectLine {
            line: SourceLine { file, line },
            score,
            failed: 0,
            passed: 0,
        };
        let suspects: Vec<_> = rows.into_iter().map(suspect).collect();
        let source = |file: &str| std::fs::read_to_string(self.tree.join(file)).ok();
        let proposals: Vec<_> = candidates(&suspects, source)
            .into_iter()
            .map(|(edit, diff)| PatchProposal { diff, hypothesis: edit.template.to_string() })
            .collect();
        if proposals.is_empty() {
            return Err(refused("no template fits a suspect line".to_owned()));
        }
        Ok(Answer { proposals, ..Answer::default() })
    }
}

impl RepairAgent for TemplateAgent {
    fn can_diagnose(&self) -> bool {
        false
    }

    fn propose<'a>(
        &'a self,
        request: &'a ProposalRequest,
    ) -> BoxFuture<'a, Result<Answer, AgentError>> {
        Box::pin(async move { self.answer(request) })
    }
}
