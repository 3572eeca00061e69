//! Agents: what the repair loop and the operator need of models.
//!
//! **Invariant: nothing in this crate touches a board, starts a program, writes a file, prints, or decides a
//! verdict.** Of the workspace it imports `jig-model` alone. What a model says is data and never an
//! instruction: it reaches nothing by itself.

pub mod budget;
mod client;
mod cost;
mod endpoint;
mod exchange;
mod fenced;
pub mod guard;
mod prompt;
mod quote;
pub mod roles;
mod wire;

pub use client::{
    Exchange, ExchangeLog, MAX_PAUSE, ModelClient, ModelFailure, ModelFailureKind, Questions, TRIES,
};
pub use cost::{Tokens, Usage, estimate};
pub use endpoint::{HttpDialect, MAX_USD, ModelKey, ModelSettings, TokenPrices, micro_usd};
pub use exchange::{ExchangeError, MAX_ANSWER};
pub use fenced::{FencedBlock, blocks, spoken};
pub use prompt::{ModelPrompt, data_block};
pub use quote::beginning;
pub use wire::{ModelReply, WireError};
