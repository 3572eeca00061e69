//! A transport in memory, for tests: what it carries and when it ends is up to the test.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use jig_model::protocol::{Transport, TransportEvent};

/// The target's end, which is also the transport. Clones are the same one.
#[derive(Clone)]
pub(crate) struct FakeTarget(Arc<Mutex<FakeLine>>);

/// What is in a transport.
pub(crate) struct FakeLine {
    pub(crate) output: VecDeque<u8>,
    pub(crate) input: Vec<u8>,
    /// How much input the target takes, in all and at once.
    pub(crate) appetite: usize,
    bite: usize,
    pub(crate) ended: bool,
    pub(crate) broken: bool,
    /// What the transport tells of itself behind the output.
    pub(crate) event: VecDeque<TransportEvent>,
    wakers: Vec<Waker>,
}

impl Default for FakeTarget {
    /// Takes all input at once.
    fn default() -> Self {
        Self::eating(usize::MAX, usize::MAX)
    }
}

impl FakeTarget {
    /// Takes no input until a test gives it an appetite, and little at once.
    pub(crate) fn picky() -> Self {
        Self::eating(0, 3)
    }

    fn eating(appetite: usize, bite: usize) -> Self {
        Self(Arc::new(Mutex::new(FakeLine {
            output: VecDeque::new(),
            input: Vec::new(),
            appetite,
            bite,
            ended: false,
            broken: false,
            event: VecDeque::new(),
            wakers: Vec::new(),
        })))
    }

    pub(crate) fn print(&self, bytes: &[u8]) {
        self.change(|line| line.output.extend(bytes));
    }

    /// Changes the content of the transport, and wakes the tasks that wait for it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut FakeLine) -> T) -> T {
        let mut line = self.0.lock().unwrap();
        let result = change(&mut line);
        line.wakers.drain(..).for_each(Waker::wake);
        result
    }

    /// Returns the input so far.
    pub(crate) fn taken(&self) -> Vec<u8> {
        self.0.lock().unwrap().input.clone()
    }

    /// Returns the number of output bytes that were not read yet.
    pub(crate) fn left(&self) -> usize {
        self.0.lock().unwrap().output.len()
    }

    /// Waits until the target has taken so much input.
    pub(crate) async fn input(&self, count: usize) {
        std::future::poll_fn(|cx| {
            let mut line = self.0.lock().unwrap();
            line.wakers.push(cx.waker().clone());
            if line.input.len() >= count { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Transport for FakeTarget {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut line = self.0.lock().unwrap();
        if !line.output.is_empty() {
            return Poll::Ready(line.output.read(buf));
        }
        if !line.event.is_empty() {
            line.wakers.push(cx.waker().clone());
            return Poll::Pending;
        }
        if line.broken {
            return Poll::Ready(Err(io::Error::other("unplugged")));
        }
        if line.ended {
            return Poll::Ready(Ok(0));
        }
        line.wakers.push(cx.waker().clone());
        Poll::Pending
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut line = self.0.lock().unwrap();
        let count = bytes.len().min(line.appetite).min(line.bite);
        if count == 0 {
            line.wakers.push(cx.waker().clone());
            return Poll::Pending;
        }
        line.appetite -= count;
        line.input.extend(&bytes[..count]);
        line.wakers.drain(..).for_each(Waker::wake);
        Poll::Ready(Ok(count))
    }

    fn event(&mut self) -> Option<TransportEvent> {
        self.0.lock().unwrap().event.pop_front()
    }
}
