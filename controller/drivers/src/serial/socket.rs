//! A connected socket as a transport: bytes as they are.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::task::{Context, Poll};

use jig_model::protocol::{Handing, Transport};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::descriptor::Descriptor;

/// A server that has lost its power says nothing: it is asked after these many seconds of
/// silence, so many seconds apart, and given up after so many questions. 25 s in all.
const KEEPALIVE: (u32, u32, u32) = (10, 5, 3);

/// A socket whose other end passes a serial port on.
#[derive(Debug)]
pub(super) struct SocketTransport {
    socket: Descriptor,
}

impl SocketTransport {
    /// Connects to `HOST:PORT`.
    pub(super) async fn tcp(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Each key a person types is a packet, and so it shall be.
        stream.set_nodelay(true)?;
        let (idle, interval, count) = KEEPALIVE;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        setsockopt(&stream, sockopt::TcpKeepIdle, &idle)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &interval)?;
        setsockopt(&stream, sockopt::TcpKeepCount, &count)?;
        Self::of(stream.into_std()?.into())
    }

    /// Connects to a socket of this host.
    pub(super) async fn unix(path: &Path) -> io::Result<Self> {
        Self::of(UnixStream::connect(path).await?.into_std()?.into())
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        Ok(Self { socket: Descriptor::new(fd, interest)? })
    }
}

impl Transport for SocketTransport {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, buf)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, bytes)
    }

    fn handing(&self) -> io::Result<Handing> {
        self.socket.copy().map(Handing::Descriptor)
    }
}
