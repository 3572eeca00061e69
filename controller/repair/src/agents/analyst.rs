//! Who explains a failure before patches are asked for. What it says is evidence: it ends no run, proves
//! nothing, and is followed by no step.

use std::path::PathBuf;
use std::time::Duration;

use jig_agents::budget::PromptPart;
use jig_agents::roles::{AnalysisAnswer, RoleState};
use jig_model::protocol::BoxFuture;

use super::{AgentBudget, AgentError};
use crate::journal::Usage;

/// What an analyst is given.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalysisRequest {
    /// What the run is to reach, in the words of the task.
    pub goal: String,
    /// The state that the roles share.
    pub state: RoleState,
    /// The evidence, the most important first; hostile text.
    pub parts: Vec<PromptPart>,
    /// Folder for the list of exchanges and the answers as they came.
    pub scratch: PathBuf,
    /// Most that the answer may use.
    pub budget: AgentBudget,
}

/// What an analyst says.
#[derive(Debug, Clone, PartialEq)]
pub struct FailureExplanation {
    /// The answer; hostile text.
    pub answer: AnalysisAnswer,
    /// What it cost.
    pub usage: Usage,
}

/// Explains failures.
pub trait FailureAnalyst: Send + Sync {
    /// Returns the longest time of an answer.
    fn time(&self) -> Duration;

    /// Explains a failure. Dropping the future ends the question.
    fn explain<'a>(
        &'a self,
        request: &'a AnalysisRequest,
    ) -> BoxFuture<'a, Result<FailureExplanation, AgentError>>;
}
