//! A tty as a wire: raw and never blocking.

use std::fs::{OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use jig_model::protocol::Wire;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::termios::{
    BaudRate, ControlFlags, FlushArg, SetArg, cfmakeraw, cfsetspeed, tcflush, tcgetattr, tcsetattr,
};
use tokio::io::Interest;

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
    #[error("{} is in use by another program", path.display())]
    Taken {
        /// The device.
        path: PathBuf,
    },
    /// No serial port is asked for such a speed here.
    #[error("{} cannot be set to {baud} baud", path.display())]
    Speed {
        /// The device.
        path: PathBuf,
        /// Bits per second.
        baud: u32,
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
    /// # Errors
    /// Also: somebody else has it, or the speed is none that terminals know.
    pub fn open_port(path: &Path, baud: u32) -> Result<Self, TtyError> {
        Self::set_up(path, Some(baud))
    }

    fn set_up(path: &Path, baud: Option<u32>) -> Result<Self, TtyError> {
        let opening = |source| TtyError::Open { path: path.to_owned(), source };
        // Without O_NONBLOCK a port that waits for its carrier would block the open itself.
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(flags.bits());
        let file = options.open(path).map_err(opening)?;
        let refused =
            |errno: Errno| TtyError::Settings { path: path.to_owned(), source: errno.into() };
        let mut settings = tcgetattr(&file).map_err(refused)?;
        cfmakeraw(&mut settings);
        if let Some(baud) = baud {
            // Works among programs that ask; TIOCEXCL would not stop a privileged one either.
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => TtyError::Taken { path: path.to_owned() },
                TryLockError::Error(source) => opening(source),
            })?;
            let speed =
                speed(baud).ok_or_else(|| TtyError::Speed { path: path.to_owned(), baud })?;
            cfsetspeed(&mut settings, speed).map_err(refused)?;
            settings.control_flags |= ControlFlags::CLOCAL | ControlFlags::CREAD;
        }
        tcsetattr(&file, SetArg::TCSANOW, &settings).map_err(refused)?;
        if baud.is_some() {
            tcflush(&file, FlushArg::TCIFLUSH).map_err(refused)?;
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        Ok(Self { tty: Descriptor::new(file.into(), interest).map_err(opening)? })
    }
}

/// Returns a speed as terminals name it.
fn speed(baud: u32) -> Option<BaudRate> {
    Some(match baud {
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
        500_000 => BaudRate::B500000,
        576_000 => BaudRate::B576000,
        921_600 => BaudRate::B921600,
        1_000_000 => BaudRate::B1000000,
        1_152_000 => BaudRate::B1152000,
        1_500_000 => BaudRate::B1500000,
        2_000_000 => BaudRate::B2000000,
        2_500_000 => BaudRate::B2500000,
        3_000_000 => BaudRate::B3000000,
        3_500_000 => BaudRate::B3500000,
        4_000_000 => BaudRate::B4000000,
        _ => return None,
    })
}

impl Wire for TtyWire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.tty.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.tty.poll_write(cx, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::future::poll_fn;
    use std::io::{Read, Write};

    use nix::pty::openpty;
    use nix::unistd::ttyname;

    #[tokio::test]
    async fn bytes_pass_untouched_both_ways_and_a_hang_up_is_the_end() {
        let pty = openpty(None, None).unwrap();
        let mut wire = TtyWire::open(&ttyname(&pty.slave).unwrap()).unwrap();
        drop(pty.slave);
        let mut target = File::from(pty.master);
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
        let pty = openpty(None, None).unwrap();
        let path = ttyname(&pty.slave).unwrap();
        let mut target = File::from(pty.master);
        // Raw before anything is written, or the line discipline would hold it back.
        drop(TtyWire::open(&path).unwrap());
        target.write_all(b"stale").unwrap();
        let mut wire = TtyWire::open_port(&path, 9600).unwrap();
        let settings = tcgetattr(&pty.slave).unwrap();
        assert_eq!(nix::sys::termios::cfgetospeed(&settings), BaudRate::B9600);
        target.write_all(b"new").unwrap();
        let mut buf = [0; 16];
        let n = poll_fn(|cx| wire.poll_read(cx, &mut buf)).await.unwrap();
        assert_eq!(&buf[..n], b"new");
        let error = TtyWire::open_port(&path, 9600).unwrap_err();
        assert!(matches!(error, TtyError::Taken { .. }), "{error}");
        drop(wire);
        let error = TtyWire::open_port(&path, 12_345).unwrap_err();
        assert!(error.to_string().ends_with("cannot be set to 12345 baud"), "{error}");
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
