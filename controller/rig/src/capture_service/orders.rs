//! Requests to a captured console, and their replies.

use std::io;
use std::os::fd::OwnedFd;

use jig_model::capture_service::CaptureStatus;
use jig_model::protocol::{BoxFuture, LineControl, Transport};
use jig_model::rig_file::{CaptureLimits, ConsoleTransport};
use jig_model::{ConsoleName, PlaceName};
use nix::errno::Errno;
use tokio::sync::{mpsc, oneshot, watch};

use crate::console::ConsoleError;

/// Capacity of a console's request queue; further callers wait for room.
pub(super) const ORDERS: usize = 64;

/// Opens a console's transport. The transport reconnects by itself when its other end is lost, and
/// reports each loss. The future may wait without limit and may be dropped.
pub trait OpenTransport: Send + Sync {
    /// Opens the transport of a console.
    ///
    /// # Errors
    /// The transport cannot be opened now; the caller retries after a pause.
    fn open(
        &self,
        spec: &CaptureSpec,
    ) -> BoxFuture<'static, Result<Box<dyn Transport>, OpenTransportError>>;

    /// Tells whether a board may print while no service captures it, so that bytes may be missing
    /// between two services.
    fn prints_uncaptured(&self) -> bool {
        true
    }
}

/// Reason why a transport cannot be opened now, as its driver states it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct OpenTransportError(pub Box<dyn std::error::Error + Send + Sync>);

/// A console to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSpec {
    /// The place.
    pub place: PlaceName,
    /// Its transport, with the console's name.
    pub transport: ConsoleTransport,
    /// Speed of the console in its profile, in bits per second.
    pub baud: u32,
    /// Limits on size and age of the log.
    pub limits: CaptureLimits,
}

/// Reason why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The transport or its input is in use.
    #[error("{what} is in use by {by}")]
    Taken {
        /// The transport, or its input.
        what: &'static str,
        /// Name of the user.
        by: String,
    },
    /// The other end of the transport is absent.
    #[error("the transport is not there: {0}")]
    Away(String),
    /// The log cannot be written, so nothing may be sent.
    #[error("{0}")]
    Unwritten(String),
    /// The queue for the transport is full.
    #[error("too many wait for this transport")]
    Crowded,
    /// The transport could not be handed to a borrower.
    #[error("lend the transport")]
    Lend(#[source] io::Error),
    /// The transport failed or does not support the request.
    #[error(transparent)]
    Input(#[from] ConsoleError),
    /// The capture service is shutting down.
    #[error("the capture service is shutting down")]
    Ending,
}

impl CaptureError {
    /// Tells whether the transport has no line of the kind that was to be controlled.
    pub fn is_unsupported(&self) -> bool {
        let Self::Input(ConsoleError::Transport(error)) = self else { return false };
        let none = Some(Errno::ENOTTY as i32);
        error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == none
    }
}

/// A borrowed transport.
#[derive(Debug)]
pub struct Loan {
    /// Descriptor that the borrower reads and writes.
    pub end: OwnedFd,
    /// Number of the service's newest log file.
    pub file: u64,
    /// Length of that file in bytes; it holds no byte that `end` delivers.
    pub offset: u64,
    /// Returns the loan with the number of bytes read from `end`. Dropping it without a number
    /// reports that the borrower died.
    pub back: oneshot::Sender<u64>,
}

/// Request for a loan.
pub(super) struct LoanRequest {
    pub(super) by: String,
    pub(super) reply: oneshot::Sender<Result<Loan, CaptureError>>,
}

/// Request to close a transport for another program.
pub(super) struct ReleaseRequest {
    pub(super) by: String,
    /// Answered when the transport is closed.
    pub(super) reply: oneshot::Sender<Result<(), CaptureError>>,
    /// Resolves when the transport may be opened again.
    pub(super) until: oneshot::Receiver<()>,
}

pub(super) struct WriterRequest {
    pub(super) by: String,
    pub(super) take: bool,
    pub(super) reply: oneshot::Sender<Result<InputWriter, CaptureError>>,
}

pub(super) enum Input {
    Send(Vec<u8>),
    Line(LineControl),
}

pub(super) enum CaptureOrder {
    Lend(LoanRequest),
    Release(ReleaseRequest),
    InputWriter(WriterRequest),
    Input {
        writer: u64,
        input: Input,
        reply: oneshot::Sender<Result<(), CaptureError>>,
    },
    /// Sets a line without the right to send.
    Line {
        what: LineControl,
        reply: oneshot::Sender<Result<(), CaptureError>>,
    },
    /// Changes the transport, the speed or the limits.
    Change(Box<CaptureSpec>),
    /// Retries a transport that has ended for good.
    Again,
    Stop,
}

/// Exclusive right to send on a console; dropping it releases the right.
#[derive(Debug)]
pub struct InputWriter {
    pub(super) id: u64,
    pub(super) orders: mpsc::Sender<CaptureOrder>,
    pub(super) taken: oneshot::Receiver<String>,
}

impl InputWriter {
    /// Sends bytes; resolves when the transport has accepted all of them. Dropping the future
    /// discards those that were not yet accepted.
    ///
    /// # Errors
    /// Some bytes were not sent.
    pub fn send(&self, bytes: Vec<u8>) -> BoxFuture<'static, Result<(), CaptureError>> {
        self.input(Input::Send(bytes))
    }

    /// Sends a break or sets a modem line.
    ///
    /// # Errors
    /// The line was not changed.
    pub fn control(&self, what: LineControl) -> BoxFuture<'static, Result<(), CaptureError>> {
        self.input(Input::Line(what))
    }

    fn input(&self, input: Input) -> BoxFuture<'static, Result<(), CaptureError>> {
        let (reply, answer) = oneshot::channel();
        let (orders, order) =
            (self.orders.clone(), CaptureOrder::Input { writer: self.id, input, reply });
        Box::pin(async move {
            orders.send(order).await.map_err(|_| CaptureError::Ending)?;
            answer.await.map_err(|_| CaptureError::Ending)?
        })
    }

    /// Waits until another user takes over input and returns its name; none if the capture service
    /// shuts down. Cancel-safe.
    pub async fn taken(&mut self) -> Option<String> {
        (&mut self.taken).await.ok()
    }
}

/// Handle to a captured console. Cheap to clone; may outlive the console.
#[derive(Debug, Clone)]
pub struct CaptureHandle {
    pub(super) orders: mpsc::Sender<CaptureOrder>,
    pub(super) status: watch::Receiver<CaptureStatus>,
}

impl CaptureHandle {
    /// Borrows the transport once it is present and free. `by` names the borrower. Dropping the
    /// future leaves the queue.
    ///
    /// # Errors
    /// The transport cannot be lent, or the capture service is shutting down.
    pub async fn lend(&self, by: String) -> Result<Loan, CaptureError> {
        let (reply, answer) = oneshot::channel();
        self.order(CaptureOrder::Lend(LoanRequest { by, reply })).await?;
        answer.await.map_err(|_| CaptureError::Ending)?
    }

    /// Closes the transport until the returned sender is dropped, so that another program can open
    /// its port.
    ///
    /// # Errors
    /// The capture service is shutting down.
    pub async fn release_port(&self, by: String) -> Result<oneshot::Sender<()>, CaptureError> {
        let ((reply, answer), (held, until)) = (oneshot::channel(), oneshot::channel());
        self.order(CaptureOrder::Release(ReleaseRequest { by, reply, until })).await?;
        answer.await.map_err(|_| CaptureError::Ending)??;
        Ok(held)
    }

    /// Requests the right to send. A run that has borrowed the transport has that right too, and
    /// keeps it.
    ///
    /// # Errors
    /// Another user has it and `take` is false, or the transport is absent.
    pub async fn writer(&self, by: String, take: bool) -> Result<InputWriter, CaptureError> {
        let (reply, answer) = oneshot::channel();
        self.order(CaptureOrder::InputWriter(WriterRequest { by, take, reply })).await?;
        answer.await.map_err(|_| CaptureError::Ending)?
    }

    /// Sets a modem line, also where another user has the right to send.
    ///
    /// # Errors
    /// The transport is not read here now, has no such line, or the line was not set.
    pub async fn line(&self, what: LineControl) -> Result<(), CaptureError> {
        let (reply, answer) = oneshot::channel();
        self.order(CaptureOrder::Line { what, reply }).await?;
        answer.await.map_err(|_| CaptureError::Ending)?
    }

    /// Returns the console's status, to read or to wait on.
    pub fn status(&self) -> watch::Receiver<CaptureStatus> {
        self.status.clone()
    }

    /// Returns the console's name.
    pub fn console(&self) -> ConsoleName {
        self.status.borrow().console.clone()
    }

    pub(super) async fn order(&self, order: CaptureOrder) -> Result<(), CaptureError> {
        self.orders.send(order).await.map_err(|_| CaptureError::Ending)
    }
}
