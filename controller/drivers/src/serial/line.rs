//! What can be done to a tty's line beside sending bytes.

use std::io;
use std::os::fd::OwnedFd;

use jig_model::protocol::{BoxFuture, LineControl};
use rustix::termios::tcsendbreak;
use serial2::SerialPort;
use tokio::task::spawn_blocking;

/// Does it on a copy of the tty's descriptor; a break keeps its thread for a quarter to half
/// a second (tcsendbreak(3)), so it has one of its own.
pub(super) fn control(
    tty: io::Result<OwnedFd>,
    what: LineControl,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let tty = tty?;
        let done = spawn_blocking(move || match what {
            LineControl::Break => Ok(tcsendbreak(&tty)?),
            LineControl::Dtr(on) => SerialPort::from(tty).set_dtr(on),
            LineControl::Rts(on) => SerialPort::from(tty).set_rts(on),
        });
        done.await.map_err(io::Error::other)?
    })
}
