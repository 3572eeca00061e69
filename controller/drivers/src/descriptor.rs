//! Non-blocking reads and writes of a descriptor, for transports that are one.
//!
//! # Design
//! An event-driven runtime remembers that a descriptor had nothing, and believes it until
//! it next asks the system. A transport must not: "nothing there" decides where one boot's
//! output ends. So each call asks the descriptor first and waits only when it says no.
//!
//! A runtime is woken by each byte that arrives at a descriptor that it waits for, whether somebody reads
//! or not. So who reads again after a pause has it wait for nothing meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{read, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that never blocks.
#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: Arc<OwnedFd>,
    interest: Interest,
    /// The runtime's wait for it; none while nothing waits.
    events: Option<AsyncFd<Arc<OwnedFd>>>,
}

impl Descriptor {
    /// Takes a descriptor over. Call within a tokio runtime that has I/O enabled.
    pub(crate) fn new(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(fd.as_fd(), FcntlArg::F_GETFL)?);
        if !flags.contains(OFlag::O_NONBLOCK) {
            fcntl(fd.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        }
        let mut descriptor = Self { fd: Arc::new(fd), interest, events: None };
        descriptor.events()?;
        Ok(descriptor)
    }

    /// Has nothing wait for it until it is read or written again.
    pub(crate) fn rest(&mut self) {
        self.events = None;
    }

    fn events(&mut self) -> io::Result<&AsyncFd<Arc<OwnedFd>>> {
        let events = match self.events.take() {
            Some(events) => events,
            #[expect(
                deprecated,
                reason = "only types that may lie about their descriptor need more"
            )]
            None => AsyncFd::with_interest(Arc::clone(&self.fd), self.interest)?,
        };
        Ok(self.events.insert(events))
    }

    /// Returns the descriptor, to ask the system about it.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns another descriptor of the same thing, for the one that goes on with it.
    pub(crate) fn copy(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Reads what is there; `Pending` means that there was nothing at this very moment.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match read(&self.fd, buf) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
            // What arrives between the read and this is met by the read after it.
            ready!(self.events()?.poll_read_ready(cx))?.clear_ready();
        }
    }

    /// Writes some of the bytes.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match write(&self.fd, bytes) {
                Ok(n) => return Poll::Ready(Ok(n)),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
            ready!(self.events()?.poll_write_ready(cx))?.clear_ready();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::time::Duration;

    use nix::unistd::pipe;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn a_descriptor_at_rest_wakes_no_reader_and_loses_nothing() {
        let (near, far) = pipe().unwrap();
        let mut pipe = Descriptor::new(near, Interest::READABLE).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut room = [0; 8];
        let mut times = Vec::new();
        for rests in [false, true, false] {
            assert!(pipe.poll_read(&mut context, &mut room).is_pending());
            if rests {
                pipe.rest();
            }
            write(&far, b"ab").unwrap();
            // The runtime asks the system for events before a timer of its fires.
            tokio::time::sleep(Duration::from_millis(1)).await;
            times.push(woken.0.swap(0, Ordering::SeqCst));
            assert!(matches!(pipe.poll_read(&mut context, &mut room), Poll::Ready(Ok(2))));
        }
        assert_eq!(times, [1, 0, 1]);
    }
}
