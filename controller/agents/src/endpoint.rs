//! Settings of an endpoint: where it is, what it speaks, which key it wants.

use std::fmt;
use std::sync::Arc;

use jig_model::document::Choice;
use jig_model::power::WebAddress;

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpDialect {
    /// `/chat/completions`, as most local servers have it.
    OpenAi,
    /// `/v1/messages`.
    Anthropic,
}

impl Choice for HttpDialect {
    const WHAT: &'static str = "dialect";
    const CHOICES: &'static [(&'static str, Self)] =
        &[("openai", Self::OpenAi), ("anthropic", Self::Anthropic)];
}

/// What tokens cost, in millionths of a US dollar for a million of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenPrices {
    /// Tokens of the question.
    pub micro_usd_per_million_in: u64,
    /// Tokens of the answer.
    pub micro_usd_per_million_out: u64,
}

/// The largest amount of money in a setting, in US dollars; more is a slip of the keyboard.
pub const MAX_USD: f64 = 100_000.0;

/// Returns an amount of money in millionths of a US dollar; nothing where it is none, or too large.
pub fn micro_usd(dollars: f64) -> Option<u64> {
    (0.0..=MAX_USD).contains(&dollars).then(|| (dollars * 1e6).round() as u64)
}

/// Where a model is, and how it is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// Address below which the paths of the dialect are.
    pub url: WebAddress,
    /// What the endpoint speaks.
    pub dialect: HttpDialect,
    /// The model, as the endpoint calls it.
    pub model: String,
    /// Most tokens of an answer.
    pub max_tokens: u32,
    /// Temperature; the endpoint's own where there is none.
    pub temperature: Option<f64>,
    /// What tokens cost.
    pub prices: TokenPrices,
}

/// The key of an endpoint. It is sent to the endpoint and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ModelKey(Arc<str>);

impl ModelKey {
    /// Reads a key; nothing where the text is empty. A key that was read from a file often ends with a line
    /// end.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty()).then(|| Self(key.into()))
    }

    /// Returns the key, to be sent or to be removed from text.
    pub fn exposed(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ModelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelKey(removed)")
    }
}
