//! A client's connection: buffered both ways, and interruptible.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use gdbstub::conn::Connection;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::socket::{GdbListener, GdbStream};

/// How much is sent in one write.
const CHUNK: usize = 16 * 1024;

/// What comes next on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GdbInput {
    /// A byte of the client.
    Byte(u8),
    /// Nothing in the time given.
    Nothing,
    /// The client is gone.
    Closed,
    /// The server shall end.
    Stop,
}

/// A connection. While it lasts, it turns other clients away.
pub(super) struct GdbConnection<'a> {
    stream: GdbStream,
    listener: &'a GdbListener,
    stop: &'a UnixStream,
    inbox: [u8; 4096],
    unread: std::ops::Range<usize>,
    outbox: Vec<u8>,
}

impl<'a> GdbConnection<'a> {
    pub(super) fn new(
        stream: GdbStream,
        listener: &'a GdbListener,
        stop: &'a UnixStream,
    ) -> io::Result<Self> {
        stream.prepare()?;
        Ok(Self { stream, listener, stop, inbox: [0; 4096], unread: 0..0, outbox: Vec::new() })
    }

    /// Waits for a byte: for ever without a limit.
    pub(super) fn next(&mut self, timeout: Option<Duration>) -> GdbInput {
        if let Some(at) = self.unread.next() {
            return GdbInput::Byte(self.inbox[at]);
        }
        let timeout = match timeout {
            None => PollTimeout::NONE,
            Some(limit) => PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX),
        };
        loop {
            let (client, other, stop) = match self.poll(timeout) {
                Ok(ready) => ready,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => return GdbInput::Closed,
            };
            if stop {
                return GdbInput::Stop;
            }
            // First, because a client that has left makes room for the one that comes.
            if client {
                break;
            }
            if other {
                // It learns at once that it cannot be served.
                drop(self.listener.accept());
            }
            if timeout.is_some() {
                return GdbInput::Nothing;
            }
        }
        match self.stream.read(&mut self.inbox) {
            Ok(0) | Err(_) => GdbInput::Closed,
            Ok(count) => {
                self.unread = 1..count;
                GdbInput::Byte(self.inbox[0])
            }
        }
    }
}

impl GdbConnection<'_> {
    /// Tells which of client, listener and stop have something to say.
    fn poll(&self, timeout: PollTimeout) -> nix::Result<(bool, bool, bool)> {
        let mut polled = [
            PollFd::new(self.stream.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.stop.as_fd(), PollFlags::POLLIN),
        ];
        poll(&mut polled, timeout)?;
        let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
        Ok((ready(&polled[0]), ready(&polled[1]), ready(&polled[2])))
    }
}

impl Connection for GdbConnection<'_> {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.write_all(&[byte])
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.outbox.extend(bytes);
        if self.outbox.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.outbox);
        self.outbox.clear();
        sent
    }
}
