//! An agent that is a model behind HTTP: one question made of the bundle, a diff as the answer.
//!
//! Asks for patches as the role [`AgentRole::Code`], and explains as [`AgentRole::Analysis`]. Owns how answers become proposals. When a question is asked again, and what it may cost, is the business of
//! [`jig_agents`]. The key comes from the environment, and is sent to the endpoint and written nowhere.

mod explain;
mod extract;
mod prompt;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use jig_agents::roles::{AgentRole, RoleAnswerError, RoleBook, RoleBookError};
use jig_agents::{
    Exchange, ExchangeLog, ModelClient, ModelFailure, ModelKey, ModelReply, ModelSettings,
};
use jig_model::chain;
use jig_model::protocol::BoxFuture;
use serde_json::json;

use self::extract::extract;
use self::prompt::{prompt, read_bundle};
use super::{AgentError, Answer, ProposalRequest, RepairAgent};
use crate::redact::Redactor;
use crate::task::AgentHttp;

/// Pause before a question is asked the second time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Name of the list of exchanges in the scratch folder.
const LOG: &str = "exchanges.jsonl";

/// A model behind HTTP as an agent.
pub struct HttpAgent {
    settings: AgentHttp,
    key: Option<ModelKey>,
    redactor: Redactor,
    roles: RoleBook,
    first_pause: Duration,
}

impl HttpAgent {
    /// Makes an agent. `roles` are its prompts, `variable` looks up the environment of Jig.
    pub fn new(
        settings: AgentHttp,
        roles: RoleBook,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let key = settings.key_env.as_deref().and_then(variable);
        let key = key.and_then(|key| key.into_string().ok()).and_then(|key| ModelKey::new(&key));
        let secret = settings.key_env.clone().zip(key.as_ref().map(|key| key.exposed().to_owned()));
        Self { settings, key, redactor: Redactor::new(secret), roles, first_pause: FIRST_PAUSE }
    }
}

impl RepairAgent for HttpAgent {
    fn propose<'a>(
        &'a self,
        request: &'a ProposalRequest,
    ) -> BoxFuture<'a, Result<Answer, AgentError>> {
        Box::pin(async move {
            let mut answer = Answer::default();
            let failed = self.ask_all(request, &mut answer).await.err();
            for proposal in &mut answer.proposals {
                proposal.hypothesis = self.redactor.text(&proposal.hypothesis);
            }
            let why = failed.map(|failure| {
                let why = format!("agent {}: {}", self.settings.name, chain(&failure));
                self.redactor.text(&why)
            });
            match why {
                Some(why) if answer.proposals.is_empty() => {
                    Err(AgentError { why, usage: answer.usage })
                }
                why => {
                    answer.notes.extend(why);
                    answer.notes.dedup();
                    Ok(answer)
                }
            }
        })
    }
}

/// Says why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
enum HttpFailure {
    #[error("the variable {0} is not set")]
    NoKey(String),
    #[error("the answer holds the key")]
    Key,
    #[error("the evidence cannot be read")]
    Bundle(#[source] io::Error),
    #[error("the log cannot be written")]
    Log(#[source] io::Error),
    #[error(transparent)]
    Model(#[from] ModelFailure),
    #[error(transparent)]
    Roles(#[from] RoleBookError),
    #[error("{why}{}", of_cut(*cut_off))]
    NoDiff { why: String, cut_off: bool },
    #[error("its analysis cannot be used{}", of_cut(*cut_off))]
    NoAnalysis {
        #[source]
        source: RoleAnswerError,
        cut_off: bool,
    },
    #[error("goal and instructions are longer than a question may be")]
    TooLong,
}

fn of_cut(cut_off: bool) -> &'static str {
    if cut_off { " (it was cut off: set `max-tokens` higher)" } else { "" }
}

impl HttpAgent {
    /// Makes the client of the endpoint.
    fn client(&self) -> Result<ModelClient, ModelFailure> {
        let settings = &self.settings;
        let endpoint = ModelSettings {
            url: settings.url.clone(),
            dialect: settings.dialect,
            model: settings.model.clone(),
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            prices: settings.prices,
        };
        Ok(ModelClient::new(endpoint, self.key.clone())?.first_pause(self.first_pause))
    }

    fn check_key(&self) -> Result<(), HttpFailure> {
        match (&self.settings.key_env, &self.key) {
            (Some(name), None) => Err(HttpFailure::NoKey(name.clone())),
            _ => Ok(()),
        }
    }

    /// Asks for all samples. What was found before an error stays in the answer.
    async fn ask_all(
        &self,
        request: &ProposalRequest,
        answer: &mut Answer,
    ) -> Result<(), HttpFailure> {
        self.check_key()?;
        let role = self.roles.of(AgentRole::Code)?;
        let files = read_bundle(&request.bundle).map_err(HttpFailure::Bundle)?;
        let prompt = prompt(role, &files);
        let client = self.client()?;
        let limit = self.settings.timeout.min(request.budget.time);
        let mut questions = client.questions(limit, request.budget.left);
        let mut log = ScratchLog::of(self, &request.scratch, role.version);
        let (mut ids, mut answers) = (Vec::new(), 0);
        let mut failed = Ok(());
        for _ in 0..self.settings.samples {
            let asked = questions.ask(&prompt, &mut log).await;
            answer.usage = questions.used();
            answer.notes = questions.notes().to_vec();
            let ModelReply { texts, cut_off, .. } = asked?;
            for text in texts {
                answers += 1;
                self.keep(&request.scratch, answers, &text)?;
                if self.redactor.variable_in(&text).is_some() {
                    failed = Err(HttpFailure::Key);
                    continue;
                }
                match extract(&text) {
                    Ok(found) if ids.contains(&found.id) => {}
                    Ok(found) => {
                        ids.push(found.id);
                        answer.proposals.push(found.proposal);
                    }
                    Err(error) => {
                        failed = Err(HttpFailure::NoDiff { why: error.to_string(), cut_off });
                    }
                }
            }
        }
        failed
    }

    /// Keeps an answer in the scratch folder, whether it can be used or not.
    fn keep(&self, scratch: &Path, number: usize, text: &str) -> Result<(), HttpFailure> {
        let file = scratch.join(format!("answer-{number}.txt"));
        std::fs::write(file, self.redactor.text(text)).map_err(HttpFailure::Log)
    }
}

/// The list of exchanges in the scratch folder.
struct ScratchLog<'a> {
    redactor: &'a Redactor,
    scratch: &'a Path,
    /// Version of the prompt that is asked with.
    prompt_version: u32,
}

impl<'a> ScratchLog<'a> {
    fn of(agent: &'a HttpAgent, scratch: &'a Path, prompt_version: u32) -> Self {
        Self { redactor: &agent.redactor, scratch, prompt_version }
    }
}

impl ExchangeLog for ScratchLog<'_> {
    fn keep(&mut self, exchange: &Exchange<'_>) -> io::Result<()> {
        let line = json!({
            "url": exchange.url,
            "prompt_version": self.prompt_version,
            "outcome": exchange.outcome,
            "reported": exchange.reported.map(|said| json!({ "in": said.input, "out": said.output })),
            "counted": exchange.counted,
            "note": exchange.note,
        });
        let line = format!("{}\n", self.redactor.text(&line.to_string()));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(self.scratch.join(LOG))?;
        file.write_all(line.as_bytes())
    }
}

#[cfg(test)]
mod tests;
