//! What can be done to a tty's line beside sending bytes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use jig_model::protocol::{BoxFuture, LineControl};
use rustix::termios::tcsendbreak;
use tokio::task::spawn_blocking;

use super::tty_ioctl::{ModemLine, set_modem_line};

/// Does it on a copy of the tty's descriptor, and on a thread of its own: a break takes a
/// quarter to half a second (tcsendbreak(3)), a line of a USB adapter one transfer.
pub(crate) fn control(
    tty: io::Result<OwnedFd>,
    what: LineControl,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let tty = tty?;
        let done = spawn_blocking(move || match what {
            LineControl::Break => Ok(tcsendbreak(&tty)?),
            LineControl::Dtr(on) => set_modem_line(tty.as_fd(), ModemLine::Dtr, on),
            LineControl::Rts(on) => set_modem_line(tty.as_fd(), ModemLine::Rts, on),
        });
        done.await.map_err(io::Error::other)?
    })
}
