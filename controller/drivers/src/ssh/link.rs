//! One SSH session and the thread's two ends: the transport under it, and the pipe to the caller.
//!
//! # Design
//! The session never blocks. Each step is asked for again when the transport is ready, with a limit
//! of time, and ends at once when the caller is gone: its end of the pipe is closed then, which
//! `poll` reports. So nothing else is needed to wake or to cancel the thread.

use std::net::TcpStream;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::linux::net::TcpStreamExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ssh2::{BlockDirections, ErrorCode, Session};

use super::error::SshError;

/// libssh2's code for "ask again": LIBSSH2_ERROR_EAGAIN.
const AGAIN: ErrorCode = ErrorCode::Session(-37);

/// A session with its transport and the caller's pipe.
pub(super) struct Link {
    pub(super) session: Session,
    /// Another descriptor of the transport: the session keeps its own.
    pub(super) transport: OwnedFd,
    pub(super) local: UnixStream,
    /// The transport, where it is a TCP connection.
    tcp: Option<TcpStream>,
    /// Host and port, for messages.
    pub(super) at: String,
}

/// Why a step was not done.
pub(super) enum StepError {
    /// It took too long.
    Late,
    /// The far side has not answered for this time.
    Silent(Duration),
    /// The caller is gone.
    Abandoned,
    /// The session failed.
    Session(ssh2::Error),
    /// The system failed.
    System(Errno),
}

/// What the two ends are ready for.
pub(super) struct Ready {
    pub(super) transport: PollFlags,
    pub(super) local: PollFlags,
}

impl Link {
    /// Makes a session over a transport.
    ///
    /// # Errors
    /// The system or libssh2 has no memory or descriptor left.
    pub(super) fn new(at: &str, transport: OwnedFd, local: UnixStream) -> Result<Self, SshError> {
        let refused = |source| SshError::system(at, "the connection cannot be set up", source);
        let copy = transport.try_clone().map_err(refused)?;
        local.set_nonblocking(true).map_err(refused)?;
        let tcp = transport.try_clone().map(TcpStream::from).map_err(refused)?;
        let tcp = tcp.set_quickack(true).is_ok().then_some(tcp);
        let mut session = Session::new().map_err(|error| refused(error.into()))?;
        session.set_tcp_stream(transport);
        session.set_blocking(false);
        Ok(Self { session, transport: copy, local, tcp, at: at.to_owned() })
    }

    /// Does a step, as often as the session wants to be asked.
    ///
    /// # Errors
    /// It fails, it is not done at `until`, or the caller is gone.
    pub(super) fn complete<T>(
        &self,
        until: Instant,
        mut step: impl FnMut() -> Result<T, ssh2::Error>,
    ) -> Result<T, StepError> {
        loop {
            match step() {
                Ok(done) => return Ok(done),
                Err(error) if error.code() == AGAIN => self.wait_for_transport(until)?,
                Err(error) => return Err(StepError::Session(error)),
            }
        }
    }

    /// Waits until the session can go on.
    pub(super) fn wait_for_transport(&self, until: Instant) -> Result<(), StepError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(StepError::Late);
        }
        let ready = self.wait(self.directions(), Some(PollFlags::empty()), Some(left))?;
        match ready.local.contains(PollFlags::POLLHUP) {
            true => Err(StepError::Abandoned),
            false => Ok(()),
        }
    }

    /// Tells what the session waits for on its transport.
    pub(super) fn directions(&self) -> PollFlags {
        match self.session.block_directions() {
            // While a packet is half sent there is nothing to be gained from reading.
            BlockDirections::Outbound | BlockDirections::Both => PollFlags::POLLOUT,
            BlockDirections::Inbound | BlockDirections::None => PollFlags::POLLIN,
        }
    }

    /// Waits until an end is ready or a time has passed. Without flags for the caller's end it is
    /// not looked at.
    pub(super) fn wait(
        &self,
        transport: PollFlags,
        local: Option<PollFlags>,
        timeout: Option<Duration>,
    ) -> Result<Ready, StepError> {
        // An SSH server without a terminal sends no small packet before the one in front of it is
        // acknowledged. The kernel may put that off by 40 ms, and forgets that it shall not.
        if let Some(tcp) = &self.tcp {
            let _ = tcp.set_quickack(true);
        }
        let mut ends = vec![PollFd::new(self.transport.as_fd(), transport)];
        ends.extend(local.map(|local| PollFd::new(self.local.as_fd(), local)));
        // Rounded up, or the last millisecond would be spent in asking.
        let timeout = match timeout {
            Some(timeout) => {
                let milliseconds = timeout.as_micros().div_ceil(1000);
                PollTimeout::from(u16::try_from(milliseconds).unwrap_or(u16::MAX))
            }
            None => PollTimeout::NONE,
        };
        match poll(&mut ends, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(StepError::System(errno)),
        }
        let seen =
            |end: Option<&PollFd<'_>>| end.and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        Ok(Ready { transport: seen(ends.first()), local: seen(ends.get(1)) })
    }
}
