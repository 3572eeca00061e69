//! A tty as a wire: raw and never blocking.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use jig_model::protocol::{BoxFuture, Handing, LineControl, Wire, WireNews};
use nix::fcntl::OFlag;
use nix::sys::stat::major;
use rustix::termios::{
    ControlModes, OptionalActions, QueueSelector, ioctl_tiocexcl, tcflush, tcgetattr, tcsetattr,
};
use tokio::io::Interest;

use super::holder::holder;
use super::port_watch::PortWatch;
use super::{is_close, line};
use crate::descriptor::Descriptor;

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
    /// Somebody else has it.
    #[error("{} is in use by {}", path.display(), by.as_deref().unwrap_or("another program"))]
    Taken {
        /// The device.
        path: PathBuf,
        /// Who, if that is known.
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
    /// It is no terminal, or does not take the settings.
    #[error("set {} to raw mode", path.display())]
    Settings {
        /// The device.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A tty whose other end is a target.
#[derive(Debug)]
pub struct TtyWire {
    tty: Descriptor,
    watch: PortWatch,
}

impl TtyWire {
    /// Opens a tty and makes it a plain pipe of bytes: no echo, no line editing, no
    /// signals, no translation. Call within a tokio runtime that has I/O enabled.
    ///
    /// # Errors
    /// The device cannot be opened, or is no terminal.
    pub fn open(path: &Path) -> Result<Self, TtyError> {
        Self::set_up(path, None)
    }

    /// Opens a serial port as [`open`](Self::open) does, at a speed in bits per second, for
    /// this process alone. What has arrived before is dropped.
    ///
    /// DTR and RTS are left as they are, as far as that is for a program to say: they do not
    /// drop when the port is closed, so only the first opening after a plug-in may raise them.
    ///
    /// # Errors
    /// Also: somebody else has it, or the port does not do the speed.
    pub fn open_port(path: &Path, baud: u32) -> Result<Self, TtyError> {
        Self::set_up(path, Some(baud))
    }

    fn set_up(path: &Path, baud: Option<u32>) -> Result<Self, TtyError> {
        let opening = |source| TtyError::Open { path: path.to_owned(), source };
        // Without O_NONBLOCK a port that waits for its carrier would block the open itself.
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags.bits());
        let taken = || TtyError::Taken { path: path.to_owned(), by: holder(path) };
        // Whoever has it is told of each opening, and must doubt what was read meanwhile.
        if baud.is_some() && holder(path).is_some() {
            return Err(taken());
        }
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => taken(),
            _ => opening(error),
        })?;
        let refused = |errno: rustix::io::Errno| TtyError::Settings {
            path: path.to_owned(),
            source: errno.into(),
        };
        let mut settings = tcgetattr(&file).map_err(refused)?;
        settings.make_raw();
        if let Some(baud) = baud {
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => taken(),
                TryLockError::Error(source) => opening(source),
            })?;
            exclude_others(&file).map_err(opening)?;
            settings.set_speed(baud).map_err(refused)?;
            settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
            // A board's console has neither a carrier to hang up nor lines to hold it off.
            settings.control_modes -= ControlModes::HUPCL | ControlModes::CRTSCTS;
        }
        tcsetattr(&file, OptionalActions::Now, &settings).map_err(refused)?;
        if let Some(baud) = baud {
            let got = tcgetattr(&file).map_err(refused)?.output_speed();
            if !is_close(baud, got) {
                return Err(TtyError::Speed { path: path.to_owned(), baud, got });
            }
            tcflush(&file, QueueSelector::IFlush).map_err(refused)?;
        }
        let watch = PortWatch::of(file.as_fd());
        let interest = Interest::READABLE | Interest::WRITABLE;
        let tty = Descriptor::new(file.into(), interest).map_err(opening)?;
        Ok(Self { tty, watch })
    }
}

/// The slaves of pseudo-terminals (Documentation/admin-guide/devices.txt of Linux).
const PTY_SLAVES: std::ops::RangeInclusive<u64> = 136..=143;

/// Keeps programs out that do not ask for the lock; privileged ones get in all the same.
///
/// A pseudo-terminal stays closed to others as long as its other end is open, also when this
/// process has died, so the lock alone has to do there.
fn exclude_others(port: &File) -> io::Result<()> {
    if !PTY_SLAVES.contains(&major(port.metadata()?.rdev())) {
        ioctl_tiocexcl(port)?;
    }
    Ok(())
}

impl Wire for TtyWire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let read = self.tty.poll_read(cx, buf);
        if read.is_pending() {
            self.watch.poll(cx);
        }
        read
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.tty.poll_write(cx, bytes)
    }

    fn news(&mut self) -> Option<WireNews> {
        self.watch.news(self.tty.fd())
    }

    fn handing(&self) -> io::Result<Handing> {
        self.watch.lend();
        self.tty.copy().map(Handing::Descriptor)
    }

    fn control(&mut self, what: LineControl) -> BoxFuture<'static, io::Result<()>> {
        line::control(self.tty.copy(), what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::future::poll_fn;
    use std::io::{Read, Write};

    use super::super::test_pty::TestPty;

    #[tokio::test]
    async fn bytes_pass_untouched_both_ways_and_a_hang_up_is_the_end() {
        let TestPty { master: mut target, slave, path } = TestPty::open();
        let mut wire = TtyWire::open(&path).unwrap();
        drop(slave);
        // Each of these means something to a terminal that is not raw.
        let bytes = b"a\r\n\x03\x04\x11\x13\x7f\xff\0z";
        target.write_all(bytes).unwrap();
        let mut seen = Vec::new();
        while seen.len() < bytes.len() {
            let mut buf = [0; 64];
            let n = poll_fn(|cx| wire.poll_read(cx, &mut buf)).await.unwrap();
            seen.extend_from_slice(&buf[..n]);
        }
        assert_eq!(seen, bytes);
        assert_eq!(poll_fn(|cx| wire.poll_write(cx, b"x\ny")).await.unwrap(), 3);
        let mut three = [0; 3];
        target.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"x\ny");
        drop(target);
        assert_eq!(poll_fn(|cx| wire.poll_read(cx, &mut [0; 8])).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_port_has_one_owner_its_speed_and_nothing_from_before() {
        let TestPty { master: mut target, slave, path } = TestPty::open();
        // Raw before anything is written, or the line discipline would hold it back.
        drop(TtyWire::open(&path).unwrap());
        target.write_all(b"stale").unwrap();
        let mut wire = TtyWire::open_port(&path, 9600).unwrap();
        let settings = tcgetattr(&slave).unwrap();
        assert_eq!(settings.output_speed(), 9600);
        // Closing it must not pull DTR.
        assert!(!settings.control_modes.contains(ControlModes::HUPCL), "{settings:?}");
        target.write_all(b"new").unwrap();
        let mut buf = [0; 16];
        let n = poll_fn(|cx| wire.poll_read(cx, &mut buf)).await.unwrap();
        assert_eq!(&buf[..n], b"new");
        let error = TtyWire::open_port(&path, 9600).unwrap_err();
        assert!(matches!(error, TtyError::Taken { .. }), "{error}");
        let holder = format!("(pid {})", std::process::id());
        assert!(error.to_string().ends_with(&holder), "{error}");
        drop(wire);
        // No speed that terminals have a name for.
        let wire = TtyWire::open_port(&path, 74_880).unwrap();
        assert_eq!(tcgetattr(&slave).unwrap().output_speed(), 74_880);
        drop(wire);
        assert!(TtyWire::open_port(&path, 115_200).is_ok());
    }

    #[tokio::test]
    async fn what_is_no_terminal_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plain");
        File::create(&path).unwrap();
        let error = TtyWire::open(&path).unwrap_err();
        assert!(matches!(error, TtyError::Settings { .. }), "{error}");
        assert!(error.to_string().contains("plain"), "{error}");
        assert!(matches!(TtyWire::open(&dir.path().join("gone")), Err(TtyError::Open { .. })));
    }
}
