//! Server end of the capture service's socket.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::capture_service::{CaptureAnswer, CaptureCall, MOST_LINE};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;

use super::CaptureServiceError;
use super::channel::{Channel, LineSender, short};

/// Pause when the system has no descriptor left for another caller.
const BREATH: Duration = Duration::from_millis(100);

/// The socket of a capture service; removed when dropped.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    most_line: usize,
}

/// A connected client of this user.
#[derive(Debug)]
pub struct Caller {
    channel: Channel,
}

impl Door {
    /// Listens on `path`. Removes a socket that an earlier service left: the caller holds the lock
    /// which proves that no other service runs. Call within a tokio runtime that has I/O enabled.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(path: &Path) -> Result<Self, CaptureServiceError> {
        Self::open_for(path, MOST_LINE)
    }

    /// As [`Door::open`], for lines of at most `most_line` bytes.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open_for(path: &Path, most_line: usize) -> Result<Self, CaptureServiceError> {
        let failed = |source| CaptureServiceError::Socket { path: path.to_owned(), source };
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let near = short(path).map_err(failed)?;
        let listener = UnixListener::bind(&near.path).map_err(failed)?;
        let door = Self { listener, path: path.to_owned(), most_line };
        // Peers of other users are rejected, too; this keeps them from connecting.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(door)
    }

    /// Waits for the next client of this user; disconnects others. Cancel-safe.
    pub async fn accept(&self) -> Caller {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a caller was not let in");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            };
            match Channel::of(stream, self.most_line) {
                Ok(channel) => return Caller { channel },
                Err(error) => tracing::warn!(%error, "a caller was turned away"),
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Caller {
    /// Returns the caller's process.
    pub fn pid(&self) -> Option<i32> {
        self.channel.pid()
    }

    /// Waits for the request; none if the client has disconnected.
    ///
    /// # Errors
    /// The message cannot be parsed.
    pub async fn request(&mut self) -> Result<Option<CaptureCall>, CaptureServiceError> {
        self.next().await
    }

    /// Waits for the next message; none if the client has disconnected. Cancel-safe.
    ///
    /// # Errors
    /// The message cannot be parsed.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, CaptureServiceError> {
        match self.channel.receive().await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            said => said.map_err(CaptureServiceError::Talk),
        }
    }

    /// Receives a line without its end; none if the client has disconnected. Cancel-safe.
    ///
    /// # Errors
    /// The line is too long, or the connection has failed.
    pub async fn line(&mut self) -> Result<Option<Vec<u8>>, CaptureServiceError> {
        match self.channel.receive_line().await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            line => line.map_err(CaptureServiceError::Talk),
        }
    }

    /// Returns what sends lines while others are received.
    pub fn sender(&self) -> LineSender {
        self.channel.sender()
    }

    /// Sends an answer, with a descriptor if the answer has one.
    ///
    /// # Errors
    /// The client has disconnected.
    pub async fn answer(
        &mut self,
        answer: &CaptureAnswer,
        fd: Option<&OwnedFd>,
    ) -> Result<(), CaptureServiceError> {
        self.channel.send(answer, fd).await.map_err(CaptureServiceError::Talk)
    }

    /// Sends a message that is not an answer.
    ///
    /// # Errors
    /// The client has disconnected.
    pub async fn tell<T: Serialize>(&mut self, event: &T) -> Result<(), CaptureServiceError> {
        self.channel.send(event, None).await.map_err(CaptureServiceError::Talk)
    }
}
