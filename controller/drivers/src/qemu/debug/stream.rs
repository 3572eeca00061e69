//! One channel's socket: bytes in and out, each wait with a limit.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::OwnTimeout;

/// Says why a debug channel is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The emulator closed it: it has ended, or is about to.
    #[error("the emulator closed its {channel} channel")]
    Closed {
        /// `gdb`, `qtest` or `monitor`.
        channel: &'static str,
    },
    /// No answer in time.
    #[error("the emulator's {channel} channel did not answer {what} within {timeout:?}")]
    TimedOut {
        /// `gdb`, `qtest` or `monitor`.
        channel: &'static str,
        /// The command, cut short.
        what: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The emulator refused a command. The channel goes on working.
    #[error("the emulator's {channel} channel refused {what}: {answer}")]
    Refused {
        /// `gdb`, `qtest` or `monitor`.
        channel: &'static str,
        /// The command, cut short.
        what: String,
        /// Its own words, cut short.
        answer: String,
    },
    /// What came back cannot be understood.
    #[error("the emulator's {channel} channel said what cannot be understood: {answer}")]
    Garbled {
        /// `gdb`, `qtest` or `monitor`.
        channel: &'static str,
        /// What it said, cut short.
        answer: String,
    },
    /// The system refused.
    #[error("the emulator's {channel} channel cannot be used")]
    Io {
        /// `gdb`, `qtest` or `monitor`.
        channel: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Most bytes of a command or an answer that an error quotes.
const QUOTED: usize = 60;

/// Quotes the beginning of some bytes.
pub(super) fn quote(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(QUOTED)].escape_ascii().to_string()
}

/// Room for what arrives in one read: most answers have some hundred bytes, a page of
/// memory has a few thousand.
const CHUNK: usize = 16 << 10;

/// How long to look for an answer before sleeping. The emulator gives most within 50 us, and to
/// sleep and be woken takes as long. The processor is not yielded meanwhile: a busy host would
/// give it to others for milliseconds.
const SPIN: Duration = Duration::from_micros(50);

/// A socket with what has arrived and was not taken yet.
pub(super) struct ChannelStream {
    socket: UnixStream,
    name: &'static str,
    buffer: Vec<u8>,
    /// Where in the buffer the next message begins.
    start: usize,
    /// Longest message. The emulator is trusted no further.
    limit: usize,
}

impl ChannelStream {
    pub(super) fn new(
        socket: UnixStream,
        name: &'static str,
        limit: usize,
    ) -> Result<Self, ChannelError> {
        let failed = |source| ChannelError::Io { channel: name, source };
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self { socket, name, buffer: Vec::new(), start: 0, limit })
    }

    /// Returns what has arrived and was not taken.
    pub(super) fn arrived(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Takes bytes off the front.
    pub(super) fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.buffer.len());
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
    }

    /// Waits until more has arrived; false if nothing has in time. One look at the socket
    /// happens even if the time is over.
    pub(super) fn fill(&mut self, timeout: &mut OwnTimeout) -> Result<bool, ChannelError> {
        if self.arrived().len() > self.limit {
            let answer = quote(self.arrived());
            return Err(ChannelError::Garbled { channel: self.name, answer });
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let now = Instant::now();
        let spin_until = now + timeout.slice(now).min(SPIN);
        loop {
            let len = self.buffer.len();
            self.buffer.resize(len + CHUNK, 0);
            let read = self.socket.read(&mut self.buffer[len..]);
            self.buffer.truncate(len + read.as_ref().map_or(0, |&count| count));
            match read {
                Ok(0) => return Err(self.closed()),
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() < spin_until {
                        std::thread::yield_now();
                    } else if !self.ready(PollFlags::POLLIN, timeout)? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Writes all bytes; false if the emulator does not read them in time.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        timeout: &mut OwnTimeout,
    ) -> Result<bool, ChannelError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.ready(PollFlags::POLLOUT, timeout)? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(true)
    }

    fn ready(&self, wanted: PollFlags, timeout: &mut OwnTimeout) -> Result<bool, ChannelError> {
        loop {
            let slice = timeout.slice(Instant::now());
            if slice.is_zero() {
                return Ok(false);
            }
            let mut fds = [PollFd::new(self.socket.as_fd(), wanted)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(slice)), None) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(self.failed(errno.into())),
            }
        }
    }

    fn closed(&self) -> ChannelError {
        ChannelError::Closed { channel: self.name }
    }

    fn failed(&self, source: io::Error) -> ChannelError {
        match source.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                self.closed()
            }
            _ => ChannelError::Io { channel: self.name, source },
        }
    }
}
