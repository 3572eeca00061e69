//! Search by meaning: an embedding model of the user, and the vectors that it makes.
//!
//! Owns the model's thread, the tokens that the model reads, and the vectors of units: a derived file
//! beside the store. Without a model, every search is by words and metadata, and says nothing about it:
//! nothing failed. No model comes with Jig.
//!
//! # Design
//! *The runtime is a library that the user names.* The crate `ort` opens ONNX Runtime when the first model
//! is loaded. It adds three crates and 9 seconds of processor time to an optimised build. A server that
//! embeds by HTTP was not chosen: a search would need a network, and texts of a lab would leave the
//! host.
//!
//! *Vectors are derived.* They have a file for each model, so that two users with different models do
//! not undo each other's work. A vector belongs to a text: it carries the text's hash, and where the
//! unit says something else by now, the vector does not count.
//!
//! *Eight bits a number.* 100,000 vectors of 384 numbers take 38 MB and not 154 MB. The scan is
//! exact over these. Cosines of such vectors differ by less than .02 from those of the full ones.
//!
//! *A thread of its own.* The model is loaded and runs on one thread. A slow model costs its part of an
//! answer and not the answer, and no lock is held while it works.

mod config;
mod file;
mod onnx;
mod rows;
mod vectors;
mod wordpiece;
mod worker;

pub use config::{EmbeddingConfig, EmbeddingConfigError};
pub use onnx::OnnxEmbedder;
pub use wordpiece::{Vocabulary, VocabularyError};

pub(crate) use rows::{ByteVector, text_hash};
pub(crate) use vectors::{MeaningIndex, VectorRow};
pub(crate) use worker::EmbedWorker;

use std::sync::Arc;

/// What tells one embedding model from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderName {
    /// Its name and version: models with the same name make the same vectors.
    pub name: String,
    /// Numbers of a vector.
    pub dimension: usize,
}

/// Says why a text has no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// The model cannot be loaded.
    #[error("the embedding model cannot be loaded: {0}")]
    Load(String),
    /// The model failed.
    #[error("the embedding model failed: {0}")]
    Failed(String),
    /// It was not ready in time.
    #[error("the embedding model took longer than {0} ms")]
    Late(u64),
    /// It returned a vector of another size, or one that has no direction.
    #[error("the embedding model returned no vector of {0} numbers")]
    WrongVector(usize),
    /// Its thread has ended.
    #[error("the embedding model is gone")]
    Gone,
    /// The file of vectors cannot be used.
    #[error("the vectors cannot be used: {0}")]
    Vectors(String),
}

/// An embedding model: from a text to a vector whose direction is its meaning.
pub trait Embedder: Send {
    /// Returns what tells it from others.
    fn name(&self) -> EmbedderName;

    /// Returns the vector of a text.
    ///
    /// # Errors
    /// The model failed.
    fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

/// Loads a model, on the thread that it will run on.
pub type LoadEmbedder = Arc<dyn Fn() -> Result<Box<dyn Embedder>, EmbedError> + Send + Sync>;

/// Returns a vector of length one; nothing where it has no direction or another size.
fn unit_vector(mut vector: Vec<f32>, dimension: usize) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (vector.len() == dimension && length.is_finite() && length > 0.0).then(|| {
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    })
}
