//! The agent that edits suspect lines by templates. It asks no model and knows no more of a program
//! than its text.

use jig_model::protocol::BoxFuture;

use super::{AgentError, Answer, PatchProposal, ProposalRequest, RepairAgent};
use crate::journal::Usage;
use crate::localise::{RankedSuspect, SourceLine, SuspectLine};
use crate::templates::candidates;

/// Name of the agent.
pub const TEMPLATES: &str = "templates";

/// The agent.
#[derive(Debug, Clone, Copy)]
pub struct TemplateAgent;

impl TemplateAgent {
    fn answer(&self, request: &ProposalRequest) -> Result<Answer, AgentError> {
        let refused = |why: String| AgentError { why, usage: Usage::default() };
        let path = &request.suspects;
        let rows: Vec<RankedSuspect> = std::fs::read(path)
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
        // A patch of text that is no UTF-8 would not fit.
        let is_text = |text: &&String| !text.contains(char::REPLACEMENT_CHARACTER);
        let source = |file: &str| request.sources.get(file).filter(is_text).cloned();
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

    fn is_deterministic(&self) -> bool {
        true
    }

    fn propose<'a>(
        &'a self,
        request: &'a ProposalRequest,
    ) -> BoxFuture<'a, Result<Answer, AgentError>> {
        Box::pin(async move { self.answer(request) })
    }
}
