//! The transport of an RTT console: two bounded queues between the board's owner and a capture.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use jig_model::protocol::Transport;
use tokio::sync::Notify;

/// Bytes that wait for the capture before the target's ring is left alone: then the target
/// waits or drops, as it chose itself.
const OUTPUT: usize = 1 << 20;

/// Bytes of input that wait for room in the target's ring.
const INPUT: usize = 16 << 10;

#[derive(Default)]
struct Queues {
    output: VecDeque<u8>,
    input: VecDeque<u8>,
    ended: bool,
    /// Why input can never arrive.
    deaf: Option<String>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The owner's end of a transport.
#[derive(Clone)]
pub(super) struct NearEnd {
    queues: Arc<Mutex<Queues>>,
}

/// The capture's end.
struct RttTransport {
    queues: Arc<Mutex<Queues>>,
    /// Rung when there is input.
    bell: Arc<Notify>,
}

fn lock(queues: &Mutex<Queues>) -> MutexGuard<'_, Queues> {
    queues.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes both ends; the bell is rung when the capture has written something.
pub(super) fn pair(bell: Arc<Notify>) -> (NearEnd, Box<dyn Transport>) {
    let queues = Arc::new(Mutex::new(Queues::default()));
    (NearEnd { queues: Arc::clone(&queues) }, Box::new(RttTransport { queues, bell }))
}

impl NearEnd {
    /// Tells whether the capture keeps up.
    pub(super) fn has_room(&self) -> bool {
        lock(&self.queues).output.len() < OUTPUT
    }

    /// Hands bytes to the capture.
    pub(super) fn put(&self, bytes: &[u8]) {
        let mut queues = lock(&self.queues);
        queues.output.extend(bytes);
        if let Some(reader) = queues.reader.take() {
            reader.wake();
        }
    }

    /// Copies the input that waits.
    pub(super) fn input(&self) -> Vec<u8> {
        lock(&self.queues).input.iter().copied().collect()
    }

    /// Takes away input that the target got.
    pub(super) fn sent(&self, count: usize) {
        let mut queues = lock(&self.queues);
        let count = count.min(queues.input.len());
        queues.input.drain(..count);
        if count > 0
            && let Some(writer) = queues.writer.take()
        {
            writer.wake();
        }
    }

    /// Refuses all input from now on, or takes it again.
    pub(super) fn set_deaf(&self, why: Option<String>) {
        let mut queues = lock(&self.queues);
        queues.deaf = why;
        if queues.deaf.is_some() {
            queues.input.clear();
            if let Some(writer) = queues.writer.take() {
                writer.wake();
            }
        }
    }

    /// Ends the transport, behind what is still in it.
    pub(super) fn end(&self) {
        let mut queues = lock(&self.queues);
        queues.ended = true;
        for waker in [queues.reader.take(), queues.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }
}

impl Transport for RttTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut queues = lock(&self.queues);
        if queues.output.is_empty() {
            if queues.ended {
                return Poll::Ready(Ok(0));
            }
            queues.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buf.len().min(queues.output.len());
        for (to, from) in buf.iter_mut().zip(queues.output.drain(..count)) {
            *to = from;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut queues = lock(&self.queues);
        if queues.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if let Some(why) = &queues.deaf {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, why.clone())));
        }
        let room = INPUT - queues.input.len().min(INPUT);
        if room == 0 {
            queues.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = room.min(bytes.len());
        queues.input.extend(&bytes[..count]);
        drop(queues);
        self.bell.notify_one();
        Poll::Ready(Ok(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(transport: &mut dyn Transport) -> Poll<io::Result<Vec<u8>>> {
        let mut buf = [0; 4];
        let read = transport.poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
        read.map(|read| read.map(|count| buf[..count].to_vec()))
    }

    fn write(transport: &mut dyn Transport, bytes: &[u8]) -> Poll<io::Result<usize>> {
        transport.poll_write(&mut Context::from_waker(Waker::noop()), bytes)
    }

    #[test]
    fn bytes_arrive_in_order_and_the_end_behind_them() {
        let (near, mut transport) = pair(Arc::default());
        assert!(read(&mut *transport).is_pending());
        near.put(b"hello");
        near.end();
        assert!(matches!(read(&mut *transport), Poll::Ready(Ok(bytes)) if bytes == b"hell"));
        assert!(matches!(read(&mut *transport), Poll::Ready(Ok(bytes)) if bytes == b"o"));
        assert!(matches!(read(&mut *transport), Poll::Ready(Ok(bytes)) if bytes.is_empty()));
        assert!(matches!(write(&mut *transport, b"x"), Poll::Ready(Err(_))));
    }

    #[test]
    fn input_waits_for_the_target_and_takes_no_more_than_it_may() {
        let (near, mut transport) = pair(Arc::default());
        let much = vec![7; INPUT + 5];
        assert!(matches!(write(&mut *transport, &much), Poll::Ready(Ok(INPUT))));
        assert!(write(&mut *transport, &much[INPUT..]).is_pending());
        assert_eq!(near.input().len(), INPUT);
        near.sent(3);
        assert!(matches!(write(&mut *transport, &much[INPUT..]), Poll::Ready(Ok(3))));
        near.set_deaf(Some("no channel".to_owned()));
        assert!(matches!(write(&mut *transport, b"x"), Poll::Ready(Err(_))));
        near.set_deaf(None);
        assert!(matches!(write(&mut *transport, b"x"), Poll::Ready(Ok(1))));
        assert_eq!(near.input(), b"x");
    }
}
