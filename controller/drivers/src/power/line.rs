//! A serial line to a device.
//!
//! Held by one program at a time: an `flock` on the port keeps out every other user of it
//! that plays by the same rule, root included (`TIOCEXCL` does not). Closing the port does
//! not drop its modem lines, because many relay boards fall off when they do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use jig_model::power::{Parity, SerialLine};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::termios::{
    BaudRate, ControlFlags, FlushArg, SetArg, cfmakeraw, cfsetspeed, tcdrain, tcflush, tcgetattr,
    tcsetattr,
};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::task::spawn_blocking;

use super::PowerError;
use crate::descriptor::Descriptor;

/// An open line. It is closed and given up when dropped.
pub(super) struct Line {
    wire: Descriptor,
    /// Holds the lock.
    port: Flock<File>,
}

impl Line {
    /// Opens the port, with nothing of an earlier talk in it.
    pub(super) fn open(about: &SerialLine) -> Result<Self, PowerError> {
        let what = || format!("the port {}", about.port.display());
        let unreachable = |source: io::Error| PowerError::Unreachable { what: what(), source };
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut open = OpenOptions::new();
        let port = open.read(true).write(true).custom_flags(flags.bits()).open(&about.port);
        let port = port.map_err(unreachable)?;
        let port =
            Flock::lock(port, FlockArg::LockExclusiveNonblock).map_err(
                |(_, errno)| match errno {
                    Errno::EWOULDBLOCK => PowerError::refused(what(), "another program uses it"),
                    errno => unreachable(errno.into()),
                },
            )?;
        // The C library refuses settings that a port has only taken in part: a parity that it
        // does not have, for one.
        let unusable = |errno: Errno| {
            PowerError::unusable(format!("{} with these settings", what()), io::Error::from(errno))
        };
        let mut settings = tcgetattr(&*port).map_err(unusable)?;
        cfmakeraw(&mut settings);
        let flags = &mut settings.control_flags;
        *flags |= ControlFlags::CLOCAL | ControlFlags::CREAD | ControlFlags::CS8;
        *flags &= !(ControlFlags::HUPCL
            | ControlFlags::CRTSCTS
            | ControlFlags::CSTOPB
            | ControlFlags::PARENB
            | ControlFlags::PARODD);
        match about.parity {
            Parity::None => {}
            Parity::Even => *flags |= ControlFlags::PARENB,
            Parity::Odd => *flags |= ControlFlags::PARENB | ControlFlags::PARODD,
        }
        let baud = baud(about.baud).ok_or_else(|| {
            PowerError::unusable(what(), format!("it has no speed of {}", about.baud))
        })?;
        cfsetspeed(&mut settings, baud).map_err(unusable)?;
        tcsetattr(&*port, SetArg::TCSANOW, &settings).map_err(unusable)?;
        tcflush(&*port, FlushArg::TCIOFLUSH).map_err(unusable)?;
        let wire = port.try_clone().map_err(unreachable)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let wire = Descriptor::new(wire.into(), interest).map_err(unreachable)?;
        Ok(Self { wire, port })
    }

    /// Waits until everything that was written has left.
    pub(super) async fn drained(&self) -> io::Result<()> {
        let port = self.port.try_clone()?;
        spawn_blocking(move || tcdrain(&port)).await??;
        Ok(())
    }
}

/// Returns the kernel's name for a speed.
fn baud(bits: u32) -> Option<BaudRate> {
    Some(match bits {
        300 => BaudRate::B300,
        600 => BaudRate::B600,
        1200 => BaudRate::B1200,
        2400 => BaudRate::B2400,
        4800 => BaudRate::B4800,
        9600 => BaudRate::B9600,
        19_200 => BaudRate::B19200,
        38_400 => BaudRate::B38400,
        57_600 => BaudRate::B57600,
        115_200 => BaudRate::B115200,
        230_400 => BaudRate::B230400,
        460_800 => BaudRate::B460800,
        921_600 => BaudRate::B921600,
        1_000_000 => BaudRate::B1000000,
        2_000_000 => BaudRate::B2000000,
        3_000_000 => BaudRate::B3000000,
        4_000_000 => BaudRate::B4000000,
        _ => return None,
    })
}

impl AsyncRead for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n = ready!(self.wire.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
