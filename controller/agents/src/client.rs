//! Questions to a model behind HTTP: when one is asked again, and what it may cost.
//!
//! The key is sent to the endpoint. No error and no log of this module holds it, except where the endpoint
//! itself says it: who keeps or shows a text of the endpoint removes the key first.
//!
//! # Budget
//! Before each question, also before one that is repeated, its worst case must fit: the estimate of
//! the question and the longest answer. A question whose answer was lost counts as its worst case,
//! because the endpoint may have worked on it.

use std::io;
use std::time::Duration;

use jig_model::chain;
use tokio::time::Instant;

use crate::cost::{Tokens, Usage, counted, estimate};
use crate::endpoint::{HttpDialect, ModelKey, ModelSettings};
use crate::exchange::{ExchangeError, HttpEndpoint, RawAnswer};
use crate::prompt::ModelPrompt;
use crate::quote::beginning;
use crate::wire::{self, LengthKey, ModelReply, WireError};

/// How often a question is asked where the endpoint is busy, broken or out of reach.
pub const TRIES: u32 = 5;

/// Pause before the second try; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause, also where the endpoint asks for more: then it is not asked again.
pub const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Says why an endpoint gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ModelFailure {
    /// The log refused a line.
    #[error("the log cannot be written")]
    Log(#[source] io::Error),
    /// The question may use more than is left.
    #[error(
        "a question may use {} tokens and {} millionths of a dollar, and {} and {} are left",
        worst.tokens, worst.micro_usd, left.tokens, left.micro_usd
    )]
    Budget {
        /// What the question may use.
        worst: Usage,
        /// What is left.
        left: Usage,
    },
    /// The time is over.
    #[error("{url} gave no complete answer within {limit:?}")]
    Late {
        /// The address.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// There is no answer.
    #[error("{url}")]
    Exchange {
        /// The address.
        url: String,
        /// Why.
        #[source]
        source: ExchangeError,
    },
    /// The endpoint names another address, which is not followed.
    #[error("{url} sends one to {to}: write where in `url`")]
    Redirect {
        /// The address.
        url: String,
        /// The other one; hostile text.
        to: String,
    },
    /// The endpoint refuses.
    #[error("{url} answered {status}: {said}")]
    Refused {
        /// The address.
        url: String,
        /// How.
        status: hyper::StatusCode,
        /// Its words; hostile text.
        said: String,
    },
    /// The endpoint wants a pause that is too long.
    #[error("{url} wants to be asked again after {pause:?} at the earliest: {said}")]
    Pause {
        /// The address.
        url: String,
        /// The pause.
        pause: Duration,
        /// Its words; hostile text.
        said: String,
    },
    /// No time is left to ask again.
    #[error("{said}; no time is left to ask again (tries: {tries})")]
    NoTime {
        /// How often it was asked.
        tries: u32,
        /// What was wrong the last time; hostile text.
        said: String,
    },
    /// The answer is not of the dialect.
    #[error("{url}")]
    Form {
        /// The address.
        url: String,
        /// What is wrong with it.
        #[source]
        source: WireError,
    },
}

/// What a failure comes down to, for those who decide what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFailureKind {
    /// No complete answer came in time.
    Late,
    /// The budget does not suffice.
    Budget,
    /// The endpoint does not accept the key.
    Key,
    /// Address, model or dialect do not fit the endpoint.
    Settings,
    /// The answer is larger than is read.
    TooLarge,
    /// The endpoint wants to be left alone for longer than is waited.
    Busy,
    /// The endpoint is out of reach or broken, also after all tries.
    Unavailable,
}

impl ModelFailure {
    /// Returns what the failure comes down to.
    pub fn kind(&self) -> ModelFailureKind {
        use ModelFailureKind as K;
        match self {
            Self::Late { .. } => K::Late,
            Self::Budget { .. } => K::Budget,
            Self::Pause { .. } => K::Busy,
            Self::Redirect { .. } | Self::Form { .. } => K::Settings,
            Self::Refused { status, .. } => match status.as_u16() {
                401 | 403 => K::Key,
                429 => K::Unavailable,
                _ if status.is_server_error() => K::Unavailable,
                _ => K::Settings,
            },
            Self::Exchange { source, .. } => match source {
                ExchangeError::TooLarge => K::TooLarge,
                ExchangeError::Unfit(_) => K::Settings,
                ExchangeError::Unreachable(_) | ExchangeError::Broken(_) => K::Unavailable,
            },
            Self::Log(_) | Self::NoTime { .. } => K::Unavailable,
        }
    }
}

/// One try, as it is logged.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange<'e> {
    /// The address.
    pub url: &'e str,
    /// The status, or what came in its place; hostile text.
    pub outcome: &'e str,
    /// The tokens that the endpoint reports.
    pub reported: Option<Tokens>,
    /// What is counted.
    pub counted: Usage,
    /// Why it is not what was reported.
    pub note: Option<&'e str>,
}

/// Is told each try.
pub trait ExchangeLog: Send {
    /// Keeps a try.
    ///
    /// # Errors
    /// It cannot be written; then nothing more is asked.
    fn keep(&mut self, exchange: &Exchange<'_>) -> io::Result<()>;
}

/// A model behind HTTP.
pub struct ModelClient {
    settings: ModelSettings,
    key: Option<ModelKey>,
    endpoint: HttpEndpoint,
    path: String,
    url: String,
    first_pause: Duration,
}

impl ModelClient {
    /// Makes a client. Nothing is sent yet.
    ///
    /// # Errors
    /// TLS cannot be used on this host.
    pub fn new(settings: ModelSettings, key: Option<ModelKey>) -> Result<Self, ModelFailure> {
        let path = wire::path(&settings);
        let mut origin = settings.url.clone();
        origin.base.clear();
        let url = format!("{origin}{path}");
        let endpoint = HttpEndpoint::new(settings.url.clone())
            .map_err(|source| ModelFailure::Exchange { url: url.clone(), source })?;
        Ok(Self { settings, key, endpoint, path, url, first_pause: FIRST_PAUSE })
    }

    /// Sets the pause before a question is asked the second time; a second if not set.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// Returns the address that is asked.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Begins questions that share a limit of time, which runs from now on, and a budget.
    pub fn questions(&self, limit: Duration, left: Usage) -> Questions<'_> {
        Questions {
            client: self,
            limit,
            deadline: Instant::now() + limit,
            left,
            used: Usage::default(),
            notes: Vec::new(),
            length: LengthKey::MaxTokens,
        }
    }

    /// Returns the most that a question may use.
    pub fn worst(&self, prompt: &ModelPrompt) -> Usage {
        let input = estimate(prompt.bytes());
        let worst = Tokens { input, output: u64::from(self.settings.max_tokens) };
        worst.usage(self.settings.prices)
    }
}

/// Questions to one model that share a limit of time and a budget.
pub struct Questions<'c> {
    client: &'c ModelClient,
    limit: Duration,
    deadline: Instant,
    left: Usage,
    used: Usage,
    notes: Vec<String>,
    length: LengthKey,
}

impl Questions<'_> {
    /// Returns what all questions have used so far.
    pub fn used(&self) -> Usage {
        self.used
    }

    /// Returns what a person should know, such as a cost that is an estimate; may quote hostile text.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Gets one answer, and asks again where that may help.
    ///
    /// # Errors
    /// There is none within the limits of time, tries and budget. What it cost is counted all the same.
    pub async fn ask(
        &mut self,
        prompt: &ModelPrompt,
        log: &mut dyn ExchangeLog,
    ) -> Result<ModelReply, ModelFailure> {
        let url = self.client.url.clone();
        let mut tried = 0;
        loop {
            self.check_budget(prompt)?;
            tried += 1;
            let asked = self.sent(prompt);
            let Ok(asked) = tokio::time::timeout_at(self.deadline, asked).await else {
                self.lost(prompt, "no complete answer in time", log)?;
                return Err(ModelFailure::Late { url, limit: self.limit });
            };
            let (failure, asked_pause) = match asked {
                Ok(raw) if raw.status.is_success() => return self.reply(prompt, &raw, log),
                Ok(raw) => {
                    self.log(raw.status.as_str(), None, Usage::default(), None, log)?;
                    if self.takes_other_length_key(&raw) {
                        self.length = LengthKey::MaxCompletionTokens;
                        continue;
                    }
                    let retry_after = raw.retry_after;
                    let (busy, failure) = refused(url.clone(), raw);
                    if !busy {
                        return Err(failure);
                    }
                    (failure, retry_after)
                }
                Err(source) => {
                    let again = match &source {
                        ExchangeError::Unreachable(_) => {
                            self.log(&chain(&source), None, Usage::default(), None, log)?;
                            true
                        }
                        ExchangeError::Broken(_) => {
                            self.lost(prompt, &source.to_string(), log)?;
                            true
                        }
                        ExchangeError::TooLarge => {
                            self.lost(prompt, &source.to_string(), log)?;
                            false
                        }
                        ExchangeError::Unfit(_) => false,
                    };
                    let failure = ModelFailure::Exchange { url: url.clone(), source };
                    if !again {
                        return Err(failure);
                    }
                    (failure, None)
                }
            };
            if tried == TRIES {
                return Err(failure);
            }
            let pause = asked_pause.unwrap_or_else(|| pause(self.client.first_pause, tried));
            if pause > MAX_PAUSE || Instant::now() + pause >= self.deadline {
                let said = chain(&failure);
                return Err(match asked_pause {
                    Some(pause) => ModelFailure::Pause { url, pause, said },
                    None => ModelFailure::NoTime { tries: tried, said },
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn sent(&self, prompt: &ModelPrompt) -> Result<RawAnswer, ExchangeError> {
        let client = self.client;
        let question = wire::question(&client.settings, prompt, self.length);
        let key = client.key.as_ref().map(ModelKey::exposed);
        client.endpoint.ask(&client.path, client.settings.dialect, key, question).await
    }

    /// Tells whether an endpoint knows the limit of an answer by another name.
    fn takes_other_length_key(&self, raw: &RawAnswer) -> bool {
        let other = LengthKey::MaxCompletionTokens;
        let named = || String::from_utf8_lossy(&raw.body).contains(other.as_str());
        raw.status == 400
            && self.length != other
            && self.client.settings.dialect == HttpDialect::OpenAi
            && named()
    }

    /// Reads an answer, and counts it even where it cannot be read.
    fn reply(
        &mut self,
        prompt: &ModelPrompt,
        raw: &RawAnswer,
        log: &mut dyn ExchangeLog,
    ) -> Result<ModelReply, ModelFailure> {
        let settings = &self.client.settings;
        let read = wire::reply(settings.dialect, &raw.body);
        let (reported, texts) = match &read {
            Ok(reply) => (reply.reported, reply.texts.iter().map(String::len).sum()),
            Err(_) => (None, raw.body.len()),
        };
        let (tokens, note) = counted(reported, prompt.bytes(), texts, settings.max_tokens);
        let usage = tokens.usage(settings.prices);
        self.count(usage);
        self.log(raw.status.as_str(), reported, usage, note.as_deref(), log)?;
        self.notes.extend(note);
        read.map_err(|source| ModelFailure::Form { url: self.client.url.clone(), source })
    }

    /// Refuses a question that may use more than is left.
    fn check_budget(&self, prompt: &ModelPrompt) -> Result<(), ModelFailure> {
        let worst = self.client.worst(prompt);
        let left = self.left.without(self.used);
        let fits = worst.tokens <= left.tokens && worst.micro_usd <= left.micro_usd;
        if fits { Ok(()) } else { Err(ModelFailure::Budget { worst, left }) }
    }

    fn count(&mut self, usage: Usage) {
        self.used = self.used.with(usage);
    }

    /// Counts a question whose answer is lost.
    fn lost(
        &mut self,
        prompt: &ModelPrompt,
        why: &str,
        log: &mut dyn ExchangeLog,
    ) -> Result<(), ModelFailure> {
        let worst = self.client.worst(prompt);
        self.count(worst);
        let note = "the answer is lost: its worst case is counted";
        self.log(why, None, worst, Some(note), log)
    }

    fn log(
        &self,
        outcome: &str,
        reported: Option<Tokens>,
        counted: Usage,
        note: Option<&str>,
        log: &mut dyn ExchangeLog,
    ) -> Result<(), ModelFailure> {
        let url = self.client.url.as_str();
        log.keep(&Exchange { url, outcome, reported, counted, note }).map_err(ModelFailure::Log)
    }
}

/// Tells whether an endpoint is busy or broken, so that it may be asked again, and what it said.
fn refused(url: String, raw: RawAnswer) -> (bool, ModelFailure) {
    if raw.status.is_redirection() {
        let to = raw.location.as_deref().unwrap_or("another address");
        return (false, ModelFailure::Redirect { url, to: beginning(to) });
    }
    let busy = raw.status.is_server_error() || raw.status == 429;
    (busy, ModelFailure::Refused { url, status: raw.status, said: wire::refusal(&raw.body) })
}

/// Returns how long is waited after so many tries.
fn pause(first: Duration, tried: u32) -> Duration {
    first.saturating_mul(1 << tried.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_are_bounded() {
        let pauses = [1, 2, 3, 7, 8, 60].map(|tried| pause(FIRST_PAUSE, tried).as_secs());
        assert_eq!(pauses, [1, 2, 4, 64, 120, 120]);
    }
}
