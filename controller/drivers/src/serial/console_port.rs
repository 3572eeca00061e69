//! The port of one console while the rig captures it.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jig_model::protocol::{DriverError, LineControl, ProcessLedger, Transport, TransportEvent};
use jig_model::rig_file::ConsoleTransport;
use jig_model::{Cause, ConsoleName};

use super::{ReconnectingTransport, SerialPort, TakenOver};

/// How long a port is waited for where the place does not say: an adapter is found within two
/// seconds of its plug-in, a server on the network restarts within ten.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many printable bytes in a row are no noise (see the power sense of a console, which
/// listens the same way).
const TEXT: usize = 8;

/// A console that a place has a serial port for.
pub(super) struct ConsolePort {
    pub(super) console: ConsoleName,
    transport: ConsoleTransport,
    baud: u32,
    ledger: Arc<dyn ProcessLedger>,
    timeout: Duration,
    near: Option<Near>,
}

/// What is kept of an open port beside its capture.
struct Near {
    end: Arc<PortEnd>,
    transport: PortShared,
}

/// A port that its capture reads and its owner controls.
type PortShared = Arc<Mutex<ReconnectingTransport>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a transport when the board's power is off: reading stops then.
#[derive(Default)]
struct PortEnd {
    ended: AtomicBool,
    reader: Mutex<Option<Waker>>,
    /// Printable bytes in a row, up to now.
    row: AtomicUsize,
    text: AtomicBool,
}

impl PortEnd {
    /// Notes whether what was read is text.
    fn hear(&self, bytes: &[u8]) {
        let mut row = self.row.load(Ordering::Relaxed);
        for byte in bytes {
            row = if byte.is_ascii_graphic() || *byte == b' ' { row + 1 } else { 0 };
            if row >= TEXT {
                self.text.store(true, Ordering::Relaxed);
            }
        }
        self.row.store(row, Ordering::Relaxed);
    }
}

struct PortTransport {
    transport: PortShared,
    end: Arc<PortEnd>,
    /// What was found out when the end was asked for; told before it.
    event: Option<TransportEvent>,
}

impl ConsolePort {
    /// Takes a transport of a place, and the speed of its console in the profile.
    pub(super) fn new(
        transport: &ConsoleTransport,
        baud: u32,
        ledger: Arc<dyn ProcessLedger>,
    ) -> Self {
        Self {
            console: transport.console.clone(),
            transport: transport.clone(),
            baud,
            ledger,
            timeout: transport.timeout.unwrap_or(TIMEOUT),
            near: None,
        }
    }

    /// Opens the port, waiting for one that is not there yet. `told` is called each time the
    /// transport was borrowed from the capture service.
    pub(super) async fn open(&mut self, told: TakenOver) -> Result<(), DriverError> {
        if self.near.is_some() {
            return Ok(());
        }
        let serial = SerialPort::of_transport(&self.transport, self.baud, told)
            .entered_in(Arc::clone(&self.ledger));
        let opened = ReconnectingTransport::open(serial, self.timeout).await;
        let transport = opened.map_err(|error| {
            let message = format!("connect console {}", self.console);
            DriverError::new(Cause::ConsoleLost, message).with_source(error)
        })?;
        self.near = Some(Near { end: Arc::default(), transport: Arc::new(Mutex::new(transport)) });
        Ok(())
    }

    /// Returns what a capture reads; nothing where the port is not open.
    pub(super) fn transport(&self) -> Option<Box<dyn Transport>> {
        let Near { end, transport } = self.near.as_ref()?;
        let (end, transport) = (Arc::clone(end), Arc::clone(transport));
        Some(Box::new(PortTransport { transport, end, event: None }))
    }

    /// Reads and drops what has arrived so far, before the capture begins.
    pub(super) async fn discard(&self) {
        let Some(near) = &self.near else { return };
        let mut buf = [0; 4 << 10];
        poll_fn(|cx| {
            while let Poll::Ready(Ok(1..)) = lock(&near.transport).poll_read(cx, &mut buf) {}
            Poll::Ready(())
        })
        .await;
    }

    /// Sets a line of the port.
    pub(super) async fn control(&self, what: LineControl) -> Result<(), DriverError> {
        let failed = |error: io::Error| {
            let message = format!("set a line of console {}", self.console);
            DriverError::new(Cause::PowerFailed, message).with_source(error)
        };
        let Some(near) = &self.near else {
            return Err(failed(io::ErrorKind::NotConnected.into()));
        };
        let done = lock(&near.transport).control(what);
        // To a server the order goes with what is sent.
        let sent = poll_fn(|cx| lock(&near.transport).poll_write(cx, &[]));
        sent.await.map_err(failed)?;
        done.await.map_err(failed)
    }

    /// Begins to listen for text.
    pub(super) fn listen(&self) {
        if let Some(near) = &self.near {
            near.end.row.store(0, Ordering::Relaxed);
            near.end.text.store(false, Ordering::Relaxed);
        }
    }

    /// Tells whether text has come since it was listened for.
    pub(super) fn heard(&self) -> bool {
        self.near.as_ref().is_some_and(|near| near.end.text.load(Ordering::Relaxed))
    }

    /// Ends the transport, behind what is still in it.
    pub(super) fn end(&mut self) {
        let Some(Near { end, .. }) = self.near.take() else { return };
        end.ended.store(true, Ordering::Release);
        let reader = lock(&end.reader).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Transport for PortTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        *lock(&self.end.reader) = Some(cx.waker().clone());
        let read = lock(&self.transport).poll_read(cx, buf);
        let ended = self.end.ended.load(Ordering::Acquire);
        match read {
            Poll::Ready(Ok(count)) if count > 0 || buf.is_empty() => {
                self.end.hear(&buf[..count]);
                Poll::Ready(Ok(count))
            }
            Poll::Pending if ended => {
                self.event = self.event.take().or_else(|| lock(&self.transport).event());
                match self.event {
                    Some(_) => {
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                    None => Poll::Ready(Ok(0)),
                }
            }
            _ if ended => Poll::Ready(Ok(0)),
            other => other,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.end.ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        lock(&self.transport).poll_write(cx, bytes)
    }

    fn event(&mut self) -> Option<TransportEvent> {
        self.event.take().or_else(|| lock(&self.transport).event())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::fd::OwnedFd;

    use jig_model::protocol::NoLedger;
    use jig_model::rig_file::Endpoint;
    use nix::fcntl::OFlag;
    use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};

    use super::*;

    fn nobody() -> TakenOver {
        Arc::new(|_| ())
    }

    async fn read(transport: &mut dyn Transport) -> io::Result<Vec<u8>> {
        let mut buf = [0; 64];
        let count = poll_fn(|cx| transport.poll_read(cx, &mut buf)).await?;
        Ok(buf[..count].to_vec())
    }

    /// A pseudo-terminal with a name of its own, and a console's transport to it that is soon given
    /// up.
    fn terminal() -> (File, ConsolePort, String, tempfile::TempDir) {
        // No emulator of another test may inherit the far end: it would keep the transport alive.
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("by-id");
        std::os::unix::fs::symlink(ptsname_r(&master).unwrap(), &link).unwrap();
        let path = link.to_str().unwrap().to_owned();
        let transport = ConsoleTransport {
            console: "uart0".parse().unwrap(),
            end: Endpoint::Tty(path.clone()),
            baud: None,
            timeout: Some(Duration::from_millis(100)),
            ready: None,
            capture: None,
        };
        (
            File::from(OwnedFd::from(master)),
            ConsolePort::new(&transport, 115_200, Arc::new(NoLedger)),
            path,
            folder,
        )
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_comes_behind_the_bytes() {
        let (mut target, mut port, _, _folder) = terminal();
        port.open(nobody()).await.unwrap();
        let mut transport = port.transport().unwrap();
        target.write_all(b"last words").unwrap();
        port.end();
        assert_eq!(read(&mut *transport).await.unwrap(), b"last words");
        assert_eq!(read(&mut *transport).await.unwrap(), b"");
        drop(transport);

        // Asked while another process waits.
        port.open(nobody()).await.unwrap();
        let mut transport = port.transport().unwrap();
        let waits = tokio::spawn(async move { read(&mut *transport).await });
        tokio::task::yield_now().await;
        port.end();
        assert_eq!(waits.await.unwrap().unwrap(), b"");
    }

    #[tokio::test]
    async fn an_end_that_nobody_has_asked_for_is_told_and_then_a_loss() {
        let (target, mut port, path, _folder) = terminal();
        port.open(nobody()).await.unwrap();
        let mut transport = port.transport().unwrap();
        // The kernel gives the terminal's number to the next test: it must not look as if this
        // one were back.
        std::fs::remove_file(&path).unwrap();
        drop(target);
        let told = |transport: &mut dyn Transport, cx: &mut Context<'_>| {
            assert!(transport.poll_read(cx, &mut [0; 8]).is_pending());
            transport.event().map_or(Poll::Pending, Poll::Ready)
        };
        let event = poll_fn(|cx| told(&mut *transport, cx)).await;
        assert_eq!(event, TransportEvent::Lost(format!("{path} has hung up")));
        let error = read(&mut *transport).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("{path} does not come back: ")), "{error}");
        drop(transport);
        port.end();
        let error = port.open(nobody()).await.unwrap_err();
        assert_eq!(
            (error.cause, &*error.to_string()),
            (Cause::ConsoleLost, "connect console uart0")
        );
        let chain = jig_model::chain(&error);
        assert!(chain.contains(&format!("{path} was not there within 100ms")), "{chain}");
    }

    #[tokio::test]
    async fn a_loss_is_told_before_an_end_that_was_asked_for_meanwhile() {
        let (target, mut port, _, _folder) = terminal();
        port.open(nobody()).await.unwrap();
        let mut transport = port.transport().unwrap();
        drop(target);
        port.end();
        let mut told = None;
        let count = poll_fn(|cx| {
            let read = transport.poll_read(cx, &mut [0; 8]);
            told = told.take().or_else(|| transport.event());
            read
        });
        assert_eq!(count.await.unwrap(), 0);
        assert!(matches!(told, Some(TransportEvent::Lost(_))), "{told:?}");
    }
}
