//! Models: plans, other steps and answers by a model behind HTTP, where one is configured.
//!
//! **Owns** what a model is asked and how its answers become plans. **Refuses** an answer that is not of the form
//! that is asked for, after one repair round; a tool that the role may not plan; a path outside of the folder; a
//! command that destroys. What remains is a draft like any other: lowered, judged, confirmed.
//!
//! # Design
//! *The grammar goes first.* A sentence that the grammar understands is planned by it, unless the person or
//! `agents.toml` says otherwise. So a session without a model and one with it do the same for everyday requests.
//!
//! *Words of the person confirm, words of a model do not.* A confirmation in advance covers a dangerous step of a
//! model only where the sentence names its verb, its board and its files: see [`crate::grammar::names_call`].
//!
//! *Tokens and money are granted before they are spent.* The intent of work that asks a model holds the most that it may use.
//! The outcome replaces that by what was used. A process that is killed in between has used all of it.

mod asking;
mod endpoint;
mod known;
mod planning;
mod thinker;

use std::time::Duration;

use jig_agents::roles::RoleBook;
use jig_agents::{ModelPrompt, TokenPrices, Tokens, Usage};
use jig_model::protocol::BoxFuture;

use crate::error::OperatorError;

pub use endpoint::{EndpointModel, EndpointModelError};
pub(crate) use known::{ModelTask, results_parts};
pub(crate) use planning::{PlanAnswer, adjusted, answered, planned, refined, searched};
pub(crate) use thinker::Thinker;

/// What a model can read and say at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// Most tokens of a question.
    pub context: u32,
    /// Most tokens of an answer.
    pub output: u32,
    /// What tokens cost.
    pub prices: TokenPrices,
}

impl ModelLimits {
    /// Returns what one piece of work may use: a question and its repair, each asked twice.
    pub fn grant(self) -> Usage {
        let [input, output] = [self.context, self.output].map(|tokens| 4 * u64::from(tokens));
        Tokens { input, output }.usage(self.prices)
    }
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswered {
    /// The answer, secrets removed; hostile text.
    pub said: Result<String, OperatorError>,
    /// What it used, also where there is no answer.
    pub usage: Usage,
    /// What a person should know, such as a cost that is an estimate; may quote hostile text.
    pub notes: Vec<String>,
}

/// A model that can be asked.
pub trait LanguageModel: Send + Sync {
    /// Returns its name in `agents.toml`.
    fn name(&self) -> &str;

    /// Returns what it can read and say.
    fn limits(&self) -> ModelLimits;

    /// Returns how long an answer may take, where the endpoint says so; else the role says it.
    fn timeout(&self) -> Option<Duration>;

    /// Returns the prompts of the roles.
    fn roles(&self) -> &RoleBook;

    /// Asks, within `time` for each attempt and `left` for all of them. Dropping the future ends the
    /// connection.
    fn ask<'a>(
        &'a self,
        prompt: &'a ModelPrompt,
        time: Duration,
        left: Usage,
    ) -> BoxFuture<'a, ModelAnswered>;
}
