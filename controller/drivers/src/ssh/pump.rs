//! Carries bytes between an SSH channel and the caller's pipe until one of both ends.
//!
//! # Design
//! One loop on the session's thread. Each buffer is bounded: a caller that does not read stops the
//! reading of output, then the channel's window stops the far side. Standard error is always read,
//! because it shares that window.
//!
//! libssh2 may have sent half a packet when it asks to be called again. Calls of another kind are
//! then put off by it, and each kind is tried again in each turn, so none waits for ever. A question
//! for an answer (keepalive) is the exception: it must not be sent in halves, so it waits until the
//! transport takes bytes.
//!
//! A pipe whose halves are both shut looks as if the caller had closed it. Whether there is still a
//! caller, who waits for the end, is then known by the channel of that end.
//!
//! A far side that has said nothing for a while is asked for an answer. After a question the thread
//! waits before it reads, or libssh2 would take the answer unseen. libssh2 keeps each answer in its
//! memory (about 100 bytes), so a side that sends data is not asked.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::PollFlags;
use ssh2::Channel;
use tokio::sync::watch;

use super::end::{SshEnd, SshEnding, Tail};
use super::error::SshError;
use super::link::{Link, StepError};
use super::options::Keepalive;

/// Bytes that may wait in each direction: two of the largest packets of a channel.
const MOST: usize = 64 << 10;

/// How often a caller is looked for whose pipe has both halves shut.
const LOOK: Duration = Duration::from_millis(100);

/// What an open channel did until its end.
pub(super) struct Pumped {
    pub(super) outcome: Result<SshEnding, StepError>,
    pub(super) stderr: Tail,
    pub(super) received: u64,
    /// Output that the caller has not yet taken.
    pub(super) output: ByteQueue,
}

/// The state of the loop.
pub(super) struct Pump<'a> {
    link: &'a Link,
    channel: &'a mut Channel,
    keepalive: Option<Keepalive>,
    end: &'a watch::Sender<Option<SshEnd>>,
    input: ByteQueue,
    output: ByteQueue,
    stderr: Tail,
    received: u64,
    /// The caller sends no more.
    input_ended: bool,
    /// The far side knows that.
    eof_sent: bool,
    /// The far side sends no more, and the caller knows that.
    output_ended: bool,
    /// When something was heard or asked last.
    quiet_since: Instant,
    /// Questions since something was heard.
    unanswered: u32,
}

impl<'a> Pump<'a> {
    pub(super) fn new(
        link: &'a Link,
        channel: &'a mut Channel,
        keepalive: Option<Keepalive>,
        end: &'a watch::Sender<Option<SshEnd>>,
    ) -> Self {
        Self {
            link,
            channel,
            keepalive,
            end,
            input: ByteQueue::new(),
            output: ByteQueue::new(),
            stderr: Tail::default(),
            received: 0,
            input_ended: false,
            eof_sent: false,
            output_ended: false,
            quiet_since: Instant::now(),
            unanswered: 0,
        }
    }

    /// Carries bytes until the channel is closed, the connection is lost, or the caller is gone.
    pub(super) fn run(mut self) -> Pumped {
        let outcome = loop {
            match self.turn() {
                Ok(None) => {}
                Ok(Some(ending)) => break Ok(ending),
                Err(error) => break Err(error),
            }
        };
        let Self { stderr, received, output, .. } = self;
        Pumped { outcome, stderr, received, output }
    }

    /// Does all that can be done now, or waits until there is something to do.
    fn turn(&mut self) -> Result<Option<SshEnding>, StepError> {
        let mut moved = self.read_stderr()?;
        moved |= self.read_output()?;
        if self.channel.eof() && self.is_closed()? {
            return Ok(Some(self.ending()));
        }
        moved |= self.write_input()?;
        moved |= self.exchange()?;
        if !moved {
            self.wait()?;
        }
        Ok(None)
    }

    fn read_stderr(&mut self) -> Result<bool, StepError> {
        let mut some = [0; 4 << 10];
        let count = tried(self.channel.stderr().read(&mut some))?;
        self.stderr.add(&some[..count]);
        Ok(self.heard(count > 0))
    }

    fn read_output(&mut self) -> Result<bool, StepError> {
        let room = self.output.room();
        if room.is_empty() {
            return Ok(false);
        }
        let count = tried(self.channel.read(room))?;
        self.output.filled(count);
        self.received += u64::try_from(count).unwrap_or_default();
        Ok(self.heard(count > 0))
    }

    fn write_input(&mut self) -> Result<bool, StepError> {
        if !self.input.is_empty() {
            let count = tried(self.channel.write(self.input.bytes()))?;
            self.input.taken(count);
            return Ok(count > 0);
        }
        if self.input_ended && !self.eof_sent {
            self.eof_sent = self.step_done(|channel| channel.send_eof())?;
            return Ok(self.eof_sent);
        }
        Ok(false)
    }

    fn is_closed(&mut self) -> Result<bool, StepError> {
        self.step_done(|channel| channel.wait_close())
    }

    fn step_done(
        &mut self,
        step: impl FnOnce(&mut Channel) -> Result<(), ssh2::Error>,
    ) -> Result<bool, StepError> {
        match step(self.channel).map_err(io::Error::from) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(StepError::of(error)),
        }
    }

    fn ending(&self) -> SshEnding {
        let signal = self.channel.exit_signal().ok().and_then(|signal| signal.exit_signal);
        match signal {
            Some(signal) => SshEnding::Signalled(format!("SIG{signal}")),
            None => SshEnding::Exited(self.channel.exit_status().unwrap_or_default()),
        }
    }

    /// Takes what the caller sends and gives it what has come.
    fn exchange(&mut self) -> Result<bool, StepError> {
        let mut local = &self.link.local;
        let mut moved = false;
        if !self.input_ended && !self.input.room().is_empty() {
            match local.read(self.input.room()) {
                Ok(0) => (self.input_ended, moved) = (true, true),
                Ok(count) => {
                    self.input.filled(count);
                    moved = true;
                }
                Err(error) if is_later(&error) => {}
                Err(_) => return Err(StepError::Abandoned),
            }
        }
        if !self.output.is_empty() {
            match local.write(self.output.bytes()) {
                Ok(count) => {
                    self.output.taken(count);
                    moved |= count > 0;
                }
                Err(error) if is_later(&error) => {}
                Err(_) => return Err(StepError::Abandoned),
            }
        }
        // A program may close its output and go on.
        if self.output.is_empty() && !self.output_ended && self.channel.eof() {
            let _ = local.shutdown(Shutdown::Write);
            (self.output_ended, moved) = (true, true);
        }
        Ok(moved)
    }

    /// Notes that something was heard.
    fn heard(&mut self, is_heard: bool) -> bool {
        if is_heard {
            (self.quiet_since, self.unanswered) = (Instant::now(), 0);
        }
        is_heard
    }

    /// Waits until an end is ready.
    fn wait(&mut self) -> Result<(), StepError> {
        let mut local = PollFlags::empty();
        let can_read = !self.input_ended && !self.input.room().is_empty();
        local.set(PollFlags::POLLIN, can_read);
        local.set(PollFlags::POLLOUT, !self.output.is_empty());
        let is_shut = self.output_ended && !can_read;
        loop {
            if is_shut && self.end.is_closed() {
                return Err(StepError::Abandoned);
            }
            let question = self.keepalive.map(|keepalive| {
                let next = self.quiet_since + keepalive.interval;
                next.saturating_duration_since(Instant::now())
            });
            let look = is_shut.then_some(LOOK);
            let timeout = question.into_iter().chain(look).min();
            let directions = self.link.directions();
            let ready = self.link.wait(directions, (!is_shut).then_some(local), timeout)?;
            // Once the output has ended, it says no more than that the caller sends no more.
            if ready.local.contains(PollFlags::POLLHUP) && !self.output_ended {
                return Err(StepError::Abandoned);
            }
            if self.heard(!ready.transport.is_empty()) || !ready.local.is_empty() {
                return Ok(());
            }
            if let Some(keepalive) = self.keepalive {
                self.keep_alive(keepalive)?;
            }
        }
    }

    /// Asks for an answer if it is time for it.
    fn keep_alive(&mut self, keepalive: Keepalive) -> Result<(), StepError> {
        if self.quiet_since.elapsed() < keepalive.interval {
            return Ok(());
        }
        if self.unanswered >= keepalive.count {
            return Err(StepError::Silent(keepalive.interval * (keepalive.count + 1)));
        }
        self.quiet_since = Instant::now();
        self.unanswered += 1;
        let is_sending = self.link.directions() == PollFlags::POLLOUT;
        let writable = self.link.wait(PollFlags::POLLOUT, None, Some(Duration::ZERO))?;
        // What cannot be sent has no answer, either.
        if writable.transport.contains(PollFlags::POLLOUT) && !is_sending {
            self.link.session.keepalive_send().map_err(StepError::Session)?;
        }
        Ok(())
    }
}

impl StepError {
    fn of(error: io::Error) -> Self {
        match error.downcast::<ssh2::Error>() {
            Ok(error) => Self::Session(error),
            Err(error) => {
                let errno = error.raw_os_error().map(nix::errno::Errno::from_raw);
                Self::System(errno.unwrap_or(nix::errno::Errno::EIO))
            }
        }
    }

    /// Says how a connection was lost.
    pub(super) fn lost(self, at: &str) -> SshError {
        let at = at.to_owned();
        let source = match self {
            Self::Silent(after) => return SshError::Silent { at, after },
            Self::Late => io::ErrorKind::TimedOut.into(),
            Self::Abandoned => io::ErrorKind::BrokenPipe.into(),
            Self::Session(error) => io::Error::other(error),
            Self::System(errno) => errno.into(),
        };
        SshError::Lost { at, source: Arc::new(source) }
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Returns how many bytes were moved; none if the session wants to be asked later.
fn tried(moved: io::Result<usize>) -> Result<usize, StepError> {
    match moved {
        Ok(count) => Ok(count),
        Err(error) if is_later(&error) => Ok(0),
        Err(error) => Err(StepError::of(error)),
    }
}

/// Bytes on their way: filled at one end, taken at the other, never more than a fixed number.
pub(super) struct ByteQueue {
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
}

impl ByteQueue {
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; MOST].into_boxed_slice(), from: 0, to: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.from..self.to]
    }

    pub(super) fn taken(&mut self, count: usize) {
        self.from = (self.from + count).min(self.to);
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Returns the free bytes behind those that wait. Bytes are not moved to make room, because
    /// libssh2 may have to be asked again with those that it was given.
    fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.to..]
    }

    fn filled(&mut self, count: usize) {
        self.to = (self.to + count).min(self.buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_leave_a_queue_as_they_came(steps in proptest::collection::vec((any::<bool>(), 0usize..MOST), 0..40)) {
            let (mut queue, mut next_in, mut next_out) = (ByteQueue::new(), 0u8, 0u8);
            for (is_in, count) in steps {
                if is_in {
                    let room = queue.room();
                    let count = count.min(room.len());
                    for byte in &mut room[..count] {
                        *byte = next_in;
                        next_in = next_in.wrapping_add(1);
                    }
                    queue.filled(count);
                } else {
                    let count = count.min(queue.bytes().len());
                    for &byte in &queue.bytes()[..count] {
                        prop_assert_eq!(byte, next_out);
                        next_out = next_out.wrapping_add(1);
                    }
                    queue.taken(count);
                }
            }
        }
    }
}
