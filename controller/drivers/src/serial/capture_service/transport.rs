//! A transport borrowed from the capture service: the descriptor of a tty or a socket.

use std::io;
use std::os::fd::AsFd as _;
use std::task::{Context, Poll};

use jig_model::ConsoleName;
use jig_model::capture_service::{CaptureAnswer, CaptureRequest, LoanPosition, Returned};
use jig_model::protocol::{BoxFuture, Handing, LineControl, Transport, TransportEvent};
use jig_model::rig_file::CaptureClient;
use rustix::termios::isatty;
use tokio::io::Interest;

use super::super::line;
use super::super::port_watch::PortWatch;
use super::CaptureServiceError;
use super::channel::Channel;
use super::client::{ask, failed};
use crate::descriptor::Descriptor;

/// A borrowed transport; dropping it returns the loan.
#[derive(Debug)]
pub(in crate::serial) struct BorrowedTransport {
    transport: Descriptor,
    /// Kernel counters of the port, if it is a tty.
    watch: Option<PortWatch>,
    /// Connection that holds the loan.
    loan: Channel,
    read: u64,
}

/// Borrows a transport and waits until it is present; none if the service does not capture it.
pub(in crate::serial) async fn borrow(
    client: &CaptureClient,
    console: &ConsoleName,
) -> Result<Option<(BorrowedTransport, LoanPosition)>, CaptureServiceError> {
    let wanted =
        CaptureRequest::Transport { place: client.place.clone(), console: console.clone() };
    let Some((mut loan, answer)) = ask(client, wanted).await? else { return Ok(None) };
    let lent = match answer {
        CaptureAnswer::Transport(lent) => lent,
        CaptureAnswer::NotCaptured => return Ok(None),
        other => return Err(failed(client, other)),
    };
    let fd = loan.take_fd().ok_or_else(|| CaptureServiceError::Stranger {
        path: client.socket.clone(),
        why: "lends a transport without its descriptor".to_owned(),
    })?;
    let watch = isatty(&fd).then(|| PortWatch::of(fd.as_fd()));
    let transport = Descriptor::new(fd, Interest::READABLE | Interest::WRITABLE);
    Ok(Some((
        BorrowedTransport {
            transport: transport.map_err(CaptureServiceError::Talk)?,
            watch,
            loan,
            read: 0,
        },
        lent,
    )))
}

impl Transport for BorrowedTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = self.transport.poll_read(cx, buf);
        if let Poll::Ready(Ok(count)) = &read {
            self.read += *count as u64;
        }
        if let (Poll::Pending, Some(watch)) = (&read, &mut self.watch) {
            watch.poll(cx);
        }
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.transport.poll_write(cx, bytes)
    }

    fn event(&mut self) -> Option<TransportEvent> {
        self.watch.as_mut()?.event(self.transport.fd())
    }

    fn handing(&self) -> io::Result<Handing> {
        // A borrowed transport cannot be lent on.
        Ok(Handing::Through)
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        if self.watch.is_some() {
            return line::control(self.transport.copy(), what);
        }
        let error = io::Error::new(io::ErrorKind::Unsupported, "only a tty's line is controlled");
        Box::pin(std::future::ready(Err(error)))
    }
}

impl Drop for BorrowedTransport {
    fn drop(&mut self) {
        // The line is short, and nothing was sent before it since the request.
        self.loan.send_now(&Returned { read: self.read });
    }
}
