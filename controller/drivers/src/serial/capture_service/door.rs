//! Server end of the capture service's socket.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_model::capture_service::{CaptureAnswer, CaptureCall};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixListener;

use super::CaptureServiceError;
use super::channel::{Channel, short};

/// Pause when the system has no descriptor left for another caller.
const BREATH: Duration = Duration::from_millis(100);

/// The socket of a capture service; removed when dropped.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
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
        let failed = |source| CaptureServiceError::Socket { path: path.to_owned(), source };
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let near = short(path).map_err(failed)?;
        let listener = UnixListener::bind(&near.path).map_err(failed)?;
        let door = Self { listener, path: path.to_owned() };
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
            match Channel::of(stream) {
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
