//! A tty as a transport: raw and never blocking.

use std::io;
use std::path::Path;
use std::task::{Context, Poll};

use jig_model::protocol::{BoxFuture, Handing, LineControl, Transport, TransportEvent};
use tokio_serial::Parity;

use super::line;
use super::open_tty::{OpenTty, TtyError};
use super::port_watch::PortWatch;

/// A tty whose other end is a target.
#[derive(Debug)]
pub struct TtyTransport {
    tty: OpenTty,
    watch: PortWatch,
}

impl TtyTransport {
    /// Opens a tty for this process alone, at a speed in bits per second, as a plain pipe of
    /// bytes: no echo, no line editing, no signals, no translation. What has arrived before is
    /// dropped. May take as long as an adapter takes to answer; call within a tokio runtime
    /// that has I/O enabled.
    ///
    /// # Errors
    /// The device is no tty, cannot be opened, is another process's, or does not do the speed.
    pub fn open(path: &Path, baud: u32) -> Result<Self, TtyError> {
        let tty = OpenTty::open(path, baud, Parity::None)?;
        let watch = PortWatch::of(tty.fd());
        Ok(Self { tty, watch })
    }
}

impl Transport for TtyTransport {
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

    fn event(&mut self) -> Option<TransportEvent> {
        self.watch.event(self.tty.fd())
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
    use std::future::poll_fn;
    use std::io::{Read, Write};

    use rustix::termios::tcgetattr;

    use super::super::test_pty::{TestPty, wait_readable};

    #[tokio::test]
    async fn bytes_pass_untouched_both_ways_and_a_hang_up_is_the_end() {
        let TestPty { master: mut target, slave, path } = TestPty::open();
        let mut transport = TtyTransport::open(&path, 115_200).unwrap();
        drop(slave);
        // Each of these means something to a terminal that is not raw.
        let bytes = b"a\r\n\x03\x04\x11\x13\x7f\xff\0z";
        target.write_all(bytes).unwrap();
        let mut seen = Vec::new();
        while seen.len() < bytes.len() {
            let mut buf = [0; 64];
            let n = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap();
            seen.extend_from_slice(&buf[..n]);
        }
        assert_eq!(seen, bytes);
        assert_eq!(poll_fn(|cx| transport.poll_write(cx, b"x\ny")).await.unwrap(), 3);
        let mut three = [0; 3];
        target.read_exact(&mut three).unwrap();
        assert_eq!(&three, b"x\ny");
        drop(target);
        assert_eq!(poll_fn(|cx| transport.poll_read(cx, &mut [0; 8])).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_port_has_one_owner_its_speed_and_nothing_from_before() {
        let TestPty { master: mut target, slave, path } = TestPty::open();
        // Raw before anything is written, or the line discipline would hold it back.
        drop(TtyTransport::open(&path, 115_200).unwrap());
        target.write_all(b"stale").unwrap();
        wait_readable(&slave);
        let mut transport = TtyTransport::open(&path, 9600).unwrap();
        assert_eq!(tcgetattr(&slave).unwrap().output_speed(), 9600);
        target.write_all(b"new").unwrap();
        let mut buf = [0; 16];
        let n = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await.unwrap();
        assert_eq!(&buf[..n], b"new");
        let error = TtyTransport::open(&path, 9600).unwrap_err();
        assert!(matches!(error, TtyError::Taken { .. }), "{error}");
        let holder = format!("(pid {})", std::process::id());
        assert!(error.to_string().ends_with(&holder), "{error}");
        drop(transport);
        // No speed that terminals have a name for.
        let transport = TtyTransport::open(&path, 74_880).unwrap();
        assert_eq!(tcgetattr(&slave).unwrap().output_speed(), 74_880);
        drop(transport);
        assert!(TtyTransport::open(&path, 115_200).is_ok());
    }
}
