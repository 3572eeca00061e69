//! A serial port behind a server that speaks RFC 2217, as a transport.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn, ready as ready_with};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use jig_model::protocol::{BoxFuture, LineControl, Transport, TransportEvent};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use super::error::SerialError;
use super::is_close;
use super::socket::SocketTransport;
use super::telnet::{Telnet, TelnetSaid, control, end_of_break, escape, hello, set_up};

/// How much is read or written at once.
const CHUNK: usize = 16 << 10;

/// How much a port may print before its server has answered. A port that is already chatting
/// fills this in minutes; a server that only chats is none.
const MOST_BEFORE: usize = 1 << 20;

/// How long a break lasts: as long as a tty's of this host at least (tcsendbreak(3)).
const BREAK: Duration = Duration::from_millis(250);

/// A port of a server.
#[derive(Debug)]
pub(super) struct Rfc2217Transport {
    socket: SocketTransport,
    telnet: Telnet,
    /// Bytes of the port that were not read yet.
    ready: VecDeque<u8>,
    /// Bytes to the server that it has not taken yet.
    out: Vec<u8>,
    /// Overruns that were not told yet; several at one place are one.
    overrun: bool,
    /// How many characters came with errors that were not told yet.
    garbled: u64,
    suspended: bool,
    /// The task that waits to send.
    writer: Option<Waker>,
    held: Option<HeldBreak>,
}

/// A break that is being sent.
#[derive(Debug)]
struct HeldBreak {
    over: Pin<Box<Sleep>>,
    /// Reports its end to the caller.
    done: oneshot::Sender<io::Result<()>>,
}

impl Rfc2217Transport {
    /// Connects to `HOST:PORT`, and sets the port's speed; returns when the server has said
    /// that it has done so. Bytes that come before belong to the port all the same.
    pub(super) async fn open(address: &str, baud: u32) -> Result<Self, SerialError> {
        let connect = |source| SerialError::Connect { address: address.to_owned(), source };
        let refused = |why: String| SerialError::Refused { address: address.to_owned(), why };
        let socket = SocketTransport::tcp(address).await.map_err(connect)?;
        let mut transport = Self {
            socket,
            telnet: Telnet::default(),
            ready: VecDeque::new(),
            out: hello(),
            overrun: false,
            garbled: 0,
            suspended: false,
            writer: None,
            held: None,
        };
        loop {
            let said = poll_fn(|cx| transport.poll_server(cx)).await.map_err(connect)?;
            for said in said.ok_or_else(|| connect(io::ErrorKind::ConnectionReset.into()))? {
                match said {
                    TelnetSaid::Controls => transport.out.extend(set_up(baud)),
                    TelnetSaid::Refuses(why) => return Err(refused(why.to_owned())),
                    TelnetSaid::Baud(got) if is_close(baud, got) => return Ok(transport),
                    TelnetSaid::Baud(got) => {
                        return Err(refused(format!("sets {got} baud instead of {baud}")));
                    }
                    TelnetSaid::Errors { .. } | TelnetSaid::Suspended(_) => {}
                }
            }
            if transport.ready.len() > MOST_BEFORE {
                return Err(refused("does not answer".to_owned()));
            }
        }
    }

    /// Sends what is to be sent, and takes what the server has sent; nothing at its end.
    fn poll_server(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<TelnetSaid>>>> {
        if let Some(held) = self.held.take_if(|held| held.over.as_mut().poll(cx).is_ready()) {
            self.out.extend(end_of_break());
            // The caller may have gone.
            let _ = held.done.send(Ok(()));
        }
        // A server that does not take it is still listened to.
        if let Poll::Ready(sent) = self.poll_flush(cx) {
            sent?;
        }
        let mut some = [0; CHUNK];
        let count = ready!(self.socket.poll_read(cx, &mut some))?;
        if count == 0 {
            return Poll::Ready(Ok(None));
        }
        let (mut port, mut said) = (Vec::new(), Vec::new());
        self.telnet.feed(&some[..count], &mut port, &mut self.out, &mut said);
        self.ready.extend(port);
        for said in &said {
            match said {
                TelnetSaid::Errors { overrun, garbled } => {
                    self.overrun |= overrun;
                    self.garbled += u64::from(*garbled);
                }
                TelnetSaid::Suspended(now) => {
                    self.suspended = *now;
                    self.writer.take_if(|_| !now).into_iter().for_each(Waker::wake);
                }
                TelnetSaid::Controls | TelnetSaid::Refuses(_) | TelnetSaid::Baud(_) => {}
            }
        }
        Poll::Ready(Ok(Some(said)))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            match ready!(self.socket.poll_write(cx, &self.out))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => drop(self.out.drain(..count)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Transport for Rfc2217Transport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            if buf.is_empty() || !self.ready.is_empty() {
                return Poll::Ready(io::Read::read(&mut self.ready, buf));
            }
            if self.overrun || self.garbled > 0 {
                // To be asked for first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if ready!(self.poll_server(cx))?.is_none() {
                return Poll::Ready(Ok(0));
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        if self.suspended {
            self.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = bytes.len().min(CHUNK);
        escape(&bytes[..count], &mut self.out);
        // What the server does not take at once goes with the next read or write.
        if let Poll::Ready(sent) = self.poll_flush(cx) {
            sent?;
        }
        Poll::Ready(Ok(count))
    }

    fn event(&mut self) -> Option<TransportEvent> {
        if std::mem::take(&mut self.overrun) {
            return Some(TransportEvent::Overrun(None));
        }
        let garbled = std::mem::take(&mut self.garbled);
        (garbled > 0).then_some(TransportEvent::Garbled(garbled))
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        if self.held.is_some() {
            let error = io::Error::new(io::ErrorKind::WouldBlock, "a break is being sent");
            return Box::pin(ready_with(Err(error)));
        }
        // It goes with the next read, which is under way at all times.
        self.out.extend(control(what));
        if what != LineControl::Break {
            return Box::pin(ready_with(Ok(())));
        }
        let (done, over) = oneshot::channel();
        self.held = Some(HeldBreak { over: Box::pin(sleep(BREAK)), done });
        let gone = || Err(io::ErrorKind::NotConnected.into());
        Box::pin(async move { over.await.unwrap_or_else(|_| gone()) })
    }
}
