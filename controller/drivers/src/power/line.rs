//! A serial line to a device.
//!
//! Held by one program at a time, as every port that is opened here. Closing the port does not
//! drop its modem lines, because many relay boards fall off when they do.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use jig_model::power::{Parity, SerialLine};
use rustix::termios::tcdrain;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::spawn_blocking;

use super::PowerError;
use crate::serial::{OpenTty, TtyError};

/// An open line. It is closed and given up when dropped.
pub(super) struct PowerLine(OpenTty);

impl PowerLine {
    /// Opens the port, with nothing of an earlier talk in it.
    pub(super) fn open(about: &SerialLine) -> Result<Self, PowerError> {
        let what = || format!("the port {}", about.port.display());
        let parity = match about.parity {
            Parity::None => tokio_serial::Parity::None,
            Parity::Even => tokio_serial::Parity::Even,
            Parity::Odd => tokio_serial::Parity::Odd,
        };
        let opened = OpenTty::open(&about.port, about.baud, parity);
        opened.map(Self).map_err(|error| match error {
            TtyError::Open { source, .. } => PowerError::Unreachable { what: what(), source },
            TtyError::Taken { by, .. } => {
                let by = by.map_or_else(String::new, |by| format!(": {by}"));
                PowerError::refused(what(), format!("another program uses it{by}"))
            }
            error => PowerError::unusable(what(), error),
        })
    }

    /// Waits until everything that was written has left.
    pub(super) async fn drained(&self) -> io::Result<()> {
        let port = self.0.copy()?;
        spawn_blocking(move || tcdrain(&port)).await??;
        Ok(())
    }
}

impl AsyncRead for PowerLine {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = ready!(self.0.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PowerLine {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
