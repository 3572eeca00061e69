//! A wire that was borrowed of a keeper: a tty or a socket, so a plain descriptor.

use std::io;
use std::os::fd::AsFd as _;
use std::task::{Context, Poll};

use jig_model::ConsoleName;
use jig_model::keeper::{KeeperAnswer, KeeperAsk, LentWire, Returned};
use jig_model::protocol::{BoxFuture, Handing, LineControl, Wire, WireNews};
use jig_model::rig_file::KeeperSeat;
use rustix::termios::isatty;
use tokio::io::Interest;

use super::super::line;
use super::super::port_watch::PortWatch;
use super::KeeperError;
use super::channel::Channel;
use super::client::{ask, failed};
use crate::descriptor::Descriptor;

/// A wire on loan. Dropping it gives it back.
#[derive(Debug)]
pub(in crate::serial) struct KeptWire {
    wire: Descriptor,
    /// What the kernel tells of it, if it is a tty.
    watch: Option<PortWatch>,
    /// The loan lasts as long as this.
    loan: Channel,
    read: u64,
}

/// Asks a keeper for a wire, and waits until it is there; nothing where nobody keeps it.
pub(in crate::serial) async fn borrow(
    seat: &KeeperSeat,
    console: &ConsoleName,
) -> Result<Option<(KeptWire, LentWire)>, KeeperError> {
    let wanted = KeeperAsk::Wire { place: seat.place.clone(), console: console.clone() };
    let Some((mut loan, answer)) = ask(seat, wanted).await? else { return Ok(None) };
    let lent = match answer {
        KeeperAnswer::Wire(lent) => lent,
        KeeperAnswer::NotKept => return Ok(None),
        other => return Err(failed(seat, other)),
    };
    let fd = loan.take_fd().ok_or_else(|| KeeperError::Stranger {
        path: seat.socket.clone(),
        why: "lends a wire without its descriptor".to_owned(),
    })?;
    let watch = isatty(&fd).then(|| PortWatch::of(fd.as_fd()));
    let wire = Descriptor::new(fd, Interest::READABLE | Interest::WRITABLE);
    Ok(Some((KeptWire { wire: wire.map_err(KeeperError::Talk)?, watch, loan, read: 0 }, lent)))
}

impl Wire for KeptWire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = self.wire.poll_read(cx, buf);
        if let Poll::Ready(Ok(count)) = &read {
            self.read += *count as u64;
        }
        if let (Poll::Pending, Some(watch)) = (&read, &mut self.watch) {
            watch.poll(cx);
        }
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, bytes)
    }

    fn news(&mut self) -> Option<WireNews> {
        self.watch.as_mut()?.news(self.wire.fd())
    }

    fn handing(&self) -> io::Result<Handing> {
        // It is not this process's to lend.
        Ok(Handing::Through)
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        if self.watch.is_some() {
            return line::control(self.wire.copy(), what);
        }
        let error = io::Error::new(io::ErrorKind::Unsupported, "only a tty's line is controlled");
        Box::pin(std::future::ready(Err(error)))
    }
}

impl Drop for KeptWire {
    fn drop(&mut self) {
        // The line is short, and nothing was sent before it since the request.
        self.loan.send_now(&Returned { read: self.read });
    }
}
