//! The near end of an emulated console.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jig_model::protocol::Wire;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// A console's socket, and the bell that tells the emulator's owner of input.
pub(super) struct ConsoleWire {
    pub(super) stream: UnixStream,
    /// Rung after each write, where the machine needs a poke to notice input.
    pub(super) bell: Option<Arc<Notify>>,
}

impl Wire for ConsoleWire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        match Pin::new(&mut self.stream).poll_read(cx, &mut buf) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buf.filled().len())),
            // A killed emulator resets its sockets; for a console that is the end.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                Poll::Ready(Ok(0))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let (Poll::Ready(Ok(_)), Some(bell)) = (&written, &self.bell) {
            bell.notify_one();
        }
        written
    }
}
