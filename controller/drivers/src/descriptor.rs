//! Non-blocking reads and writes of a descriptor, for transports that are one.
//!
//! # Design
//! An event-driven runtime remembers that a descriptor had nothing, and believes it until
//! it next asks the system. A transport must not: "nothing there" decides where one boot's
//! output ends. So each call asks the descriptor first and waits only when it says no.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{read, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that never blocks.
#[derive(Debug)]
pub(crate) struct Descriptor(AsyncFd<OwnedFd>);

impl Descriptor {
    /// Takes a descriptor over. Call within a tokio runtime that has I/O enabled.
    pub(crate) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(fd.as_fd(), FcntlArg::F_GETFL)?);
        if !flags.contains(OFlag::O_NONBLOCK) {
            fcntl(fd.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        #[expect(deprecated, reason = "only types that may lie about their descriptor need more")]
        Ok(Self(AsyncFd::with_interest(fd, interest)?))
    }

    /// Returns the descriptor, to ask the system about it.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }

    /// Returns another descriptor of the same thing, for the one that goes on with it.
    pub(crate) fn copy(&self) -> io::Result<OwnedFd> {
        self.0.get_ref().try_clone()
    }

    /// Reads what is there; `Pending` means that there was nothing at this very moment.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match read(self.0.get_ref(), buf) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
            // What arrives between the read and this is met by the read after it.
            ready!(self.0.poll_read_ready(cx))?.clear_ready();
        }
    }

    /// Writes some of the bytes.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match write(self.0.get_ref(), bytes) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
            ready!(self.0.poll_write_ready(cx))?.clear_ready();
        }
    }
}
