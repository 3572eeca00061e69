//! A model behind HTTP that explains a failure: the role [`AgentRole::Analysis`].

use std::time::Duration;

use jig_agents::ModelReply;
use jig_agents::roles::{AgentRole, AnalysisAnswer, RoleTask};
use jig_model::chain;
use jig_model::protocol::BoxFuture;

use super::{HttpAgent, HttpFailure, ScratchLog};
use crate::agents::AgentError;
use crate::agents::analyst::{AnalysisRequest, FailureAnalyst, FailureExplanation};
use crate::journal::Usage;

/// Most tokens of a question, by an estimate that never is too low.
const TOKENS: usize = 64_000;

impl FailureAnalyst for HttpAgent {
    fn time(&self) -> Duration {
        self.settings.timeout
    }

    fn explain<'a>(
        &'a self,
        request: &'a AnalysisRequest,
    ) -> BoxFuture<'a, Result<FailureExplanation, AgentError>> {
        Box::pin(async move {
            let mut usage = Usage::default();
            match self.explained(request, &mut usage).await {
                Ok(answer) => Ok(FailureExplanation { answer, usage }),
                Err(failure) => {
                    let why = format!("agent {}: {}", self.settings.name, chain(&failure));
                    Err(AgentError { why: self.redactor.text(&why), usage })
                }
            }
        })
    }
}

impl HttpAgent {
    /// Asks, and once more where the answer cannot be used.
    async fn explained(
        &self,
        request: &AnalysisRequest,
        usage: &mut Usage,
    ) -> Result<AnalysisAnswer, HttpFailure> {
        self.check_key()?;
        let role = self.roles.of(AgentRole::Analysis)?;
        let mut parts = vec![request.state.part(AgentRole::Analysis)];
        parts.extend(request.parts.iter().cloned());
        let mut question = role
            .question(RoleTask::Plan, &request.goal, &parts, TOKENS / 4 * 3)
            .ok_or(HttpFailure::TooLong)?;
        let client = self.client()?;
        let limit = self.settings.timeout.min(request.budget.time);
        let mut questions = client.questions(limit, request.budget.left);
        let mut log = ScratchLog::of(self, &request.scratch, role.version);
        for number in 1.. {
            let asked = questions.ask(&question, &mut log).await;
            *usage = questions.used();
            let ModelReply { texts, cut_off, .. } = asked?;
            // Of several answers the first counts.
            let text = texts.into_iter().next().unwrap_or_default();
            self.keep(&request.scratch, number, &text)?;
            if self.redactor.variable_in(&text).is_some() {
                return Err(HttpFailure::Key);
            }
            let error = match AnalysisAnswer::read(&self.redactor.text(&text)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let again = role.again(&question, &text, &error.to_string(), TOKENS);
            match again.filter(|_| number == 1) {
                Some(again) => question = again,
                None => return Err(HttpFailure::NoAnalysis { source: error, cut_off }),
            }
        }
        Err(HttpFailure::TooLong)
    }
}
