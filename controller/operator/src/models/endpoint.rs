//! A model at an endpoint of `agents.toml`.

use std::io;
use std::time::Duration;

use jig_agents::roles::{RoleBook, RoleBookError};
use jig_agents::{
    Exchange, ExchangeLog, ModelClient, ModelFailure, ModelFailureKind, ModelKey, ModelPrompt,
    ModelSettings, Usage, spoken,
};
use jig_model::chain;
use jig_model::power::{WebAddress, WebAddressError};
use jig_model::protocol::BoxFuture;
use jig_model::redact::Redactor;

use super::{LanguageModel, ModelAnswered, ModelLimits};
use crate::config::ModelEndpoint;
use crate::error::{OperatorCode, OperatorError};

/// How often a question is asked again that took too long.
const LATE_AGAIN: u32 = 2;

/// Says why an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointModelError {
    /// Its address is none.
    #[error("the address of the model")]
    Address(#[from] WebAddressError),
    /// The client cannot be made.
    #[error(transparent)]
    Client(#[from] ModelFailure),
    /// The prompts cannot be used.
    #[error(transparent)]
    Roles(#[from] RoleBookError),
}

/// A model at an endpoint.
pub struct EndpointModel {
    name: String,
    client: ModelClient,
    limits: ModelLimits,
    timeout: Option<Duration>,
    redactor: Redactor,
    roles: RoleBook,
}

impl EndpointModel {
    /// Makes it. `redactor` removes from questions and answers what is secret, also the key.
    ///
    /// # Errors
    /// The address is none, or this host cannot use TLS.
    pub fn new(
        name: &str,
        endpoint: &ModelEndpoint,
        key: Option<ModelKey>,
        redactor: Redactor,
    ) -> Result<Self, EndpointModelError> {
        let settings = ModelSettings {
            url: endpoint.url.parse::<WebAddress>()?,
            dialect: endpoint.dialect(),
            model: endpoint.name.clone(),
            max_tokens: endpoint.max_output_tokens,
            temperature: endpoint.temperature,
            prices: endpoint.prices(),
        };
        Ok(Self {
            name: name.to_owned(),
            client: ModelClient::new(settings, key)?,
            limits: ModelLimits {
                context: endpoint.max_context_tokens,
                output: endpoint.max_output_tokens,
                prices: endpoint.prices(),
            },
            timeout: endpoint.timeout_s.map(Duration::from_secs),
            redactor,
            roles: RoleBook::built_in()?,
        })
    }

    /// Sets the pause before a question is asked the second time; a second if not set.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.client = self.client.first_pause(pause);
        self
    }

    /// Uses other prompts, such as instructions that a person has approved.
    #[must_use]
    pub fn with_roles(mut self, roles: RoleBook) -> Self {
        self.roles = roles;
        self
    }

    async fn answered(&self, prompt: &ModelPrompt, time: Duration, left: Usage) -> ModelAnswered {
        let clean = ModelPrompt {
            system: self.redactor.text(&prompt.system),
            user: self.redactor.text(&prompt.user),
        };
        let usage = Usage::default();
        let mut answered = ModelAnswered { said: Ok(String::new()), usage, notes: Vec::new() };
        for late in 0..=LATE_AGAIN {
            let mut questions = self.client.questions(time, left.without(answered.usage));
            let asked = questions.ask(&clean, &mut TracedExchanges).await;
            answered.usage = answered.usage.with(questions.used());
            answered.notes.extend(questions.notes().iter().map(|note| self.redactor.text(note)));
            answered.notes.dedup();
            let late_again = |failure: &ModelFailure| failure.kind() == ModelFailureKind::Late;
            let again = late < LATE_AGAIN && asked.as_ref().err().is_some_and(late_again);
            answered.said = match asked {
                Ok(reply) => self.taken(reply.texts, reply.cut_off),
                Err(failure) => Err(self.failed(&failure)),
            };
            if !again {
                break;
            }
        }
        answered
    }

    fn taken(&self, texts: Vec<String>, cut_off: bool) -> Result<String, OperatorError> {
        // Of several answers the first counts.
        let text = texts.into_iter().next().unwrap_or_default();
        let error = |words: &str| {
            OperatorError::new(OperatorCode::Model, format!("model {}: {words}", self.name))
                .untouched()
        };
        if self.redactor.variable_in(&text).is_some() {
            return Err(error("the answer holds the key or another secret of this process")
                .next("look at who answers at that address, and change the key"));
        }
        let said = self.redactor.text(spoken(&text));
        if cut_off && said.trim().is_empty() {
            return Err(error("the answer was cut off before it began")
                .next("raise max_output_tokens in agents.toml"));
        }
        Ok(said)
    }

    fn failed(&self, failure: &ModelFailure) -> OperatorError {
        let name = &self.name;
        let words = self.redactor.text(&chain(failure));
        let error = |code, next: String| {
            OperatorError::new(code, format!("model {name}: {words}")).next(next).untouched()
        };
        use ModelFailureKind as K;
        let (code, next) = match failure.kind() {
            K::Late => (
                OperatorCode::ToolTimeout,
                format!("raise timeout_s of model.{name} in agents.toml"),
            ),
            K::Budget => (
                OperatorCode::PolicyDenied,
                "raise session.tokens or session.usd in agents.toml".to_owned(),
            ),
            K::Key => (
                OperatorCode::Model,
                format!("check the key that key_env or key_file of model.{name} names"),
            ),
            K::Settings => (
                OperatorCode::Model,
                format!("check url, name and dialect of model.{name} in agents.toml"),
            ),
            K::TooLarge => (
                OperatorCode::Model,
                format!("lower max_output_tokens of model.{name} in agents.toml"),
            ),
            K::Busy => (OperatorCode::Conflict, "ask again after that time".to_owned()),
            K::Unavailable => (
                OperatorCode::Io,
                "check that the endpoint runs, or ask without it: --model none".to_owned(),
            ),
        };
        error(code, next)
    }
}

/// Tries are told to the log of the program; what they cost is a fact of the session.
struct TracedExchanges;

impl ExchangeLog for TracedExchanges {
    fn keep(&mut self, exchange: &Exchange<'_>) -> io::Result<()> {
        // The words of the endpoint may quote the key: only numbers are told.
        let Usage { tokens, micro_usd } = exchange.counted;
        tracing::info!(
            event_type = "MODEL_CALL",
            url = exchange.url,
            tokens,
            micro_usd,
            "model asked"
        );
        Ok(())
    }
}

impl LanguageModel for EndpointModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn limits(&self) -> ModelLimits {
        self.limits
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn roles(&self) -> &RoleBook {
        &self.roles
    }

    fn ask<'a>(
        &'a self,
        prompt: &'a ModelPrompt,
        time: Duration,
        left: Usage,
    ) -> BoxFuture<'a, ModelAnswered> {
        Box::pin(self.answered(prompt, time, left))
    }
}
