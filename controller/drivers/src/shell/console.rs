//! The console that has the output of commands over SSH.
//!
//! # Design
//! It outlives the connections: each command has one of its own, and a console whose transport ends
//! would say that the board is gone. So a queue in memory is the transport, which ends with the driver.
//! The queue is bounded, because a target can print faster than a disk writes; then the connection is
//! not read, and its window stops the target.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use jig_model::protocol::Transport;
use tokio::sync::Notify;

/// Most bytes that wait to be captured: some of the largest packets of a channel.
const MOST: usize = 256 << 10;

#[derive(Default)]
struct SharedOutput {
    queue: Mutex<OutputQueue>,
    /// Told when bytes were taken.
    taken: Notify,
}

#[derive(Default)]
struct OutputQueue {
    bytes: VecDeque<u8>,
    reader: Option<Waker>,
    /// No writer is left.
    ended: bool,
    /// No reader is left.
    unread: bool,
}

impl SharedOutput {
    fn lock(&self) -> MutexGuard<'_, OutputQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The driver's end. Dropping it ends the transport.
pub(super) struct ShellOutput(Arc<SharedOutput>);

/// The end that a console captures.
pub(super) struct ShellTransport(Arc<SharedOutput>);

/// Makes both ends.
pub(super) fn shell_console() -> (ShellOutput, ShellTransport) {
    let shared = Arc::<SharedOutput>::default();
    (ShellOutput(Arc::clone(&shared)), ShellTransport(shared))
}

impl ShellOutput {
    /// Adds bytes; waits while too many are not captured yet. Without a reader they go nowhere.
    pub(super) async fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = self.0.taken.notified();
            {
                let mut queue = self.0.lock();
                if queue.unread {
                    return;
                }
                let count = bytes.len().min(MOST.saturating_sub(queue.bytes.len()));
                let (now, later) = bytes.split_at(count);
                queue.bytes.extend(now);
                bytes = later;
                if let Some(reader) = queue.reader.take() {
                    reader.wake();
                }
            }
            if !bytes.is_empty() {
                taken.await;
            }
        }
    }
}

impl Drop for ShellOutput {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.ended = true;
        if let Some(reader) = queue.reader.take() {
            reader.wake();
        }
    }
}

impl Drop for ShellTransport {
    fn drop(&mut self) {
        self.0.lock().unread = true;
        self.0.taken.notify_one();
    }
}

impl Transport for ShellTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut queue = self.0.lock();
        if queue.bytes.is_empty() {
            if queue.ended {
                return Poll::Ready(Ok(0));
            }
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buf.len().min(queue.bytes.len());
        for (room, byte) in buf.iter_mut().zip(queue.bytes.drain(..count)) {
            *room = byte;
        }
        drop(queue);
        self.0.taken.notify_one();
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        let words = "this console has the output of commands, and no input";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, words)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn a_slow_reader_holds_the_writer_up_and_loses_nothing() {
        let (output, mut transport) = shell_console();
        let sent: Vec<u8> = (0..3 * MOST).map(|i| i as u8).collect();
        let all = sent.clone();
        let writer = tokio::spawn(async move { output.write(&all).await });
        let (mut read, mut buf) = (Vec::new(), [0; 1000]);
        loop {
            let count = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap();
            if count == 0 {
                break;
            }
            assert!(transport.0.lock().bytes.len() <= MOST);
            read.extend_from_slice(&buf[..count]);
        }
        writer.await.unwrap();
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn a_writer_without_a_reader_does_not_wait() {
        let (output, transport) = shell_console();
        drop(transport);
        output.write(&vec![0; 2 * MOST]).await;
    }
}
