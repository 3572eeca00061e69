//! The sockets of the server, of either kind.

use std::io::{self, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

/// How long a client may leave an answer unread. gdb reads at once.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where clients connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GdbEndpoint {
    /// An address; port 0 asks the system for a free one.
    Tcp(SocketAddr),
    /// A socket in the file system, which must not exist yet.
    Unix(PathBuf),
}

impl std::fmt::Display for GdbEndpoint {
    /// Writes it as gdb's `target remote` wants it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A listening socket, of either kind.
#[derive(Debug)]
pub(super) enum GdbListener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl GdbListener {
    pub(super) fn bind(endpoint: &GdbEndpoint) -> io::Result<Self> {
        // A client that leaves between poll and accept must not block the thread.
        match endpoint {
            GdbEndpoint::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(listener))
            }
            GdbEndpoint::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(listener, path.clone()))
            }
        }
    }

    pub(super) fn endpoint(&self) -> io::Result<GdbEndpoint> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(GdbEndpoint::Tcp),
            Self::Unix(_, path) => Ok(GdbEndpoint::Unix(path.clone())),
        }
    }

    pub(super) fn accept(&self) -> io::Result<GdbStream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| GdbStream::Tcp(stream)),
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| GdbStream::Unix(stream)),
        }
    }
}

impl AsFd for GdbListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for GdbListener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // Another process may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A client's socket.
#[derive(Debug)]
pub(super) enum GdbStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl GdbStream {
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(TIMEOUT))
            }
            Self::Unix(stream) => {
                stream.set_nonblocking(false)?;
                stream.set_write_timeout(Some(TIMEOUT))
            }
        }
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => io::Write::write_all(stream, bytes),
            Self::Unix(stream) => io::Write::write_all(stream, bytes),
        }
    }
}

impl AsFd for GdbStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}
