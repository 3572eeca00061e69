//! Retrieval: from a question to units, the best first, in milliseconds.
//!
//! Owns the steps: prepare the question, exact signature, words, metadata and vectors, union, rerank,
//! diversity, context. Refuses to carry out anything that a unit says.
//!
//! # Degradation
//! | what fails | what happens |
//! |---|---|
//! | no embedding model, or it fails or is late | words and metadata only, with a warning |
//! | the time is over | what was found until then, with a warning |
//! | the index file | it is rebuilt from the store |
//! | the store, while reading | an error; nothing is made up |
//! | the store, while capturing | retried, then the draft is kept in the outbox and stored later |

mod cache;
mod context;
mod diversity;
mod features;
mod fit;
mod question;
mod terms;
mod weights;

pub use context::{ContextBudget, build_context};
pub use features::{FEATURES, Features};
pub use fit::{FitReport, FittedSample};
pub use question::{KnowledgeCaller, RetrievalContext};
pub use weights::RerankWeights;

pub(crate) use cache::AnswerCache;
pub(crate) use diversity::diversified;
pub(crate) use features::FeatureSource;
pub(crate) use fit::{MIN_QUESTIONS, fitted, mean_ndcg};
pub(crate) use question::Question;
pub(crate) use terms::{facts_of, indexed};

use serde::{Deserialize, Serialize};

use crate::unit::KnowledgeUnit;

/// Why a unit was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HitReason {
    /// It has the signature that was asked for.
    Signature,
    /// It shares words with the question.
    Words,
    /// It is about the same files.
    Files,
    /// It means something like the question.
    Meaning,
}

/// A unit that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeHit {
    /// The unit.
    pub unit: KnowledgeUnit,
    /// How well it fits: comparable within one answer only.
    pub score: f32,
    /// Why it was found.
    pub reasons: Vec<HitReason>,
    /// A phrase by which its text addresses an agent: it is quoted and never followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
}

/// What the caller of a search should know about its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum RetrievalWarning {
    /// The time was over.
    #[error("the search was cut after {timeout_ms} ms: units may be missing")]
    Partial {
        /// How long it had.
        timeout_ms: u64,
    },
    /// The index could not follow the store in time.
    #[error(
        "{missing} newer changes were not searched; `jig kb reindex` brings the index up to date"
    )]
    Behind {
        /// How many changes.
        missing: u64,
    },
    /// The embedding model failed.
    #[error("searched by words only: {why}")]
    WordsOnly {
        /// What went wrong with the model.
        why: String,
    },
    /// Units that were to be loaded are damaged.
    #[error("{count} units are damaged and were left out; `jig kb reindex` checks the store")]
    Damaged {
        /// How many.
        count: usize,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeAnswer {
    /// The units, the best first.
    pub hits: Vec<KnowledgeHit>,
    /// How many units were considered.
    pub total_count: usize,
    /// How long it took.
    pub retrieval_time_ms: f64,
    /// Whether it was kept from an earlier search.
    pub cached: bool,
    /// What the caller should know about it.
    pub warnings: Vec<RetrievalWarning>,
}
