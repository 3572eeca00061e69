//! Questions to a model during one piece of work, with what they cost.

use std::sync::Arc;
use std::time::Duration;

use jig_agents::roles::{AgentRole, RoleBookError, RolePrompt};
use jig_agents::{ModelPrompt, Usage};

use super::LanguageModel;
use crate::error::{OperatorCode, OperatorError};
use crate::journal::SessionFact;

/// Most characters of an answer that the journal keeps.
const MAX_KEPT: usize = 8000;

/// Least time for an answer: the session ends a question that takes longer than it may.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Asks a model during one piece of work.
pub(crate) struct Thinker {
    model: Arc<dyn LanguageModel>,
    grant: Usage,
    time: Duration,
    /// What was asked, for the journal.
    facts: Vec<SessionFact>,
}

impl Thinker {
    /// Asks within so many tokens and so much money, and within so much time that is left of the session.
    pub(crate) fn new(model: Arc<dyn LanguageModel>, grant: Usage, time: Duration) -> Self {
        Self { model, grant, time, facts: Vec::new() }
    }

    /// Returns the prompt of a role.
    pub(crate) fn prompt_of(&self, role: AgentRole) -> Result<RolePrompt, OperatorError> {
        self.model.roles().of(role).cloned().map_err(|error| unusable(&error))
    }

    /// Returns the tokens of a first question: what is left of the context is for its repair.
    pub(crate) fn question_tokens(&self) -> usize {
        self.repair_tokens() / 4 * 3
    }

    /// Returns the tokens of a question.
    pub(crate) fn repair_tokens(&self) -> usize {
        usize::try_from(self.model.limits().context).unwrap_or(usize::MAX)
    }

    /// Asks, and keeps what was asked.
    pub(crate) async fn ask(
        &mut self,
        role: AgentRole,
        prompt: Option<&ModelPrompt>,
    ) -> Result<String, OperatorError> {
        let of_role = self.prompt_of(role)?;
        let Some(prompt) = prompt else {
            let words = "the request and its instructions are longer than a question may be";
            return Err(OperatorError::new(OperatorCode::Model, words)
                .next("raise max_context_tokens in agents.toml")
                .untouched());
        };
        let time = self.model.timeout().unwrap_or(of_role.timeout);
        let time = time.min(self.time).max(LEAST_TIME);
        let answered = self.model.ask(prompt, time, self.grant).await;
        self.grant = self.grant.without(answered.usage);
        self.facts.push(SessionFact::ModelAsked {
            role,
            prompt_version: of_role.version,
            model: self.model.name().to_owned(),
            tokens: answered.usage.tokens,
            micro_usd: answered.usage.micro_usd,
            said: answered.said.as_deref().unwrap_or_default().chars().take(MAX_KEPT).collect(),
            error: answered.said.as_ref().err().cloned(),
        });
        answered.said
    }

    /// Returns what was asked.
    pub(crate) fn into_facts(self) -> Vec<SessionFact> {
        self.facts
    }
}

fn unusable(error: &RoleBookError) -> OperatorError {
    OperatorError::new(OperatorCode::Model, error.to_string()).untouched()
}
