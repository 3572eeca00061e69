//! A tty that this process alone has open, set up as a plain pipe of bytes.
//!
//! Owns opening it, its settings and its readiness, all by `tokio-serial`. Never blocks, never
//! becomes the session's controlling terminal, and leaves DTR and RTS as they are, as far as
//! that is for a program to say: only the first opening after a plug-in may raise them.
//!
//! # Design
//! The crate opens the device, takes its lock, makes it raw, sets the speed, and waits for
//! bytes. What it does not do is done beside it, by another descriptor of the same open file:
//!
//! - *A look comes first*, because the crate's errors have no number. Only the number tells an
//!   adapter that was pulled a moment ago, which may come back, from a path that is no tty. The
//!   crate then opens what was looked at, whatever the path leads to by now.
//! - *`HUPCL` is taken off*, or each close would drop DTR and reset many a board.
//! - *`IGNPAR` is taken off*: some drivers (of i.MX, for one) drop garbled characters with it,
//!   and a byte that a console has lost cannot be judged.
//! - *`TIOCEXCL` is set again after the crate has closed its end*, which lifts it for all processes
//!   that hold the open file. A process that a port was passed on to keeps it to itself. So a
//!   borrowed port (`capture_service/transport.rs`) is no stream of the crate: its end would open
//!   the lender's port to others.
//! - *A read asks the system first.* The crate believes a remembered "nothing there"; a transport
//!   must not, because "nothing there" decides where the output of one boot ends.
//! - *Nothing is flushed.* The crate's `poll_flush` waits on the event loop's own thread until
//!   the last bit has left.
//!
//! A pseudo-terminal has no modem lines and no counters, and takes any speed. One that is set to
//! `TIOCEXCL` stays so as long as its other end is open, also when the program that has set it
//! was killed; there the lock alone has to do.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::major;
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, ioctl_tiocexcl, ioctl_tiocnxcl, tcgetattr, tcsetattr,
};
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio_serial::{
    ClearBuffer, ErrorKind, Parity, SerialPort as _, SerialPortBuilderExt as _, SerialStream,
};

use super::holder::{holder, opener};
use super::is_close;
use super::tty_ioctl::{is_exclusive, same_open_file};

#[cfg(test)]
mod tests;

/// The slaves of pseudo-terminals (Documentation/admin-guide/devices.txt of Linux).
const PTY_SLAVES: std::ops::RangeInclusive<u64> = 136..=143;

/// Says why a tty cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TtyError {
    /// It cannot be opened.
    #[error("open {}", path.display())]
    Open {
        /// The device.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The path leads to something else.
    #[error("{} is no serial port", path.display())]
    NotTty {
        /// The path.
        path: PathBuf,
    },
    /// Another process has it.
    #[error("{} is in use by {}", path.display(), by.as_deref().unwrap_or("another program"))]
    Taken {
        /// The device.
        path: PathBuf,
        /// The process that holds it, if that is known.
        by: Option<String>,
    },
    /// The port does not do such a speed.
    #[error("{} cannot be set to {baud} baud, only to {got}", path.display())]
    Speed {
        /// The device.
        path: PathBuf,
        /// Bits per second.
        baud: u32,
        /// What it does instead.
        got: u32,
    },
    /// The port does not do such a parity.
    #[error("{} cannot be set to {} parity", path.display(), parity.to_string().to_lowercase())]
    Parity {
        /// The device.
        path: PathBuf,
        /// The parity that was wanted.
        parity: Parity,
    },
    /// It does not take the settings of a serial port.
    #[error("set up {}", path.display())]
    Settings {
        /// The device.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// An open tty. It is given up when dropped.
#[derive(Debug)]
pub(crate) struct OpenTty {
    stream: SerialStream,
    beside: Beside,
}

/// The stream's open file, by a descriptor that is closed after the stream's.
#[derive(Debug)]
struct Beside {
    fd: OwnedFd,
    exclusive: bool,
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.exclusive {
            // If no other process holds the open file, this ends with it.
            let _ = ioctl_tiocexcl(&self.fd);
        }
    }
}

impl OpenTty {
    /// Opens a tty for this process alone, at a speed in bits per second. What has arrived
    /// before is dropped. May take as long as an adapter takes to answer; call within a tokio
    /// runtime that has I/O enabled.
    pub(crate) fn open(path: &Path, baud: u32, parity: Parity) -> Result<Self, TtyError> {
        let seen = look(path)?;
        Self::set_up(path, &seen, baud, parity)
    }

    /// Opens and sets up a tty that was looked at.
    fn set_up(path: &Path, seen: &File, baud: u32, parity: Parity) -> Result<Self, TtyError> {
        let settings = |source: io::Error| TtyError::Settings { path: path.to_owned(), source };
        let refused = |error: tokio_serial::Error| match error.kind() {
            ErrorKind::NoDevice => taken(path),
            // The crate has not kept the error's number; a device that has gone tells it again.
            _ => settings(tcgetattr(seen).err().map_or_else(|| error.into(), io::Error::from)),
        };
        let link = format!("/proc/self/fd/{}", seen.as_raw_fd());
        let builder = tokio_serial::new(link, baud).parity(parity);
        let stream = builder.open_native_async().map_err(refused)?;
        let fd = same_open_file(&stream).map_err(settings)?;
        let exclusive = !is_pty(seen).map_err(settings)?;
        let tty = Self { stream, beside: Beside { fd, exclusive } };
        let own = || -> io::Result<_> {
            if !exclusive {
                ioctl_tiocnxcl(tty.fd())?;
            }
            let mut settings = tcgetattr(tty.fd())?;
            settings.control_modes -= ControlModes::HUPCL;
            settings.input_modes -= InputModes::IGNPAR;
            tcsetattr(tty.fd(), OptionalActions::Now, &settings)?;
            Ok(settings)
        };
        let got = own().map_err(settings)?;
        let speed = got.output_speed();
        if !is_close(baud, speed) {
            return Err(TtyError::Speed { path: path.to_owned(), baud, got: speed });
        }
        // The kernel leaves a bit out that the port does not have, and says nothing.
        if got.control_modes.contains(ControlModes::PARENB) != (parity != Parity::None) {
            return Err(TtyError::Parity { path: path.to_owned(), parity });
        }
        tty.stream.clear(ClearBuffer::Input).map_err(refused)?;
        Ok(tty)
    }

    /// Returns the descriptor, to ask the system about it.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.beside.fd.as_fd()
    }

    /// Returns another descriptor of the open file, for the one that goes on with it.
    pub(crate) fn copy(&self) -> io::Result<OwnedFd> {
        self.beside.fd.try_clone()
    }

    /// Reads what is there; `Pending` means that there was nothing at this very moment.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        match self.stream.try_read(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return Poll::Ready(read),
        }
        let mut read = ReadBuf::new(buf);
        Pin::new(&mut self.stream).poll_read(cx, &mut read).map_ok(|()| read.filled().len())
    }

    /// Writes some of the bytes.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
}

/// Opens a tty that no process holds, and changes nothing about it.
fn look(path: &Path) -> Result<File, TtyError> {
    let opening = |source| TtyError::Open { path: path.to_owned(), source };
    let not_tty = || TtyError::NotTty { path: path.to_owned() };
    // By its type, without opening it: the other end of a FIFO would notice an opening.
    if !fs::metadata(path).map_err(opening)?.file_type().is_char_device() {
        return Err(not_tty());
    }
    // A Jig that holds the port notices each opening, and must doubt what it read meanwhile.
    if holder(path).is_some() {
        return Err(taken(path));
    }
    // Without O_NONBLOCK a port that waits for its carrier would block the open itself.
    let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let tty = OpenOptions::new().read(true).write(true).custom_flags(flags.bits()).open(path);
    let tty = tty.map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => taken(path),
        _ => opening(error),
    })?;
    tcgetattr(&tty).map_err(|errno| match errno.raw_os_error() {
        libc::ENOTTY => not_tty(),
        _ => opening(errno.into()),
    })?;
    // The kernel lets a privileged program in all the same; it has no more right to the bytes.
    // A pseudo-terminal may be left like this by a program that was killed.
    if is_exclusive(tty.as_fd()).map_err(opening)? && opener(path).is_some() {
        return Err(taken(path));
    }
    Ok(tty)
}

fn taken(path: &Path) -> TtyError {
    TtyError::Taken { path: path.to_owned(), by: holder(path).or_else(|| opener(path)) }
}

fn is_pty(tty: &File) -> io::Result<bool> {
    Ok(PTY_SLAVES.contains(&major(tty.metadata()?.rdev())))
}
