//! What can be asked of a kept console, and what is given.

use std::os::fd::OwnedFd;

use jig_model::capture_service::CaptureStatus;
use jig_model::protocol::{BoxFuture, LineControl, Transport};
use jig_model::rig_file::{CaptureLimits, ConsoleTransport};
use jig_model::{ConsoleName, PlaceName};
use tokio::sync::{mpsc, oneshot, watch};

/// Requests that may wait; more callers wait at the door.
pub(super) const ORDERS: usize = 64;

/// Opens a console's transport; the transport then outlasts losses of its other end by itself, and
/// tells of them. Waits as long as it takes, and may be dropped.
pub trait OpenTransport: Send + Sync {
    /// Opens one.
    ///
    /// # Errors
    /// Says why waiting is pointless for now; it is tried again in a while.
    fn open(&self, spec: &CaptureSpec) -> BoxFuture<'static, Result<Box<dyn Transport>, String>>;
}

/// A console to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSpec {
    /// The place.
    pub place: PlaceName,
    /// Its transport, with the console's name.
    pub transport: ConsoleTransport,
    /// Speed of the console in its profile, in bits per second.
    pub baud: u32,
    /// How much is kept.
    pub limits: CaptureLimits,
}

/// Says why something is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else has it.
    #[error("{what} is in use by {by}")]
    Taken {
        /// The transport or the writer.
        what: String,
        /// Who.
        by: String,
    },
    /// The transport is not there.
    #[error("the transport is not there: {0}")]
    Away(String),
    /// The transport does not do it.
    #[error("{0}")]
    Failed(String),
    /// The capture service ends.
    #[error("the capture service ends")]
    Ending,
}

/// A transport that was borrowed.
#[derive(Debug)]
pub struct Lent {
    /// What the borrower reads and writes.
    pub end: OwnedFd,
    /// The file of the capture service's log, by its number.
    pub file: u64,
    /// Its length: nothing of what `end` carries is in it.
    pub offset: u64,
    /// Takes how many bytes were read of `end`. Dropped, it says that the borrower has died.
    pub back: oneshot::Sender<u64>,
}

/// A transport that is wanted.
pub(super) struct LoanRequest {
    pub(super) by: String,
    pub(super) reply: oneshot::Sender<Result<Lent, Refusal>>,
}

/// A transport that is to be closed.
pub(super) struct ReleaseRequest {
    pub(super) by: String,
    /// Is told when it is closed.
    pub(super) reply: oneshot::Sender<Result<(), Refusal>>,
    /// Ends when it may be opened again.
    pub(super) until: oneshot::Receiver<()>,
}

pub(super) struct WriterRequest {
    pub(super) by: String,
    pub(super) take: bool,
    pub(super) reply: oneshot::Sender<Result<InputWriter, Refusal>>,
}

pub(super) enum Stroke {
    Send(Vec<u8>),
    Line(LineControl),
}

pub(super) enum Order {
    Lend(LoanRequest),
    LetGo(ReleaseRequest),
    InputWriter(WriterRequest),
    Stroke {
        writer: u64,
        stroke: Stroke,
        reply: oneshot::Sender<Result<(), Refusal>>,
    },
    /// The transport, the speed or the limits are others now.
    Change(Box<CaptureSpec>),
    /// What was given up may be tried again.
    Again,
    Stop,
}

/// The right to send on a console. Dropping it gives it up.
#[derive(Debug)]
pub struct InputWriter {
    pub(super) id: u64,
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) taken: oneshot::Receiver<String>,
}

impl InputWriter {
    /// Sends bytes; done when the transport has taken all of them. Dropping the future abandons
    /// those that the transport has not taken.
    ///
    /// # Errors
    /// Says why not all were sent.
    pub fn send(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<(), Refusal>> {
        self.stroke(Stroke::Send(bytes))
    }

    /// Does something to the line.
    ///
    /// # Errors
    /// Says why it was not done.
    pub fn control(&self, what: LineControl) -> BoxFuture<'static, Result<(), Refusal>> {
        self.stroke(Stroke::Line(what))
    }

    fn stroke(&self, stroke: Stroke) -> BoxFuture<'static, Result<(), Refusal>> {
        let (reply, answer) = oneshot::channel();
        let (orders, order) =
            (self.orders.clone(), Order::Stroke { writer: self.id, stroke, reply });
        Box::pin(async move {
            orders.send(order).await.map_err(|_| Refusal::Ending)?;
            answer.await.map_err(|_| Refusal::Ending)?
        })
    }

    /// Waits until somebody else has the writer, and tells who; cancel-safe.
    pub async fn taken(&mut self) -> String {
        (&mut self.taken).await.unwrap_or_else(|_| "nobody: the capture service ends".to_owned())
    }
}

/// Talks to a kept console. Cheap to clone; outlives it harmlessly.
#[derive(Debug, Clone)]
pub struct CaptureHandle {
    pub(super) orders: mpsc::Sender<Order>,
    pub(super) status: watch::Receiver<CaptureStatus>,
}

impl CaptureHandle {
    /// Borrows the transport as soon as it is there and nobody else has it. `by` names the
    /// borrower. Dropping the future leaves the queue.
    ///
    /// # Errors
    /// The transport cannot be lent, or the capture service ends.
    pub async fn lend(&self, by: String) -> Result<Lent, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Lend(LoanRequest { by, reply })).await?;
        answer.await.map_err(|_| Refusal::Ending)?
    }

    /// Closes the transport, so that another program can open its port, until what is returned is
    /// dropped.
    ///
    /// # Errors
    /// The capture service ends.
    pub async fn let_go(&self, by: String) -> Result<oneshot::Sender<()>, Refusal> {
        let ((reply, answer), (held, until)) = (oneshot::channel(), oneshot::channel());
        self.order(Order::LetGo(ReleaseRequest { by, reply, until })).await?;
        answer.await.map_err(|_| Refusal::Ending)??;
        Ok(held)
    }

    /// Asks for the right to send. A run that has the transport has that right as well, and it is
    /// not taken from it.
    ///
    /// # Errors
    /// Somebody has it and is to keep it, or the transport is not there.
    pub async fn writer(&self, by: String, take: bool) -> Result<InputWriter, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::InputWriter(WriterRequest { by, take, reply })).await?;
        answer.await.map_err(|_| Refusal::Ending)?
    }

    /// Returns where it stands, to look at or to wait on.
    pub fn status(&self) -> watch::Receiver<CaptureStatus> {
        self.status.clone()
    }

    /// Returns the console's name.
    pub fn console(&self) -> ConsoleName {
        self.status.borrow().console.clone()
    }

    pub(super) async fn order(&self, order: Order) -> Result<(), Refusal> {
        self.orders.send(order).await.map_err(|_| Refusal::Ending)
    }
}
