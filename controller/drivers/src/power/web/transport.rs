//! A stream of tokio as hyper wants it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read at once.
const CHUNK: usize = 4 << 10;

/// A stream for hyper. Bytes pass through a buffer of its own, because hyper's may not have
/// been initialised, and to write there directly would need `unsafe`.
pub(super) struct WebTransport<S> {
    stream: S,
    buffer: Box<[u8; CHUNK]>,
}

impl<S> WebTransport<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, buffer: Box::new([0; CHUNK]) }
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for WebTransport<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, buffer } = self.get_mut();
        let room = buf.remaining().min(CHUNK);
        let mut part = ReadBuf::new(&mut buffer[..room]);
        ready!(Pin::new(stream).poll_read(cx, &mut part))?;
        buf.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for WebTransport<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
