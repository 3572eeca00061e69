//! A console's transport that can go bad.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jig_model::protocol::{BoxFuture, LineControl, Transport, TransportEvent};
use tokio::time::{Instant, Sleep, sleep_until};

use super::injector::Injector;
use super::line::FaultyLine;
use super::schedule::later;

/// Most late bytes that are held; beyond that the transport is not read, as a slow one is not.
const LATE: usize = 1 << 20;

/// Stands before a transport.
pub(super) struct FaultyTransport {
    inner: Box<dyn Transport>,
    line: Arc<FaultyLine>,
    injector: Injector,
    /// What was read and may be handed on.
    out: VecDeque<u8>,
    late: VecDeque<(Instant, Vec<u8>)>,
    alarm: Option<Pin<Box<Sleep>>>,
    event: Option<TransportEvent>,
    /// Characters with errors that were not told of yet: a port tells of them behind their bytes.
    garbled: u64,
    /// The other end was told to be away.
    away: bool,
    /// How the real transport has ended.
    end: Option<Option<io::Error>>,
}

impl FaultyTransport {
    pub(super) fn new(
        inner: Box<dyn Transport>,
        line: Arc<FaultyLine>,
        injector: Injector,
    ) -> Self {
        Self {
            inner,
            line,
            injector,
            out: VecDeque::new(),
            late: VecDeque::new(),
            alarm: None,
            event: None,
            garbled: 0,
            away: false,
            end: None,
        }
    }

    fn hand_on(&mut self, buf: &mut [u8]) -> usize {
        let count = buf.len().min(self.out.len());
        for (to, from) in buf.iter_mut().zip(self.out.drain(..count)) {
            *to = from;
        }
        count
    }

    /// Moves the delayed bytes that are due to the output.
    fn take_due(&mut self) {
        let now = Instant::now();
        while let Some((_, bytes)) = self.late.pop_front_if(|(at, _)| *at <= now) {
            self.out.extend(bytes);
        }
    }

    fn held(&self) -> usize {
        self.late.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Registers for the next late byte; ready if it is due.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((at, _)) = self.late.front() else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(*at)));
        if alarm.deadline() != *at {
            alarm.as_mut().reset(*at);
        }
        alarm.as_mut().poll(cx)
    }

    /// Reads the real transport and throws away what it holds.
    fn discard(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) {
        while self.end.is_none() {
            match self.inner.poll_read(cx, buf) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.end = Some(None),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => self.end = Some(Some(error)),
            }
        }
    }

    /// Lets event be asked for: that is done when there is nothing to read.
    fn tell(&mut self, cx: &Context<'_>) -> Poll<io::Result<usize>> {
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes bytes in that the real transport had.
    fn take_in(&mut self, bytes: &[u8], late: Option<(usize, std::time::Duration)>) {
        let mut bytes = bytes.to_vec();
        let mangled = self.line.mangle(&mut bytes);
        for (fault, what) in mangled.done {
            self.injector.struck(fault, what);
        }
        if mangled.counted > 0 {
            self.event = Some(TransportEvent::Overrun(Some(mangled.counted)));
        }
        self.garbled += mangled.garbled;
        match (late, self.late.back()) {
            _ if bytes.is_empty() => {}
            (Some((fault, time)), _) => {
                self.injector.struck(fault, format!("bytes are {time:?} late"));
                self.late.push_back((later(Instant::now(), time), bytes));
            }
            // In order, even if what makes them late is over.
            (None, Some(&(at, _))) => self.late.push_back((at, bytes)),
            (None, None) => self.out.extend(bytes),
        }
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the port was hung up")
}

impl Transport for FaultyTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if self.event.is_some() {
                return self.tell(cx);
            }
            self.take_due();
            if !self.out.is_empty() {
                return Poll::Ready(Ok(self.hand_on(buf)));
            }
            if self.garbled > 0 && self.late.is_empty() {
                self.event = Some(TransportEvent::Garbled(std::mem::take(&mut self.garbled)));
                continue;
            }
            let condition = self.line.look(cx.waker(), false);
            if let Some(fault) = condition.cut {
                self.injector.struck(fault, "the transport was cut".to_owned());
                return Poll::Ready(Err(broken()));
            }
            if let Some(fault) = condition.away {
                if !std::mem::replace(&mut self.away, true) {
                    self.injector.struck(fault, "the other end has gone".to_owned());
                    self.event = Some(TransportEvent::Lost("the port was hung up".to_owned()));
                    self.late.clear();
                    return self.tell(cx);
                }
                self.discard(cx, buf);
                // An end is told when the port is back.
                return Poll::Pending;
            }
            if std::mem::take(&mut self.away) {
                self.discard(cx, buf);
                self.event = Some(TransportEvent::Back);
                return self.tell(cx);
            }
            if self.late.is_empty()
                && let Some(end) = self.end.take()
            {
                self.end = Some(None);
                return Poll::Ready(end.map_or(Ok(0), Err));
            }
            if self.end.is_none() && self.held() < LATE {
                let plain = !condition.bytes && condition.late.is_none() && self.late.is_empty();
                match self.inner.poll_read(cx, buf) {
                    Poll::Ready(Ok(len)) if len > 0 && !plain => {
                        let len = len.min(buf.len());
                        self.take_in(&buf[..len], condition.late);
                        continue;
                    }
                    Poll::Ready(Ok(len)) if len > 0 => return Poll::Ready(Ok(len)),
                    Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
                        continue;
                    }
                    Poll::Ready(ended) => {
                        self.end = Some(ended.err());
                        let rest = self.line.rest();
                        self.out.extend(rest);
                        continue;
                    }
                    Poll::Pending => {}
                }
            }
            if self.poll_alarm(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let condition = self.line.look(cx.waker(), true);
        if condition.cut.is_some() {
            return Poll::Ready(Err(broken()));
        }
        if condition.away.is_some() {
            return Poll::Pending;
        }
        self.inner.poll_write(cx, bytes)
    }

    fn event(&mut self) -> Option<TransportEvent> {
        self.event.take().or_else(|| self.inner.event())
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        self.inner.control(what)
    }
}
