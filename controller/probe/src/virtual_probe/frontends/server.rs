//! Serves a probe on a socket to one client after the other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::glasgow::Endpoints;
use crate::glasgow::cobs;
use crate::virtual_probe::adi::AdiPort;
use crate::virtual_probe::bus::Bus;
use crate::virtual_probe::error::VirtualBoardError;

/// What selectors of this kind of probe begin with: the USB ids of the real one.
const KIND: &str = "20b7:9db1";

/// Longest packet that is taken from a client. probe-rs sends at most some 6 KiB; a client
/// that sends more without an end is not one, and is dropped.
const MAX_PACKET: usize = 1 << 20;

/// Most bytes of answers that wait for a client to read them.
const MAX_BACKLOG: usize = 4 << 20;

const CHUNK: usize = 64 << 10;

/// An end of frame, and an empty frame, which no client can decode.
const NO_FRAME: [u8; 2] = [0, 0];

/// How long to look for the next packet before sleeping. A client that is at work sends one
/// some 20 us after each answer, and a sleep and a wake-up would double that.
const SPIN: Duration = Duration::from_micros(60);

/// Where to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeAt {
    /// A unix socket, which only this user can open. It must not exist.
    Unix(PathBuf),
    /// A port of the loopback address; 0 for any that is free.
    Loopback(u16),
}

enum ProbeListener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

enum Client {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// A running server. Dropping it ends the server, its client's session included, waits for
/// that, and removes its socket; the board goes on.
#[derive(Debug)]
pub struct ServerHandle {
    selector: String,
    /// The socket's file.
    socket: Option<PathBuf>,
    /// Closed to end the server.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl ServerHandle {
    /// Returns the probe selector by which probe-rs opens the probe.
    pub fn selector(&self) -> &str {
        &self.selector
    }

    /// Ends the server, its client's session included, and waits for that. Its socket stays
    /// until the handle is dropped: a process that waits for the socket to go finds the board free,
    /// if the handle is dropped after the board was released.
    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server that panicked has nothing to say here.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.stop();
        if let Some(path) = self.socket.take() {
            // Gone already, or in a folder that is thrown away as a whole.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Starts a server.
pub(in crate::virtual_probe) fn serve<B>(
    port: AdiPort<B>,
    at: ServeAt,
) -> Result<ServerHandle, VirtualBoardError>
where
    B: Bus + Send + 'static,
{
    let name = match &at {
        ServeAt::Unix(path) => path.display().to_string(),
        ServeAt::Loopback(port) => format!("127.0.0.1:{port}"),
    };
    start(port, at).map_err(|source| VirtualBoardError::Serve { at: name, source })
}

fn start<B: Bus + Send + 'static>(port: AdiPort<B>, at: ServeAt) -> io::Result<ServerHandle> {
    let (listener, selector, socket) = match at {
        ServeAt::Unix(path) => {
            let listener = UnixListener::bind(&path)?;
            // Only for this user: a client that can debug the board can do anything with it.
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            let selector = format!("{KIND}:unix:{}", path.display());
            (ProbeListener::Unix(listener), selector, Some(path))
        }
        ServeAt::Loopback(port) => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            let selector = format!("{KIND}:tcp:{}", listener.local_addr()?);
            (ProbeListener::Tcp(listener), selector, None)
        }
    };
    let (stop, stopped) = UnixStream::pair()?;
    let thread = std::thread::Builder::new()
        .name("jig-probe-server".to_owned())
        .spawn(move || run(&listener, &stopped, port))?;
    Ok(ServerHandle { selector, socket, stop: Some(stop), thread: Some(thread) })
}

fn run<B: Bus>(listener: &ProbeListener, stopped: &UnixStream, mut port: AdiPort<B>) {
    while let Ok(true) = ready(listener.as_fd(), PollFlags::POLLIN, stopped) {
        let Ok(client) = listener.accept() else { continue };
        let mut endpoints = Endpoints::new(port);
        if let Err(error) = attend(client, stopped, &mut endpoints) {
            tracing::debug!(%error, "a client of the virtual probe was dropped");
        }
        port = endpoints.into_port();
    }
}

/// Serves a client until it leaves or the server is stopped.
fn attend<B: Bus>(
    mut client: Client,
    stopped: &UnixStream,
    endpoints: &mut Endpoints<B>,
) -> io::Result<()> {
    let mut received = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut spin_until = Instant::now();
    loop {
        match client.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => received.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() < spin_until {
                    std::thread::yield_now();
                } else if !ready(client.as_fd(), PollFlags::POLLIN, stopped)? {
                    // What it reads before the end; alone, the end would not end its waiting.
                    let _ = client.write(&NO_FRAME);
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        }
        let mut answers = Vec::new();
        let mut used = 0;
        while let Some(len) = received[used..].iter().position(|&byte| byte == 0) {
            let packet = &received[used..used + len];
            used += len + 1;
            let answer = cobs::decode(packet).and_then(|packet| endpoints.packet(&packet));
            match answer {
                // The client's driver keeps a frame that it cannot decode, and fails from then
                // on. It is not turned away: published clients wait for ever for more from a
                // server that has gone.
                Some(_) if endpoints.is_lost() => answers.extend(NO_FRAME),
                Some(answer) => cobs::encode(&answer, &mut answers),
                None => {}
            }
            if answers.len() > MAX_BACKLOG && !send(&mut client, &mut answers, stopped)? {
                return Ok(());
            }
        }
        received.drain(..used);
        if received.len() > MAX_PACKET {
            return Err(io::Error::new(ErrorKind::InvalidData, "a packet without an end"));
        }
        if !send(&mut client, &mut answers, stopped)? {
            return Ok(());
        }
        spin_until = Instant::now() + SPIN;
    }
}

/// Sends answers; false if the server was stopped meanwhile.
fn send(client: &mut Client, answers: &mut Vec<u8>, stopped: &UnixStream) -> io::Result<bool> {
    let mut sent = 0;
    while sent < answers.len() {
        match client.write(&answers[sent..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if !ready(client.as_fd(), PollFlags::POLLOUT, stopped)? {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    answers.clear();
    Ok(true)
}

/// Waits until a descriptor is ready; false if the server is stopped.
fn ready(fd: BorrowedFd<'_>, wanted: PollFlags, stopped: &UnixStream) -> io::Result<bool> {
    loop {
        let mut fds = [PollFd::new(stopped.as_fd(), PollFlags::POLLIN), PollFd::new(fd, wanted)];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => drop(other?),
        }
        if fds[0].any() == Some(true) {
            return Ok(false);
        }
        if fds[1].any() == Some(true) {
            return Ok(true);
        }
    }
}

impl ProbeListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }

    fn accept(&self) -> io::Result<Client> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Client::Unix(stream))
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                // Each answer is waited for.
                stream.set_nodelay(true)?;
                Ok(Client::Tcp(stream))
            }
        }
    }
}

impl Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }

    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(out),
            Self::Tcp(stream) => stream.read(out),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}
