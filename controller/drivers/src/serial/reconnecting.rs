//! A transport that outlasts its port: one that goes away is opened again.
//!
//! # Design
//! Adapters reset, cables move, servers restart; a run need not end for it. But what a target
//! prints meanwhile is lost, and the amount is unknown. So the transport tells of each loss and
//! return ([`TransportEvent`]), the log records both, and the judge of the results reads them.
//! Nothing is retried for ever: a loss ends the transport when its time is over, and a port that
//! comes back only to go again does not get new time. A tty that is named by a number is not waited
//! for at all, because the kernel gives the number to the next device.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use jig_model::chain;
use jig_model::protocol::{BoxFuture, Handing, LineControl, Transport, TransportEvent};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::error::SerialError;
use super::port::SerialPort;

/// How long to wait between two tries, at first and at most: a replugged adapter is back
/// within a second, and a try costs next to nothing.
const PAUSE: Duration = Duration::from_millis(20);
const LONG_PAUSE: Duration = Duration::from_millis(500);

/// How long a port has to stay before its next loss is another one. A server that lets one in
/// only to say that the port is taken hangs up at once.
const STEADY: Duration = Duration::from_secs(2);

type Opening = BoxFuture<'static, Result<Box<dyn Transport>, SerialError>>;

enum ReconnectState {
    Up {
        transport: Box<dyn Transport>,
        since: Instant,
    },
    Down(Opening),
    /// For good, in these words.
    Gone(String),
}

/// A transport to a serial port that may go away for a while.
pub struct ReconnectingTransport {
    port: SerialPort,
    timeout: Duration,
    state: ReconnectState,
    /// What comes back under the port's name is the same port.
    returns: bool,
    /// When the time of the loss under way is over.
    deadline: Option<Instant>,
    /// How long to wait before a port is opened that did not stay.
    pause: Duration,
    event: Option<TransportEvent>,
}

impl std::fmt::Debug for ReconnectingTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReconnectingTransport").field("port", &self.port).finish_non_exhaustive()
    }
}

impl ReconnectingTransport {
    /// Opens a port, waiting for one that is not there yet; `timeout` bounds this wait and
    /// that for its return after each loss. Call within a tokio runtime.
    ///
    /// # Errors
    /// The port did not come in time, is not free, or not as it should be.
    pub async fn open(port: SerialPort, timeout: Duration) -> Result<Self, SerialError> {
        let first = tokio::time::timeout(timeout, port.open()).await;
        let transport = match first {
            Ok(Ok(transport)) => transport,
            Ok(Err(error)) if !error.may_pass() => return Err(error),
            Ok(Err(error)) => {
                let why = chain(&error);
                tracing::warn!(port = port.address(), why, ?timeout, "waiting for a serial port");
                let deadline = Instant::now() + timeout;
                until_open(port.clone(), (PAUSE, deadline), timeout, false).await?
            }
            Err(_) => {
                let address = port.address().to_owned();
                return Err(SerialError::Late { address, timeout, source: None });
            }
        };
        Ok(Self::over(transport, port, timeout))
    }

    /// Opens a port that is there; only its return after a loss is waited for.
    ///
    /// # Errors
    /// The port is not there, has not answered `at_once`, is not free, or not as it should be.
    pub async fn open_now(
        port: SerialPort,
        at_once: Duration,
        timeout: Duration,
    ) -> Result<Self, SerialError> {
        let Ok(opened) = tokio::time::timeout(at_once, port.open()).await else {
            let address = port.address().to_owned();
            return Err(SerialError::Late { address, timeout: at_once, source: None });
        };
        Ok(Self::over(opened?, port, timeout))
    }

    fn over(transport: Box<dyn Transport>, port: SerialPort, timeout: Duration) -> Self {
        let state = ReconnectState::Up { transport, since: Instant::now() };
        let returns = port.keeps_its_name();
        Self { port, timeout, state, returns, deadline: None, pause: Duration::ZERO, event: None }
    }

    fn lose(&mut self, why: String) {
        if !self.returns {
            let hint = "not waited for: its name may come back with another device behind it; \
                        use one of /dev/serial/by-id/";
            self.state = ReconnectState::Gone(format!("{why} ({hint})"));
            return;
        }
        let now = Instant::now();
        let steady = match &self.state {
            ReconnectState::Up { since, .. } => now.duration_since(*since) >= STEADY,
            ReconnectState::Down(_) | ReconnectState::Gone(_) => false,
        };
        let deadline = match self.deadline.filter(|_| !steady) {
            Some(deadline) => {
                self.pause = (self.pause * 2).clamp(PAUSE, LONG_PAUSE);
                deadline
            }
            None => {
                self.pause = Duration::ZERO;
                now + self.timeout
            }
        };
        self.deadline = Some(deadline);
        tracing::warn!(port = self.port.address(), why, "a serial port is lost; waiting for it");
        // The old transport is dropped first: it holds the port's lock.
        self.state = ReconnectState::Gone("comes back only to go".to_owned());
        if now < deadline {
            let when = (self.pause, deadline);
            let opening = until_open(self.port.clone(), when, self.timeout, true);
            self.state = ReconnectState::Down(Box::pin(opening));
        }
        self.event = Some(TransportEvent::Lost(format!("{} {why}", self.port.address())));
    }

    /// Moves a port that is away on; ready once it is up again or gone for good.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let ReconnectState::Down(opening) = &mut self.state else { return Poll::Ready(()) };
        match ready!(opening.as_mut().poll(cx)) {
            Ok(transport) => {
                tracing::info!(port = self.port.address(), "a serial port is back");
                self.state = ReconnectState::Up { transport, since: Instant::now() };
                self.event = Some(TransportEvent::Back);
            }
            Err(error) => {
                self.state = ReconnectState::Gone(format!("does not come back: {}", chain(&error)));
            }
        }
        Poll::Ready(())
    }

    fn gone(&self, why: &str) -> io::Error {
        let address = self.port.address();
        io::Error::new(io::ErrorKind::NotConnected, format!("{address} {why}"))
    }
}

impl Transport for ReconnectingTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if self.event.is_some() {
                // To be asked for first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match &mut self.state {
                ReconnectState::Up { transport, .. } => {
                    match ready!(transport.poll_read(cx, buf)) {
                        Ok(count) if count > 0 || buf.is_empty() => return Poll::Ready(Ok(count)),
                        Ok(_) => self.lose("has hung up".to_owned()),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => self.lose(format!("failed: {error}")),
                    }
                }
                ReconnectState::Down(_) => ready!(self.poll_up(cx)),
                ReconnectState::Gone(why) => {
                    let why = why.clone();
                    return Poll::Ready(Err(self.gone(&why)));
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match &mut self.state {
                // That it is back is told before anything is sent.
                ReconnectState::Up { .. } if self.event.is_some() => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                ReconnectState::Up { transport, .. } => {
                    match ready!(transport.poll_write(cx, bytes)) {
                        Ok(count) if count > 0 || bytes.is_empty() => {
                            return Poll::Ready(Ok(count));
                        }
                        Ok(_) => self.lose("takes no bytes".to_owned()),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => self.lose(format!("failed: {error}")),
                    }
                }
                ReconnectState::Down(_) if self.event.is_some() => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                ReconnectState::Down(_) => ready!(self.poll_up(cx)),
                ReconnectState::Gone(why) => {
                    let why = why.clone();
                    return Poll::Ready(Err(self.gone(&why)));
                }
            }
        }
    }

    fn event(&mut self) -> Option<TransportEvent> {
        match (&mut self.event, &mut self.state) {
            (None, ReconnectState::Up { transport, .. }) => transport.event(),
            (event, _) => event.take(),
        }
    }

    fn handing(&self) -> io::Result<Handing> {
        match (&self.event, &self.state) {
            (None, ReconnectState::Up { transport, .. }) => transport.handing(),
            _ => Ok(Handing::Away),
        }
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        match &mut self.state {
            ReconnectState::Up { transport, .. } => transport.control(what),
            ReconnectState::Down(_) | ReconnectState::Gone(_) => {
                let error = self.gone("is not there");
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}

/// Tries until a port is open, or the time is over, or waiting is pointless.
///
/// The first try comes after a pause. A device that was not there before may belong to root
/// for a moment, until it gets the rights of its kind. `steal_passes` says that a port held by
/// another process may be free in a moment: a program that looks at every new device, such as a
/// modem manager, takes a fresh one for a while.
async fn until_open(
    port: SerialPort,
    (first, deadline): (Duration, Instant),
    timeout: Duration,
    steal_passes: bool,
) -> Result<Box<dyn Transport>, SerialError> {
    let (mut pause, mut last) = (PAUSE, None);
    sleep_until(deadline.min(Instant::now() + first)).await;
    loop {
        match timeout_at(deadline, port.open()).await {
            Ok(Ok(transport)) => return Ok(transport),
            Ok(Err(error))
                if error.may_pass() || error.is_denied() || (steal_passes && error.is_taken()) =>
            {
                last = Some(Box::new(error));
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {}
        }
        let now = Instant::now();
        if now >= deadline {
            let address = port.address().to_owned();
            return Err(SerialError::Late { address, timeout, source: last });
        }
        sleep_until(deadline.min(now + pause)).await;
        pause = (pause * 2).min(LONG_PAUSE);
    }
}
