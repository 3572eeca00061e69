//! The transport to a remote probe, with a relay in it that can be cut.
//!
//! # Design
//! probe-rs' driver for remote probes opens its socket itself and has no time-outs: a server
//! that is silent blocks it for ever, one that has gone makes it spin on end-of-file. Nobody
//! outside can end either, and a thread cannot be killed. So the driver is given a socket of
//! ours, and two threads carry the bytes. When the server goes, or when somebody
//! [cuts](Cut::cut) the transport, the relay answers with a frame that the driver cannot decode:
//! it keeps that frame, and from then on every call fails at once, with an error. The driver
//! then drops its socket and the relay's threads end.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use probe_rs::probe::glasgow::GlasgowFactory;
use probe_rs::probe::{DebugProbeError, Probe, ProbeFactory};

use super::selector::{Address, remote_by_path};
use super::source::{Cut, Leash};

/// An end of frame, and an empty frame: no packet is empty, so this is an error in every state
/// of the receiver, the middle of a frame included.
const POISON: [u8; 2] = [0, 0];

/// How long it may take to reach a server. It is on this machine or in this lab.
const CONNECT: Duration = Duration::from_secs(3);

/// How often a full backlog is looked at again: no event tells that it has room.
const BACKLOG_PAUSE: Duration = Duration::from_millis(20);

/// How much is carried at once; the driver reads as much.
const CHUNK: usize = 64 * 1024;

/// Opens the remote probe at an address. What cuts it off is handed to the leash before the
/// first word to the server, which may be one that never answers.
pub(crate) fn open(address: &Address, leash: &Leash) -> Result<Probe, OpenError> {
    let far = Far::connect(address).map_err(OpenError::Reach)?;
    // The path is a name for the moment between binding and accepting; nothing stays of it.
    let folder = tempfile::tempdir().map_err(OpenError::Relay)?;
    let path = folder.path().join("probe");
    let relay = Relay::start(&path, far).map_err(OpenError::Relay)?;
    leash.hold(Arc::clone(&relay) as Arc<dyn Cut>);
    GlasgowFactory.open(&remote_by_path(&path)).map(Probe::from_specific_probe).map_err(|error| {
        relay.cut();
        // A driver that failed before it connected has left the relay waiting for somebody.
        drop(UnixStream::connect(&path));
        OpenError::Driver(error)
    })
}

/// Says why a remote probe could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// Nobody serves the address.
    #[error("no server was reached")]
    Reach(#[source] io::Error),
    /// The relay could not be set up.
    #[error("the relay could not be set up")]
    Relay(#[source] io::Error),
    /// The server does not speak the protocol.
    #[error("the server gave no sensible answer")]
    Driver(#[source] DebugProbeError),
}

/// The connection to the server.
#[derive(Debug)]
enum Far {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Far {
    fn connect(address: &Address) -> io::Result<Self> {
        match address {
            Address::Unix(path) => connect_unix(path).map(Self::Unix),
            Address::Tcp(host, port) => {
                let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in format!("{host}:{port}").to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT) {
                        Ok(stream) => {
                            // Requests are small and each waits for its answer.
                            stream.set_nodelay(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    fn shutdown(&self) {
        // It may be closed already; then there is nothing left to do.
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Far {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Far {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects without waiting for ever: where the backlog of a server that accepts nobody is
/// full, a blocking connect would.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + CONNECT;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let address = UnixAddr::new(path)?;
    loop {
        let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        match connect(std::os::fd::AsRawFd::as_raw_fd(&fd), &address) {
            Ok(()) => {
                let stream = UnixStream::from(fd);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::EAGAIN) if Instant::now() < deadline => std::thread::sleep(BACKLOG_PAUSE),
            Err(Errno::EAGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Two threads that carry bytes between the driver and a server.
#[derive(Debug)]
pub(crate) struct Relay {
    far: Far,
    /// The driver's end, once it has connected.
    near: Mutex<Near>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The driver's end of the transport.
#[derive(Debug, Default)]
struct Near {
    stream: Option<UnixStream>,
    /// Set once the transport is cut: whoever connects later is told at once.
    cut: bool,
}

impl Relay {
    /// Binds a path, and carries what the first to connect to it says.
    fn start(path: &Path, far: Far) -> io::Result<Arc<Self>> {
        let listener = UnixListener::bind(path)?;
        let (up, down) = (far.try_clone()?, far.try_clone()?);
        let relay = Arc::new(Self {
            far,
            near: Mutex::default(),
            threads: Mutex::new(Vec::with_capacity(1)),
        });
        let this = Arc::clone(&relay);
        let thread = Builder::new().name("probe relay".to_owned()).spawn(move || {
            // An error leaves the driver alone with an open socket: it is told.
            if let Ok((near, _)) = listener.accept() {
                drop(listener);
                this.carry(near, up, down);
            }
        })?;
        lock(&relay.threads).push(thread);
        Ok(relay)
    }

    /// Carries bytes both ways until the driver closes its socket.
    fn carry(&self, mut near: UnixStream, mut up: Far, mut down: Far) {
        let (Ok(kept), Ok(mut back)) = (near.try_clone(), near.try_clone()) else { return };
        let cut_already = {
            let mut state = lock(&self.near);
            state.stream = Some(kept);
            state.cut
        };
        if cut_already {
            self.cut();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = copy(&mut down, &mut back);
                self.cut();
            });
            if copy(&mut near, &mut up).is_err() {
                // The server is gone but the driver still talks: every word is answered with
                // the frame that it cannot decode, until it gives up.
                self.cut();
                let mut buffer = vec![0; CHUNK];
                while near.read(&mut buffer).is_ok_and(|count| count > 0) {
                    if near.write_all(&POISON).is_err() {
                        break;
                    }
                }
            }
            self.far.shutdown();
        });
        lock(&self.near).stream = None;
    }
}

impl Cut for Relay {
    fn cut(&self) {
        self.far.shutdown();
        let mut near = lock(&self.near);
        near.cut = true;
        if let Some(stream) = &mut near.stream {
            // Two bytes fit in any socket buffer whose reader waits for them; a driver that
            // has gone cannot be told and need not be.
            let _ = stream.write_all(&POISON);
        }
    }

    fn join(&self) {
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // A panic of the relay was printed when it happened and cut the transport.
            let _ = thread.join();
        }
    }
}

/// Copies until end-of-file. A failed write is an error, an ended reader is not.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Ok(()),
        };
        to.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
