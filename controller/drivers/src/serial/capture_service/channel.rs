//! A connection: lines, most of them JSON, each with at most one descriptor.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::geteuid;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Bytes received in one call.
const CHUNK: usize = 8 << 10;

/// Longest path of a socket in bytes (unix(7)), without the terminating zero.
const MOST_PATH: usize = 107;

#[derive(Debug)]
pub(super) struct Channel {
    stream: Arc<UnixStream>,
    /// Longest line that is received, in bytes.
    most_line: usize,
    got: Vec<u8>,
    /// The last descriptor received, until it is taken.
    fd: Option<OwnedFd>,
}

impl Channel {
    /// Wraps a connection if the peer runs as this user.
    pub(super) fn of(stream: UnixStream, most_line: usize) -> io::Result<Self> {
        let user = stream.peer_cred()?.uid();
        // Root has this access anyway.
        if user != geteuid().as_raw() && user != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is another user's"));
        }
        Ok(Self { stream: Arc::new(stream), most_line, got: Vec::new(), fd: None })
    }

    /// Returns the process id of the peer when it connected.
    pub(super) fn pid(&self) -> Option<i32> {
        self.stream.peer_cred().ok()?.pid()
    }

    pub(super) async fn send<T: Serialize>(
        &mut self,
        message: &T,
        fd: Option<&OwnedFd>,
    ) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        send_all(&self.stream, &line, fd).await
    }

    /// Returns what sends lines while others are received.
    pub(super) fn sender(&self) -> LineSender {
        LineSender(Arc::clone(&self.stream))
    }

    /// Sends a line without waiting; bytes that the socket does not accept at once are dropped.
    pub(super) fn send_now<T: Serialize>(&self, message: &T) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            let _ = send_some(&self.stream, &line, None);
        }
    }

    /// Receives a message; none if the peer has closed. Cancel-safe.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let line = self.receive_line().await?;
        Ok(line.map(|line| serde_json::from_slice(&line)).transpose()?)
    }

    /// Receives a line without its end; none if the peer has closed. Cancel-safe.
    pub(super) async fn receive_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let end = self.got[searched..].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end {
                let mut line: Vec<u8> = self.got.drain(..=searched + end).collect();
                line.pop();
                return Ok(Some(line));
            }
            searched = self.got.len();
            if searched >= self.most_line {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line without an end"));
            }
            let mut buf = [0; CHUNK];
            let stream = &*self.stream;
            let received = stream.async_io(Interest::READABLE, || receive_some(stream, &mut buf));
            let (count, fd) = received.await?;
            self.fd = fd.or(self.fd.take());
            if count == 0 {
                return Ok(None);
            }
            self.got.extend_from_slice(&buf[..count]);
        }
    }

    /// Takes the descriptor that came with the last message.
    pub(super) fn take_fd(&mut self) -> Option<OwnedFd> {
        self.fd.take()
    }
}

/// Sends lines on a connection.
#[derive(Debug, Clone)]
pub struct LineSender(Arc<UnixStream>);

impl LineSender {
    /// Sends a line, to which its end is added. A line that was sent in part is a broken connection:
    /// the future is not to be dropped before.
    ///
    /// # Errors
    /// The peer has gone.
    pub async fn send(&self, line: &str) -> io::Result<()> {
        let line = [line.as_bytes(), b"\n"].concat();
        send_all(&self.0, &line, None).await
    }
}

async fn send_all(stream: &UnixStream, bytes: &[u8], fd: Option<&OwnedFd>) -> io::Result<()> {
    let (mut rest, mut fd) = (bytes, fd);
    while !rest.is_empty() {
        let sent = stream.async_io(Interest::WRITABLE, || send_some(stream, rest, fd));
        // The descriptor went with the first of them.
        rest = &rest[sent.await?.min(rest.len())..];
        fd = None;
    }
    Ok(())
}

fn send_some(stream: &UnixStream, bytes: &[u8], fd: Option<&OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = fd.map(|fd| [fd.as_fd()]);
    if let Some(fds) = &fds {
        // The space was made for it.
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, flags)?)
}

fn receive_some(stream: &UnixStream, buf: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(stream, &mut [IoSliceMut::new(buf)], &mut control, flags)?;
    let mut fd = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            // There is room for one; what is not kept is closed.
            fd = fds.last().or(fd);
        }
    }
    Ok((received.bytes, fd))
}

/// A path of a socket that is short enough for the kernel, and what keeps it valid.
pub(super) struct ShortPath {
    pub(super) path: PathBuf,
    _folder: Option<std::fs::File>,
}

/// Shortens the path of a socket, if need be: by way of its folder's descriptor.
pub(super) fn short(path: &Path) -> io::Result<ShortPath> {
    use std::os::fd::AsRawFd as _;
    let fits = path.as_os_str().len() <= MOST_PATH;
    let (Some(folder), Some(name), false) = (path.parent(), path.file_name(), fits) else {
        return Ok(ShortPath { path: path.to_owned(), _folder: None });
    };
    let folder = std::fs::File::open(folder)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
    Ok(ShortPath { path, _folder: Some(folder) })
}
