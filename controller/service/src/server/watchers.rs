//! Which connections still have the output of a job to fetch, and when one of them last moved.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{self, AsyncWrite};
use tokio::time::Instant;

/// Counts the connections whose caller has begun or follows a job. Such a caller fetches the end of
/// the output and the files of the run after the job has ended.
#[derive(Debug, Clone, Default)]
pub struct JobWatchers(Arc<Mutex<WatcherMoves>>);

#[derive(Debug, Default)]
struct WatcherMoves {
    count: usize,
    /// When the latest of them began, asked something or took bytes.
    last: Option<Instant>,
}

/// One connection that is counted; no longer when dropped.
#[derive(Debug)]
struct JobWatcher(JobWatchers);

impl JobWatchers {
    /// Returns when one of these connections moved last: its caller asked something, or took bytes.
    /// Nothing if there is no such connection.
    #[must_use]
    pub fn last_move(&self) -> Option<Instant> {
        let moves = self.moves();
        moves.last.filter(|_| moves.count > 0)
    }

    fn add(&self) -> JobWatcher {
        let mut moves = self.moves();
        moves.count += 1;
        moves.last = Some(Instant::now());
        drop(moves);
        JobWatcher(self.clone())
    }

    fn moves(&self) -> MutexGuard<'_, WatcherMoves> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for JobWatcher {
    fn drop(&mut self) {
        self.0.moves().count -= 1;
    }
}

/// Whether a connection is counted. Clones are of the same connection.
#[derive(Debug, Clone)]
pub(super) struct WatcherSlot {
    watchers: JobWatchers,
    watcher: Arc<Mutex<Option<JobWatcher>>>,
}

impl WatcherSlot {
    pub(super) fn of(watchers: &JobWatchers) -> Self {
        Self { watchers: watchers.clone(), watcher: Arc::default() }
    }

    /// Counts the connection from now on.
    pub(super) fn count(&self) {
        self.lock().get_or_insert_with(|| self.watchers.add());
    }

    /// Counts it no longer.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    /// Notes that the caller has asked something or taken bytes.
    pub(super) fn moved(&self) {
        if self.lock().is_some() {
            self.watchers.moves().last = Some(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<JobWatcher>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to a caller, which notes that bytes are taken: a message may take long on a slow line.
pub(super) struct WatchedWriter<W> {
    pub(super) to: W,
    pub(super) slot: WatcherSlot,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for WatchedWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.to).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.slot.moved();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.to).poll_shutdown(cx)
    }
}
