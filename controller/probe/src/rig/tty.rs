//! The wire of a console that is a serial port of this host, beside the board's probe.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use jig_drivers::serial::TtyWire;
use jig_model::protocol::{DriverError, Wire};
use jig_model::{Cause, ConsoleName};

/// A console that a place has a serial port for.
pub(super) struct Port {
    pub(super) console: ConsoleName,
    pub(super) path: PathBuf,
    pub(super) baud: u32,
    near: Option<Arc<End>>,
}

/// What ends a wire from the board's side: when its power is off nobody listens any more.
#[derive(Default)]
struct End {
    ended: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

struct PortWire {
    tty: TtyWire,
    end: Arc<End>,
    path: PathBuf,
}

impl Port {
    pub(super) fn new(console: ConsoleName, path: PathBuf, baud: u32) -> Self {
        Self { console, path, baud, near: None }
    }

    /// Opens the port.
    pub(super) fn open(&mut self) -> Result<Box<dyn Wire>, DriverError> {
        let tty = TtyWire::open_port(&self.path, self.baud).map_err(|error| {
            let message = format!("connect console {}", self.console);
            DriverError::new(Cause::ConsoleLost, message).with_source(error)
        })?;
        let end = Arc::<End>::default();
        self.near = Some(Arc::clone(&end));
        Ok(Box::new(PortWire { tty, end, path: self.path.clone() }))
    }

    /// Ends the wire, behind what is still in it.
    pub(super) fn end(&mut self) {
        let Some(end) = self.near.take() else { return };
        end.ended.store(true, Ordering::Release);
        let reader = end.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl PortWire {
    /// Makes an error of an end that nobody here has asked for.
    fn gone(&self, why: &str) -> io::Error {
        io::Error::new(io::ErrorKind::NotConnected, format!("{} {why}", self.path.display()))
    }
}

impl Wire for PortWire {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        *self.end.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        let read = self.tty.poll_read(cx, buf);
        let ended = self.end.ended.load(Ordering::Acquire);
        match read {
            Poll::Ready(Ok(count)) if count > 0 || buf.is_empty() => Poll::Ready(Ok(count)),
            Poll::Pending if !ended => Poll::Pending,
            _ if ended => Poll::Ready(Ok(0)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.gone(&format!("failed: {error}")))),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Ready(Err(self.gone("has hung up"))),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.end.ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        self.tty.poll_write(cx, bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    use nix::fcntl::OFlag;
    use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

    use super::*;

    async fn read(wire: &mut dyn Wire) -> io::Result<Vec<u8>> {
        let mut buf = [0; 64];
        let count = poll_fn(|cx| wire.poll_read(cx, &mut buf)).await?;
        Ok(buf[..count].to_vec())
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_comes_behind_the_bytes_and_any_other_is_a_loss() {
        // No emulator of another test may inherit the far end: it would keep the wire alive.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = PathBuf::from(ptsname_r(&master).unwrap());
        let mut target = File::from(OwnedFd::from(master));
        let mut port = Port::new("uart0".parse().unwrap(), path.clone(), 115_200);
        let mut wire = port.open().unwrap();
        target.write_all(b"last words").unwrap();
        port.end();
        assert_eq!(read(&mut *wire).await.unwrap(), b"last words");
        assert_eq!(read(&mut *wire).await.unwrap(), b"");
        drop(wire);

        // Asked while somebody waits.
        let mut wire = port.open().unwrap();
        let waits = tokio::spawn(async move { read(&mut *wire).await });
        tokio::task::yield_now().await;
        port.end();
        assert_eq!(waits.await.unwrap().unwrap(), b"");

        let mut wire = port.open().unwrap();
        drop(target);
        let error = read(&mut *wire).await.unwrap_err().to_string();
        assert!(error.starts_with(path.to_str().unwrap()), "{error}");
        drop(wire);
        let error = port.open().map(drop).unwrap_err();
        assert_eq!((error.cause, &*error.message), (Cause::ConsoleLost, "connect console uart0"));
    }
}
