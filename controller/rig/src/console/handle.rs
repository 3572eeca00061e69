//! The handle to a console: requests to its actor, and readers of its log.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jig_model::protocol::{BoxFuture, LineControl, Transport, TransportEvent};
use tokio::sync::{mpsc, oneshot, watch};

use super::disk::LogState;
use super::follow::{FollowError, Follower};
use super::log::GapReason;

/// Capacity of the request queue; the actor answers each within one pass of its loop.
pub(super) const CONTROLS: usize = 64;
/// Capacity of the write queue; a target reads slowly, so callers wait for room.
pub(super) const WRITES: usize = 16;

/// Says why a console did not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The console is closed.
    #[error("the console is closed")]
    Closed,
    /// No transport is attached: the board is off.
    #[error("the console has no transport: is the board powered?")]
    Detached,
    /// Too many requests wait, which means that the disk hangs.
    #[error("the console does not keep up ({CONTROLS} requests wait)")]
    Busy,
    /// The transport refused bytes.
    #[error("write to the console's transport")]
    Transport(#[source] io::Error),
}

pub(super) enum ConsoleRequest {
    Attach(Box<dyn Transport>, Vec<u8>, Option<TransportEvent>),
    Release(oneshot::Sender<Option<Box<dyn Transport>>>),
    Line(LineControl, oneshot::Sender<BoxFuture<'static, io::Result<()>>>),
    Drain(oneshot::Sender<u64>),
    Boundary(oneshot::Sender<u64>),
    Gap(Option<u64>, GapReason),
}

pub(super) struct Write {
    pub(super) bytes: Vec<u8>,
    pub(super) at: usize,
    pub(super) done: oneshot::Sender<Result<(), ConsoleError>>,
}

/// Talks to a console. Cheap to clone; outlives the console harmlessly.
#[derive(Debug, Clone)]
pub struct ConsoleHandle {
    pub(super) controls: mpsc::Sender<ConsoleRequest>,
    pub(super) writes: mpsc::Sender<Write>,
    pub(super) state: watch::Receiver<LogState>,
    pub(super) raw: Arc<Path>,
    pub(super) handed: Arc<AtomicU32>,
}

impl ConsoleHandle {
    /// Hands over a new transport; what an earlier one still holds is captured first.
    ///
    /// # Errors
    /// Fails where the console is closed or does not keep up; the transport is dropped then.
    pub fn attach(&self, transport: Box<dyn Transport>) -> Result<(), ConsoleError> {
        self.resume(transport, Vec::new(), None)
    }

    /// Hands over a transport from which `first` and then `event` have been read already; both are
    /// captured before its next bytes.
    ///
    /// # Errors
    /// As for [`attach`](Self::attach).
    pub fn resume(
        &self,
        transport: Box<dyn Transport>,
        first: Vec<u8>,
        event: Option<TransportEvent>,
    ) -> Result<(), ConsoleError> {
        // Before the actor can know of it, so that no follower misses it.
        self.handed.fetch_add(1, Ordering::AcqRel);
        let attached = self.control(ConsoleRequest::Attach(transport, first, event));
        if attached.is_err() {
            self.handed.fetch_sub(1, Ordering::AcqRel);
        }
        attached
    }

    /// Captures what is in the transport now and gives the transport back, if one is attached; the
    /// capture goes on without it. A write under way is broken off.
    ///
    /// Not cancel-safe: if the future is dropped the transport is closed.
    ///
    /// # Errors
    /// Fails where the console is closed.
    pub async fn release(&self) -> Result<Option<Box<dyn Transport>>, ConsoleError> {
        self.ask(ConsoleRequest::Release).await
    }

    /// Does something to the line beside sending bytes.
    ///
    /// # Errors
    /// Fails where no transport is attached, or the transport cannot.
    pub async fn line(&self, what: LineControl) -> Result<(), ConsoleError> {
        let begun = self.ask(|begun| ConsoleRequest::Line(what, begun)).await;
        // A missing answer means that no transport is attached.
        let begun = begun.map_err(|_| ConsoleError::Detached)?;
        begun.await.map_err(ConsoleError::Transport)
    }

    /// Reports bytes that never reached the transport, where a driver knows of them.
    ///
    /// # Errors
    /// Fails where the console is closed or does not keep up.
    pub fn gap(&self, lost: Option<u64>, reason: GapReason) -> Result<(), ConsoleError> {
        self.control(ConsoleRequest::Gap(lost, reason))
    }

    fn control(&self, control: ConsoleRequest) -> Result<(), ConsoleError> {
        self.controls.try_send(control).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ConsoleError::Busy,
            mpsc::error::TrySendError::Closed(_) => ConsoleError::Closed,
        })
    }

    /// Waits until everything that is in the transport now is in the log, on disk; returns the
    /// log's length then.
    ///
    /// # Errors
    /// Fails where the console is closed.
    pub async fn drained(&self) -> Result<u64, ConsoleError> {
        self.ask(ConsoleRequest::Drain).await
    }

    /// Begins to capture what is in the transport now; the answer comes when it is in the log.
    pub(crate) async fn begin_drain(&self) -> Option<oneshot::Receiver<u64>> {
        self.begin(ConsoleRequest::Drain).await.ok()
    }

    /// Captures what is in the transport now and marks that what follows is a new boot; returns
    /// the offset of its first byte.
    ///
    /// # Errors
    /// Fails where the console is closed.
    pub async fn boundary(&self) -> Result<u64, ConsoleError> {
        self.ask(ConsoleRequest::Boundary).await
    }

    async fn ask<T>(
        &self,
        control: impl FnOnce(oneshot::Sender<T>) -> ConsoleRequest,
    ) -> Result<T, ConsoleError> {
        self.begin(control).await?.await.map_err(|_| ConsoleError::Closed)
    }

    /// Asks the actor, whose answer comes later.
    async fn begin<T>(
        &self,
        control: impl FnOnce(oneshot::Sender<T>) -> ConsoleRequest,
    ) -> Result<oneshot::Receiver<T>, ConsoleError> {
        let (done, answer) = oneshot::channel();
        self.controls.send(control(done)).await.map_err(|_| ConsoleError::Closed)?;
        Ok(answer)
    }

    /// Sends bytes to the target; returns when the transport has taken all of them.
    ///
    /// Cancel-safe in this sense: dropping the future abandons what the transport has not taken
    /// yet, so a target that does not read cannot hold up later writers.
    ///
    /// # Errors
    /// Fails where no transport is attached, or the transport refuses.
    pub async fn send(&self, bytes: impl Into<Vec<u8>>) -> Result<(), ConsoleError> {
        let (done, answer) = oneshot::channel();
        let write = Write { bytes: bytes.into(), at: 0, done };
        self.writes.send(write).await.map_err(|_| ConsoleError::Closed)?;
        answer.await.map_err(|_| ConsoleError::Closed)?
    }

    /// Returns the file of the log's bytes.
    pub fn log(&self) -> &Path {
        &self.raw
    }

    /// Returns the log's state, to look at or to wait on.
    pub fn state(&self) -> watch::Receiver<LogState> {
        self.state.clone()
    }

    /// Opens a reader at an offset.
    ///
    /// `floor` is where this boot's output begins: nothing before it is ever looked at, so
    /// `^` matches there although the boot before may have died within a line.
    ///
    /// # Errors
    /// Says why the log cannot be opened.
    pub fn follow(&self, offset: u64, floor: u64) -> Result<Follower, FollowError> {
        Follower::new(&self.raw, self.state.clone(), Arc::clone(&self.handed), offset, floor)
    }
}
