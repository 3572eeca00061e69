//! An agent that is a model behind HTTP: one question made of the bundle, a diff as the answer.
//!
//! Owns the budget of the questions, when a question is asked again, and how answers become
//! proposals. The key comes from the environment, and is sent to the endpoint and written nowhere.
//!
//! # Budget
//! Before each question, also before one that is repeated, its worst case must fit: the estimate of
//! the question and the longest answer. A question whose answer was lost counts as its worst case,
//! because the endpoint may have worked on it.

mod cost;
mod exchange;
mod extract;
mod prompt;
mod wire;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use jig_model::chain;
use jig_model::protocol::BoxFuture;
use serde_json::json;
use tokio::time::Instant;

use self::cost::{Tokens, counted, estimate};
use self::exchange::{Endpoint, ExchangeError, RawAnswer};
use self::extract::extract;
use self::prompt::{Prompt, prompt, read_bundle};
use self::wire::{LengthKey, ModelReply};
use super::{AgentError, Answer, ProposalRequest, RepairAgent};
use crate::journal::Usage;
use crate::redact::Redactor;
use crate::task::AgentHttp;

/// How often a question is asked where the endpoint is busy, broken or out of reach.
const TRIES: u32 = 5;

/// Pause before the second try; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause, also where the endpoint asks for more: then it is not asked again.
const MAX_PAUSE: Duration = Duration::from_secs(120);

/// Name of the list of exchanges in the scratch folder.
const LOG: &str = "exchanges.jsonl";

/// A model behind HTTP as an agent.
pub struct HttpAgent {
    settings: AgentHttp,
    key: Option<String>,
    redactor: Redactor,
    first_pause: Duration,
}

impl HttpAgent {
    /// Makes an agent. `variable` looks up the environment of Jig.
    pub fn new(settings: AgentHttp, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let key = settings.key_env.as_deref().and_then(variable);
        // A key that was read from a file often ends with a line end.
        let key = key.and_then(|key| key.into_string().ok()).map(|key| key.trim().to_owned());
        let key = key.filter(|key| !key.is_empty());
        let secret = settings.key_env.clone().zip(key.clone());
        Self { settings, key, redactor: Redactor::new(secret), first_pause: FIRST_PAUSE }
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

/// Says why an endpoint gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
enum HttpFailure {
    #[error("the variable {0} is not set")]
    NoKey(String),
    #[error("the answer holds the key")]
    Key,
    #[error("the evidence cannot be read")]
    Bundle(#[source] std::io::Error),
    #[error("the log cannot be written")]
    Log(#[source] std::io::Error),
    #[error(
        "a question may use {} tokens and {} millionths of a dollar, and {} and {} are left",
        worst.tokens, worst.micro_usd, left.tokens, left.micro_usd
    )]
    Budget { worst: Usage, left: Usage },
    #[error("{url} gave no complete answer within {limit:?}")]
    Late { url: String, limit: Duration },
    #[error("{url}")]
    Exchange {
        url: String,
        #[source]
        source: ExchangeError,
    },
    #[error("{url} sends one to {to}: write where in `url`")]
    Redirect { url: String, to: String },
    #[error("{url} answered {status}: {said}")]
    Refused { url: String, status: hyper::StatusCode, said: String },
    #[error("{url} wants to be asked again after {pause:?} at the earliest: {said}")]
    Pause { url: String, pause: Duration, said: String },
    #[error("{said}; no time is left to ask again (tries: {tries})")]
    NoTime { tries: u32, said: String },
    #[error("{url}: {why}")]
    Form { url: String, why: String },
    #[error("{why}{}", if *cut_off { " (it was cut off: set `max-tokens` higher)" } else { "" })]
    NoDiff { why: String, cut_off: bool },
}

impl HttpAgent {
    /// Asks for all samples. What was found before an error stays in the answer.
    async fn ask_all(
        &self,
        request: &ProposalRequest,
        answer: &mut Answer,
    ) -> Result<(), HttpFailure> {
        if let (Some(name), None) = (&self.settings.key_env, &self.key) {
            return Err(HttpFailure::NoKey(name.clone()));
        }
        let prompt = prompt(&read_bundle(&request.bundle).map_err(HttpFailure::Bundle)?);
        let url = format!("{}{}", origin(&self.settings), wire::path(&self.settings));
        let endpoint = Endpoint::new(self.settings.url.clone())
            .map_err(|source| HttpFailure::Exchange { url: url.clone(), source })?;
        let limit = self.settings.timeout.min(request.budget.time);
        let mut asking = Asking {
            agent: self,
            scratch: &request.scratch,
            endpoint,
            prompt,
            url,
            limit,
            deadline: Instant::now() + limit,
            left: request.budget.left,
            length: LengthKey::MaxTokens,
            answer,
        };
        let (mut ids, mut answers) = (Vec::new(), 0);
        let mut failed = Ok(());
        for _ in 0..self.settings.samples {
            let ModelReply { texts, cut_off, .. } = asking.sample().await?;
            for text in texts {
                answers += 1;
                asking.keep(answers, &text)?;
                if self.redactor.variable_in(&text).is_some() {
                    failed = Err(HttpFailure::Key);
                    continue;
                }
                match extract(&text) {
                    Ok(found) if ids.contains(&found.id) => {}
                    Ok(found) => {
                        ids.push(found.id);
                        asking.answer.proposals.push(found.proposal);
                    }
                    Err(error) => {
                        failed = Err(HttpFailure::NoDiff { why: error.to_string(), cut_off });
                    }
                }
            }
        }
        failed
    }
}

/// Returns scheme, host and port of an endpoint.
fn origin(settings: &AgentHttp) -> String {
    let mut origin = settings.url.clone();
    origin.base.clear();
    origin.to_string()
}

/// The questions of one proposal.
struct Asking<'a> {
    agent: &'a HttpAgent,
    scratch: &'a Path,
    endpoint: Endpoint,
    prompt: Prompt,
    url: String,
    limit: Duration,
    deadline: Instant,
    left: Usage,
    length: LengthKey,
    answer: &'a mut Answer,
}

impl Asking<'_> {
    /// Gets one answer, and asks again where that may help.
    async fn sample(&mut self) -> Result<ModelReply, HttpFailure> {
        let url = self.url.clone();
        let mut tried = 0;
        loop {
            self.check_budget()?;
            tried += 1;
            let asked = self.ask();
            let Ok(asked) = tokio::time::timeout_at(self.deadline, asked).await else {
                self.lost("no complete answer in time")?;
                return Err(HttpFailure::Late { url, limit: self.limit });
            };
            let (failure, asked_pause) = match asked {
                Ok(raw) if raw.status.is_success() => return self.reply(&raw),
                Ok(raw) => {
                    self.log(raw.status.as_str(), None, Usage::default(), None)?;
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
                            self.log(&chain(&source), None, Usage::default(), None)?;
                            true
                        }
                        ExchangeError::Broken(_) => {
                            self.lost(&source.to_string())?;
                            true
                        }
                        ExchangeError::TooLarge => {
                            self.lost(&source.to_string())?;
                            false
                        }
                        ExchangeError::Unfit(_) => false,
                    };
                    let failure = HttpFailure::Exchange { url: url.clone(), source };
                    if !again {
                        return Err(failure);
                    }
                    (failure, None)
                }
            };
            if tried == TRIES {
                return Err(failure);
            }
            let pause = asked_pause.unwrap_or_else(|| pause(self.agent.first_pause, tried));
            if pause > MAX_PAUSE || Instant::now() + pause >= self.deadline {
                let said = chain(&failure);
                return Err(match asked_pause {
                    Some(pause) => HttpFailure::Pause { url, pause, said },
                    None => HttpFailure::NoTime { tries: tried, said },
                });
            }
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask(&self) -> Result<RawAnswer, ExchangeError> {
        let settings = &self.agent.settings;
        let question = wire::question(settings, &self.prompt, self.length);
        let path = wire::path(settings);
        self.endpoint.ask(&path, settings.dialect, self.agent.key.as_deref(), question).await
    }

    /// Tells whether an endpoint knows the limit of an answer by another name.
    fn takes_other_length_key(&self, raw: &RawAnswer) -> bool {
        let other = LengthKey::MaxCompletionTokens;
        let named = || String::from_utf8_lossy(&raw.body).contains(other.as_str());
        raw.status == 400
            && self.length != other
            && self.agent.settings.dialect == crate::task::HttpDialect::OpenAi
            && named()
    }

    /// Reads an answer, and counts it even where it cannot be read.
    fn reply(&mut self, raw: &RawAnswer) -> Result<ModelReply, HttpFailure> {
        let settings = &self.agent.settings;
        let read = wire::reply(settings.dialect, &raw.body);
        let (reported, texts) = match &read {
            Ok(reply) => (reply.reported, reply.texts.iter().map(String::len).sum()),
            Err(_) => (None, raw.body.len()),
        };
        let (tokens, note) = counted(reported, self.prompt.bytes(), texts, settings.max_tokens);
        let usage = tokens.usage(settings.prices);
        self.count(usage);
        self.log(raw.status.as_str(), reported, usage, note.as_deref())?;
        self.answer.notes.extend(note);
        read.map_err(|why| HttpFailure::Form { url: self.url.clone(), why })
    }

    fn worst(&self) -> Usage {
        let settings = &self.agent.settings;
        let input = estimate(self.prompt.bytes());
        let worst = Tokens { input, output: u64::from(settings.max_tokens) };
        worst.usage(settings.prices)
    }

    /// Refuses a question that may use more than is left.
    fn check_budget(&self) -> Result<(), HttpFailure> {
        let (worst, used) = (self.worst(), self.answer.usage);
        let left = Usage {
            tokens: self.left.tokens.saturating_sub(used.tokens),
            micro_usd: self.left.micro_usd.saturating_sub(used.micro_usd),
        };
        let fits = worst.tokens <= left.tokens && worst.micro_usd <= left.micro_usd;
        if fits { Ok(()) } else { Err(HttpFailure::Budget { worst, left }) }
    }

    fn count(&mut self, usage: Usage) {
        let used = &mut self.answer.usage;
        used.tokens = used.tokens.saturating_add(usage.tokens);
        used.micro_usd = used.micro_usd.saturating_add(usage.micro_usd);
    }

    /// Counts a question whose answer is lost.
    fn lost(&mut self, why: &str) -> Result<(), HttpFailure> {
        let worst = self.worst();
        self.count(worst);
        self.log(why, None, worst, Some("the answer is lost: its worst case is counted"))
    }

    /// Keeps an answer in the scratch folder, whether it can be used or not.
    fn keep(&self, number: usize, text: &str) -> Result<(), HttpFailure> {
        let file = self.scratch.join(format!("answer-{number}.txt"));
        std::fs::write(file, self.agent.redactor.text(text)).map_err(HttpFailure::Log)
    }

    /// Adds an exchange to the list in the scratch folder.
    fn log(
        &self,
        outcome: &str,
        reported: Option<Tokens>,
        counted: Usage,
        note: Option<&str>,
    ) -> Result<(), HttpFailure> {
        let line = json!({
            "url": self.url,
            "outcome": outcome,
            "reported": reported.map(|said| json!({ "in": said.input, "out": said.output })),
            "counted": counted,
            "note": note,
        });
        let line = format!("{}\n", self.agent.redactor.text(&line.to_string()));
        let mut options = std::fs::OpenOptions::new();
        let file = options.create(true).append(true).open(self.scratch.join(LOG));
        file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(HttpFailure::Log)
    }
}

/// Tells whether an endpoint is busy or broken, so that it may be asked again, and what it said.
fn refused(url: String, raw: RawAnswer) -> (bool, HttpFailure) {
    if raw.status.is_redirection() {
        let to = raw.location.as_deref().unwrap_or("another address");
        return (false, HttpFailure::Redirect { url, to: crate::excerpt::beginning(to) });
    }
    let busy = raw.status.is_server_error() || raw.status == 429;
    (busy, HttpFailure::Refused { url, status: raw.status, said: wire::refusal(&raw.body) })
}

/// Returns how long is waited after so many tries.
fn pause(first: Duration, tried: u32) -> Duration {
    first.saturating_mul(1 << tried.saturating_sub(1).min(16)).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests;
