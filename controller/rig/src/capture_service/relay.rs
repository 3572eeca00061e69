//! Relays a transport's bytes to its borrower, for transports that cannot be passed as a
//! descriptor.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use std::time::Duration;

use jig_model::protocol::{Transport, TransportEvent};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::UnixStream;

/// Size of each direction's buffer in bytes. When it is full the transport is not read: its other
/// end then waits or drops bytes, as with any slow reader.
const ON_THE_WAY: usize = 64 << 10;

/// Number of relayed bytes that are remembered, to return those that the borrower did not read. A
/// socket pair holds some 200 KiB (net.core.wmem_default); on a host with a far larger value the
/// log gets a gap instead.
const REMEMBERED: usize = 4 << 20;

/// Time limit for sending the borrower's last bytes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A transport and the service's end of the borrower's socket.
pub(super) struct Relay {
    transport: Box<dyn Transport>,
    near: UnixStream,
    out: VecDeque<u8>,
    sent: u64,
    recent: VecDeque<u8>,
    input: VecDeque<u8>,
    /// The borrower has closed its sending direction.
    deaf: bool,
    over: Option<Over>,
}

/// A transport returned by a borrower.
pub(super) struct GivenBack {
    pub(super) transport: Box<dyn Transport>,
    /// Bytes that the borrower did not read.
    pub(super) first: Vec<u8>,
    /// Event that follows those bytes.
    pub(super) event: Option<TransportEvent>,
    /// Whether bytes may be missing that the borrower has read.
    pub(super) missing: bool,
}

/// Reason why relaying ended.
enum Over {
    News(TransportEvent),
    Ended,
    Borrower,
}

impl Relay {
    /// Starts a relay; returns the borrower's end of the socket.
    pub(super) fn begin(
        transport: Box<dyn Transport>,
    ) -> Result<(Self, OwnedFd), (Box<dyn Transport>, io::Error)> {
        let pair = UnixStream::pair().and_then(|(near, far)| Ok((near, far.into_std()?)));
        let (near, far) = match pair {
            Ok(pair) => pair,
            Err(error) => return Err((transport, error)),
        };
        let relay = Self {
            transport,
            near,
            out: VecDeque::new(),
            sent: 0,
            recent: VecDeque::new(),
            input: VecDeque::new(),
            deaf: false,
            over: None,
        };
        Ok((relay, far.into()))
    }

    /// Relays bytes until the transport reports an event or ends, or the borrower stops reading.
    /// Cancel-safe. Afterwards the borrower reads the end of its transport, and learns the reason
    /// with its next request.
    pub(super) async fn pass(&mut self) {
        if self.over.is_some() {
            return std::future::pending().await;
        }
        let over = poll_fn(|cx| self.poll_pass(cx)).await;
        self.over = Some(over);
        let _ = poll_fn(|cx| std::pin::Pin::new(&mut self.near).poll_shutdown(cx)).await;
    }

    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        loop {
            let mut moved = false;
            if let Err(over) = self.poll_out(cx, &mut moved) {
                return Poll::Ready(over);
            }
            moved |= self.poll_in(cx);
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Moves bytes from the transport to the borrower.
    fn poll_out(&mut self, cx: &mut Context<'_>, moved: &mut bool) -> Result<(), Over> {
        let mut buf = [0; 16 << 10];
        if self.out.len() < ON_THE_WAY {
            match self.transport.poll_read(cx, &mut buf) {
                Poll::Ready(Ok(0)) => return Err(Over::Ended),
                Poll::Ready(Ok(count)) => {
                    self.out.extend(&buf[..count.min(buf.len())]);
                    *moved = true;
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    *moved = true;
                }
                // The next owner of the transport reads the same error and records it.
                Poll::Ready(Err(_)) => return Err(Over::Ended),
                Poll::Pending => {
                    if let Some(event) = self.transport.event() {
                        return Err(Over::News(event));
                    }
                }
            }
        }
        while !self.out.is_empty() {
            let (some, _) = self.out.as_slices();
            match std::pin::Pin::new(&mut self.near).poll_write(cx, some) {
                Poll::Ready(Ok(count)) => {
                    self.sent += count as u64;
                    self.recent.extend(self.out.drain(..count));
                    let old = self.recent.len().saturating_sub(REMEMBERED);
                    self.recent.drain(..old);
                    *moved = true;
                }
                Poll::Ready(Err(_)) => return Err(Over::Borrower),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Moves bytes from the borrower to the transport; returns whether any moved.
    fn poll_in(&mut self, cx: &mut Context<'_>) -> bool {
        let (mut moved, mut buf) = (false, [0; 4 << 10]);
        if !self.deaf && self.input.len() < ON_THE_WAY {
            let mut buf = ReadBuf::new(&mut buf);
            match std::pin::Pin::new(&mut self.near).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    self.input.extend(buf.filled());
                    moved = true;
                }
                Poll::Ready(_) => self.deaf = true,
                Poll::Pending => {}
            }
        }
        let (some, _) = self.input.as_slices();
        if !some.is_empty() {
            match self.transport.poll_write(cx, some) {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.input.drain(..count);
                    moved = true;
                }
                // The borrower learns of the transport's end by reading.
                Poll::Ready(_) => self.input.clear(),
                Poll::Pending => {}
            }
        }
        moved
    }

    /// Returns the transport and the bytes that the borrower did not read; it has read `read`
    /// bytes.
    pub(super) async fn end(mut self, read: Option<u64>) -> GivenBack {
        if read.is_some() {
            let last = poll_fn(|cx| {
                while self.poll_in(cx) {}
                if self.deaf && self.input.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            });
            let _ = tokio::time::timeout(LAST_WORDS, last).await;
        }
        let unread = read.and_then(|read| self.sent.checked_sub(read));
        let back = unread.and_then(|unread| usize::try_from(unread).ok());
        let back = back.filter(|back| *back <= self.recent.len());
        let from = self.recent.len() - back.unwrap_or(0);
        let mut first = self.recent.split_off(from);
        first.append(&mut self.out);
        let event = match self.over {
            Some(Over::News(event)) => Some(event),
            Some(Over::Ended | Over::Borrower) | None => None,
        };
        GivenBack { transport: self.transport, first: first.into(), event, missing: back.is_none() }
    }
}
