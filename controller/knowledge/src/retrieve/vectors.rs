//! Search by meaning: a seam for an embedding model, which is optional.
//!
//! No model comes with Jig. Without one, every search is by words and metadata, and says nothing about
//! it: nothing failed. A model runs on a thread of its own, so a slow one costs its part of the answer
//! and not the answer.
//!
//! Vectors are derived and lie in memory only: `reindex` makes all of them, for the process that calls
//! it. A unit that changes afterwards keeps its older one until the next `reindex`.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// What tells one embedding model from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderName {
    /// Its name and version.
    pub name: String,
    /// Numbers of a vector.
    pub dimension: usize,
}

/// Says why a text has no vector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
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
}

/// An embedding model: from a text to a vector whose direction is its meaning.
pub trait Embedder: Send + Sync {
    /// Returns what tells it from others.
    fn name(&self) -> EmbedderName;

    /// Returns the vector of a text.
    ///
    /// # Errors
    /// The model failed.
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

struct EmbedJob {
    text: String,
    reply: SyncSender<Result<Vec<f32>, EmbedError>>,
}

/// A model and the thread that it runs on. Dropping it lets a call that is under way end by itself.
pub(crate) struct EmbedWorker {
    jobs: Option<SyncSender<EmbedJob>>,
    thread: Option<JoinHandle<()>>,
    name: EmbedderName,
}

impl std::fmt::Debug for EmbedWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbedWorker").field("name", &self.name).finish_non_exhaustive()
    }
}

impl EmbedWorker {
    pub(crate) fn start(embedder: Arc<dyn Embedder>) -> std::io::Result<Self> {
        let name = embedder.name();
        // One question at a time: while the model is busy, others are answered by words.
        let (jobs, queue): (SyncSender<EmbedJob>, Receiver<EmbedJob>) = mpsc::sync_channel(1);
        let work = move || {
            while let Ok(EmbedJob { text, reply }) = queue.recv() {
                // Who asked may have given up.
                let _ = reply.try_send(embedder.embed(&text));
            }
        };
        let thread = std::thread::Builder::new().name("embedding".to_owned()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), name })
    }

    pub(crate) fn name(&self) -> &EmbedderName {
        &self.name
    }

    /// Returns the vector of a text, of length one.
    pub(crate) fn embed(&self, text: &str, timeout: Duration) -> Result<Vec<f32>, EmbedError> {
        let (reply, answer) = mpsc::sync_channel(1);
        let late = || EmbedError::Late(timeout.as_millis() as u64);
        let jobs = self.jobs.as_ref().ok_or(EmbedError::Gone)?;
        jobs.try_send(EmbedJob { text: text.to_owned(), reply }).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => late(),
            mpsc::TrySendError::Disconnected(_) => EmbedError::Gone,
        })?;
        let vector = match answer.recv_timeout(timeout) {
            Ok(vector) => vector?,
            Err(RecvTimeoutError::Timeout) => return Err(late()),
            Err(RecvTimeoutError::Disconnected) => return Err(EmbedError::Gone),
        };
        let dimension = self.name.dimension;
        unit_vector(vector)
            .filter(|vector| vector.len() == dimension)
            .ok_or(EmbedError::WrongVector(dimension))
    }
}

impl Drop for EmbedWorker {
    fn drop(&mut self) {
        // The thread ends when it has no jobs; a model that hangs must not hang who drops it.
        self.jobs = None;
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

/// Returns a vector of length one; nothing where it has no direction.
fn unit_vector(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0).then(|| {
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    })
}

/// Vectors of units in memory, scanned as a whole: 100,000 of 256 numbers take some 11 ms.
#[derive(Debug, Default)]
pub(crate) struct VectorRows {
    docs: Vec<u32>,
    values: Vec<f32>,
    dimension: usize,
}

impl VectorRows {
    pub(crate) fn new(dimension: usize) -> Self {
        Self { dimension, ..Self::default() }
    }

    /// Puts the vector of a unit, of length one, in place of its older one.
    pub(crate) fn put(&mut self, doc: u32, vector: &[f32]) {
        if vector.len() != self.dimension {
            return;
        }
        match self.docs.iter().position(|known| *known == doc) {
            Some(at) => {
                self.values[at * self.dimension..][..self.dimension].copy_from_slice(vector)
            }
            None => {
                self.docs.push(doc);
                self.values.extend_from_slice(vector);
            }
        }
    }

    /// Returns the units whose vectors point most into a direction, and their cosines.
    pub(crate) fn nearest(
        &self,
        vector: &[f32],
        most: usize,
        keep: impl Fn(u32) -> bool,
    ) -> Vec<(u32, f32)> {
        if self.dimension == 0 || vector.len() != self.dimension {
            return Vec::new();
        }
        let rows = self.docs.iter().zip(self.values.chunks_exact(self.dimension));
        let mut found: Vec<(u32, f32)> = rows
            .filter(|(doc, _)| keep(**doc))
            .map(|(doc, row)| (*doc, row.iter().zip(vector).map(|(a, b)| a * b).sum()))
            .collect();
        found.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        found.truncate(most);
        found
    }
}
