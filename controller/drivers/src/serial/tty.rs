//! A tty as a wire: raw and never blocking.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use jig_model::protocol::Wire;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
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
        tcsetattr(&file, SetArg::TCSANOW, &settings).map_err(refused)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        Ok(Self { tty: Descriptor::new(file.into(), interest).map_err(opening)? })
    }
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
