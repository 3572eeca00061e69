//! The thread of a model: loads it, answers one text after another.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{EmbedError, Embedder, EmbedderName, LoadEmbedder, unit_vector};

struct EmbedJob {
    text: String,
    reply: SyncSender<Result<Vec<f32>, EmbedError>>,
}

/// What has become of loading.
#[derive(Default)]
struct Loading {
    name: Mutex<Option<Result<EmbedderName, EmbedError>>>,
    done: Condvar,
}

/// A model and the thread that it runs on. Dropping it lets a call that is under way end by itself.
pub(crate) struct EmbedWorker {
    jobs: Option<SyncSender<EmbedJob>>,
    thread: Option<JoinHandle<()>>,
    loading: Arc<Loading>,
}

/// A vector that the model was asked for.
#[derive(Debug)]
pub(crate) struct PendingVector(Receiver<Result<Vec<f32>, EmbedError>>);

impl std::fmt::Debug for EmbedWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbedWorker").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl EmbedWorker {
    /// Starts the thread, which loads the model. What is to be done when it is loaded belongs to loading.
    pub(crate) fn start(
        load: LoadEmbedder,
        when_loaded: impl FnOnce(&EmbedderName) -> Result<(), EmbedError> + Send + 'static,
    ) -> std::io::Result<Self> {
        // One question at a time: while the model is busy, others are answered by words.
        let (jobs, queue): (SyncSender<EmbedJob>, Receiver<EmbedJob>) = mpsc::sync_channel(1);
        let loading = Arc::new(Loading::default());
        let told = Arc::clone(&loading);
        let work = move || {
            let model = load().and_then(|model| when_loaded(&model.name()).map(|()| model));
            run(model, &told, &queue);
        };
        let thread = std::thread::Builder::new().name("embedding".to_owned()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), loading })
    }

    /// Returns the name of the model, or why it has none; nothing while it is being loaded.
    pub(crate) fn name(&self) -> Option<Result<EmbedderName, EmbedError>> {
        self.loading.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the model is loaded.
    ///
    /// # Errors
    /// It cannot be loaded, or not in time.
    pub(crate) fn loaded(&self, timeout: Duration) -> Result<EmbedderName, EmbedError> {
        let name = self.loading.name.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, _) = self
            .loading
            .done
            .wait_timeout_while(name, timeout, |name| name.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        name.clone().unwrap_or(Err(EmbedError::Late(timeout.as_millis() as u64)))
    }

    /// Asks for the vector of a text, and does not wait for it.
    pub(crate) fn begin(&self, text: &str) -> Result<PendingVector, EmbedError> {
        if let Some(Err(error)) = self.name() {
            return Err(error);
        }
        let (reply, answer) = mpsc::sync_channel(1);
        let jobs = self.jobs.as_ref().ok_or(EmbedError::Gone)?;
        jobs.try_send(EmbedJob { text: text.to_owned(), reply }).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => EmbedError::Late(0),
            mpsc::TrySendError::Disconnected(_) => EmbedError::Gone,
        })?;
        Ok(PendingVector(answer))
    }

    /// Returns the vector of a text, of length one.
    pub(crate) fn embed(&self, text: &str, timeout: Duration) -> Result<Vec<f32>, EmbedError> {
        self.begin(text)?.within(timeout)
    }
}

impl PendingVector {
    /// Waits for the vector.
    pub(crate) fn within(self, timeout: Duration) -> Result<Vec<f32>, EmbedError> {
        self.0.recv_timeout(timeout).unwrap_or_else(|error| {
            Err(match error {
                RecvTimeoutError::Timeout => EmbedError::Late(timeout.as_millis() as u64),
                RecvTimeoutError::Disconnected => EmbedError::Gone,
            })
        })
    }
}

fn run(
    model: Result<Box<dyn Embedder>, EmbedError>,
    loading: &Loading,
    queue: &Receiver<EmbedJob>,
) {
    let tell = |name| {
        *loading.name.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        loading.done.notify_all();
    };
    let mut model = match model {
        Ok(model) => {
            tell(Ok(model.name()));
            model
        }
        Err(error) => {
            tell(Err(error.clone()));
            // Who asked meanwhile is told why.
            while let Ok(EmbedJob { reply, .. }) = queue.recv() {
                let _ = reply.try_send(Err(error.clone()));
            }
            return;
        }
    };
    let dimension = model.name().dimension;
    while let Ok(EmbedJob { text, reply }) = queue.recv() {
        let vector = model.embed(&text).and_then(|vector| {
            unit_vector(vector, dimension).ok_or(EmbedError::WrongVector(dimension))
        });
        // Who asked may have given up.
        let _ = reply.try_send(vector);
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
