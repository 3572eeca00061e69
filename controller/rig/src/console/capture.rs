//! The actor that owns a console's transport.
//!
//! # Design
//! One task owns the transport, so reads and writes need no lock and no other reader can take
//! bytes. It takes all bytes available at one wake-up as one chunk, stamps it, and hands it to a
//! disk thread. While chunk follows chunk without a pause it lets a millisecond of output gather
//! ([`ReadPace`]): an emulator that wakes a reader with each byte prints a third as fast on a busy
//! host, and a tenth slower on an idle one. It stops reading only when 16 MiB are queued for the
//! disk, because some emulated machines freeze while their output is not read, and real ports
//! overrun. Beyond that limit it stops, because lost bytes would be worse than a delayed target.
//! After a storage *error* it reads on, and counts the bytes as lost.
//!
//! **Refused here:** opening devices, and deciding when a board boots; the callers do both
//! ([`ConsoleHandle::attach`], [`ConsoleHandle::boundary`]).

use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jig_model::protocol::{Transport, TransportEvent};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::clock::ConsoleClock;
use super::disk::{self, LogState};
use super::handle::{CONTROLS, ConsoleError, ConsoleHandle, ConsoleRequest, WRITES, Write};
use super::log::{GapReason, LogError, LogPaths, LogWriter};
use super::queue::{CHUNK, ChunkQueue, QueueEntry, TransportEnd};
use super::read_pace::{Pace, ReadPace};

/// Most bytes that a drain reads: more than any kernel buffers for a transport, so only a target
/// that keeps printing reaches it.
const DRAIN_LIMIT: usize = 64 << 20;

/// Most bytes that are still read from a transport that is given back: what a kernel can have
/// buffered at that moment (a tty 4 to 64 KiB, a socket some 6 MiB at most). The next owner reads
/// on, so a flood is no reason to wait longer.
const RELEASE_LIMIT: usize = 8 << 20;

/// A running capture. Dropping it stops the capture in the background as
/// [`close`](Self::close) does in the open.
#[derive(Debug)]
pub struct Console {
    handle: ConsoleHandle,
    /// Dropped to stop the actor.
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    disk: Option<std::thread::JoinHandle<()>>,
}

impl Console {
    /// Creates the log and starts capturing; a transport is attached later. Call within a tokio
    /// runtime.
    ///
    /// # Errors
    /// Says which file cannot be created; an existing log is never overwritten.
    pub fn start(paths: &LogPaths, clock: Arc<dyn ConsoleClock>) -> Result<Self, LogError> {
        Self::over(LogWriter::create(paths)?, &paths.raw, clock)
    }

    pub(super) fn over(
        log: LogWriter,
        raw: &Path,
        clock: Arc<dyn ConsoleClock>,
    ) -> Result<Self, LogError> {
        let queue = Arc::new(ChunkQueue::new(Arc::clone(&clock)));
        let (state_out, state) = watch::channel(LogState::default());
        let disk = std::thread::Builder::new()
            .name("console-disk".to_owned())
            .spawn({
                let (queue, clock) = (Arc::clone(&queue), Arc::clone(&clock));
                move || {
                    disk::run(&queue, log, clock.as_ref(), &state_out);
                    // Wakes waiting tasks before the guard of the queue is dropped.
                    drop(state_out);
                    drop(queue);
                }
            })
            .map_err(|source| LogError::Create { path: raw.to_owned(), source })?;
        let (controls, controls_in) = mpsc::channel(CONTROLS);
        let (writes, writes_in) = mpsc::channel(WRITES);
        let (stop, stopped) = oneshot::channel();
        let actor = ConsoleActor {
            transport: None,
            controls: controls_in,
            writes: writes_in,
            writing: None,
            stopped,
            queue,
            clock,
            buf: vec![0; CHUNK],
            pace: ReadPace::default(),
        };
        let task = tokio::spawn(actor.run());
        let handle =
            ConsoleHandle { controls, writes, state, raw: raw.into(), handed: Arc::default() };
        Ok(Self { handle, stop: Some(stop), task, disk: Some(disk) })
    }

    /// Returns a handle.
    pub fn handle(&self) -> &ConsoleHandle {
        &self.handle
    }

    /// Captures what the transport still holds, closes it, and syncs the log.
    ///
    /// Returns the final state of the log, with any storage error.
    pub async fn close(self) -> LogState {
        self.end().await.1.done().await
    }

    /// Captures what the transport still holds and closes it. The log is complete then, and is
    /// synced in the background: a disk takes some 10 ms for each of its two files.
    ///
    /// Returns the state of the log before that.
    pub async fn end(mut self) -> (LogState, Syncing) {
        drop(self.stop.take());
        if (&mut self.task).await.is_err() {
            tracing::error!("console capture ended early");
        }
        let mut state = self.handle.state.clone();
        // An error means that the thread has ended without a last state.
        if state.wait_for(|s| s.closed).await.is_err() {
            tracing::error!("console disk thread ended early");
        }
        let now = state.borrow().clone();
        (now, Syncing { state, disk: self.disk.take() })
    }
}

/// A log that is being made durable. Dropping it leaves that to the background.
#[derive(Debug)]
pub struct Syncing {
    state: watch::Receiver<LogState>,
    disk: Option<std::thread::JoinHandle<()>>,
}

impl Syncing {
    /// Waits until the log is on disk, or that has failed, which the state reports.
    pub async fn done(mut self) -> LogState {
        // The disk thread drops its end of the state as the last thing it does.
        while self.state.changed().await.is_ok() {}
        if let Some(disk) = self.disk.take()
            && disk.join().is_err()
        {
            tracing::error!("console disk thread panicked");
        }
        self.state.borrow().clone()
    }
}

struct ConsoleActor {
    transport: Option<Box<dyn Transport>>,
    controls: mpsc::Receiver<ConsoleRequest>,
    writes: mpsc::Receiver<Write>,
    writing: Option<Write>,
    stopped: oneshot::Receiver<()>,
    queue: Arc<ChunkQueue>,
    clock: Arc<dyn ConsoleClock>,
    buf: Vec<u8>,
    pace: ReadPace,
}

enum ActorStep {
    Moved,
    Asked(ConsoleRequest),
    Stopped,
}

impl ConsoleActor {
    async fn run(mut self) {
        loop {
            self.queue.room().await;
            match poll_fn(|cx| self.poll_step(cx)).await {
                ActorStep::Moved => {}
                ActorStep::Asked(control) => self.obey(control).await,
                ActorStep::Stopped => break,
            }
            // A flood must not keep the runtime's thread.
            tokio::task::yield_now().await;
        }
        // Requests from before the stop are still carried out, in order.
        while let Ok(control) = self.controls.try_recv() {
            self.obey(control).await;
        }
        self.drain(DRAIN_LIMIT).await;
        self.detach(TransportEnd::Closed);
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<ActorStep> {
        if Pin::new(&mut self.stopped).poll(cx).is_ready() {
            return Poll::Ready(ActorStep::Stopped);
        }
        if let Poll::Ready(Some(control)) = self.controls.poll_recv(cx) {
            return Poll::Ready(ActorStep::Asked(control));
        }
        // Both, so that neither a flood nor a slow reader at the other end starves one.
        let wrote = self.poll_write(cx).is_ready();
        let due = self.pace.poll_due(cx).is_ready();
        if due && self.poll_read(cx).is_ready() || wrote {
            return Poll::Ready(ActorStep::Moved);
        }
        Poll::Pending
    }

    async fn obey(&mut self, control: ConsoleRequest) {
        match control {
            ConsoleRequest::Attach(transport, first, event) => {
                if self.transport.is_some() {
                    self.drain(DRAIN_LIMIT).await;
                    self.detach(TransportEnd::Closed);
                }
                self.transport = Some(transport);
                self.queue.push(QueueEntry::Attached(self.clock.stamp()));
                if !first.is_empty() {
                    self.queue.push(QueueEntry::bytes(self.clock.stamp(), first));
                }
                if let Some(event) = event {
                    self.hear(event);
                }
            }
            ConsoleRequest::Release(given) => {
                self.drain(RELEASE_LIMIT).await;
                if let Some(write) = self.writing.take() {
                    self.finish(write, Err(ConsoleError::Detached));
                }
                let transport = self.transport.take();
                if transport.is_some() {
                    self.queue.push(QueueEntry::Ended(self.clock.stamp(), TransportEnd::Closed));
                }
                // If the caller is gone, the transport is closed here.
                let _ = given.send(transport);
            }
            ConsoleRequest::Line(what, begun) => {
                if let Some(transport) = &mut self.transport {
                    let _ = begun.send(transport.control(what));
                }
            }
            ConsoleRequest::Drain(done) => {
                self.drain(DRAIN_LIMIT).await;
                self.queue.push(QueueEntry::Ack(done));
            }
            ConsoleRequest::Boundary(done) => {
                self.drain(DRAIN_LIMIT).await;
                self.queue.push(QueueEntry::Boot(self.clock.stamp()));
                self.queue.push(QueueEntry::Ack(done));
            }
            ConsoleRequest::Gap(lost, reason) => {
                self.queue.push(QueueEntry::Gap(self.clock.stamp(), lost, reason));
            }
        }
    }

    /// Reads until the transport is empty, which it knows for certain, or has ended.
    async fn drain(&mut self, limit: usize) {
        for _ in 0..limit / CHUNK {
            self.queue.room().await;
            if poll_fn(|cx| Poll::Ready(self.poll_read(cx))).await.is_pending() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Takes one chunk: all there is, up to the buffer's size.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(transport) = &mut self.transport else { return Poll::Pending };
        let (mut filled, mut end, mut told) = (0, None, false);
        while let Some(room) = self.buf.get_mut(filled..).filter(|room| !room.is_empty()) {
            match transport.poll_read(cx, room) {
                Poll::Pending => {
                    let Some(event) = transport.event() else { break };
                    if filled > 0 {
                        let bytes = self.buf[..std::mem::take(&mut filled)].to_vec();
                        self.queue.push(QueueEntry::bytes(self.clock.stamp(), bytes));
                    }
                    self.hear(event);
                    // A transport that has nothing but events must not keep the runtime's thread.
                    told = true;
                    break;
                }
                Poll::Ready(Ok(0)) => end = Some(TransportEnd::Closed),
                Poll::Ready(Ok(n)) => filled += n.min(room.len()),
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => {
                    end = Some(TransportEnd::Broken(error.to_string().into()))
                }
            }
            if end.is_some() {
                break;
            }
        }
        if filled > 0 {
            self.queue.push(QueueEntry::bytes(self.clock.stamp(), self.buf[..filled].to_vec()));
            if let (Pace::Gather, Some(transport)) = (self.pace.took(filled), &mut self.transport) {
                transport.rest();
            }
        }
        let ended = end.is_some();
        if let Some(end) = end {
            self.detach(end);
        }
        if filled > 0 || ended || told { Poll::Ready(()) } else { Poll::Pending }
    }

    fn hear(&self, event: TransportEvent) {
        let stamp = self.clock.stamp();
        self.queue.push(match event {
            TransportEvent::Lost(why) => QueueEntry::Lost(stamp, why),
            TransportEvent::Back => QueueEntry::Back(stamp),
            TransportEvent::Overrun(lost) => QueueEntry::Gap(stamp, lost, GapReason::Overrun),
            TransportEvent::Garbled(count) => QueueEntry::Garbled(stamp, count),
            TransportEvent::Shared(with) => QueueEntry::Shared(stamp, with),
        });
    }

    fn detach(&mut self, end: TransportEnd) {
        if self.transport.take().is_some() {
            self.queue.push(QueueEntry::Ended(self.clock.stamp(), end));
        }
        if let Some(write) = self.writing.take() {
            self.finish(write, Err(ConsoleError::Detached));
        }
    }

    /// Moves the current write on by one step, or begins the next one.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.writing.is_none() {
            let Poll::Ready(Some(write)) = self.writes.poll_recv(cx) else {
                return Poll::Pending;
            };
            self.writing = Some(write);
        }
        let Some(write) = &mut self.writing else { return Poll::Pending };
        let rest = &write.bytes[write.at..];
        let outcome = if write.done.poll_closed(cx).is_ready() || rest.is_empty() {
            Ok(())
        } else if let Some(transport) = &mut self.transport {
            match transport.poll_write(cx, rest) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => Err(ConsoleError::Transport(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    write.at += n.min(rest.len());
                    if write.at < write.bytes.len() {
                        return Poll::Ready(());
                    }
                    Ok(())
                }
                Poll::Ready(Err(error)) => Err(ConsoleError::Transport(error)),
            }
        } else {
            Err(ConsoleError::Detached)
        };
        if let Some(write) = self.writing.take() {
            self.finish(write, outcome);
        }
        Poll::Ready(())
    }

    fn finish(&self, write: Write, outcome: Result<(), ConsoleError>) {
        if write.at > 0 {
            self.queue.push(QueueEntry::Sent(self.clock.stamp(), write.at as u64));
        }
        // The caller may be gone; that is no failure.
        let _ = write.done.send(outcome);
    }
}

impl Drop for ConsoleActor {
    /// Lets the disk thread end however the actor ends, also with its runtime.
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
