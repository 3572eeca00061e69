//! The capture service's end of its socket.

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

/// How long to wait where the system has no descriptor left for another caller.
const BREATH: Duration = Duration::from_millis(100);

/// A socket at which a capture service is asked. Removed when dropped.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
}

/// Somebody of this user who asks something.
#[derive(Debug)]
pub struct Caller {
    channel: Channel,
}

impl Door {
    /// Listens. What another capture service has left there is removed: whoever calls this knows
    /// that no other one lives. Call within a tokio runtime that has I/O enabled.
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
        // Others are turned away all the same; so they do not even connect.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(door)
    }

    /// Waits for the next caller of this user; others are hung up on. Cancel-safe.
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

    /// Waits for the request; nothing where the caller has gone.
    ///
    /// # Errors
    /// The caller says nothing that can be understood.
    pub async fn request(&mut self) -> Result<Option<CaptureCall>, CaptureServiceError> {
        self.next().await
    }

    /// Waits for what the caller says next; nothing where it has gone. Cancel-safe.
    ///
    /// # Errors
    /// The caller says nothing that can be understood.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, CaptureServiceError> {
        match self.channel.receive().await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            said => said.map_err(CaptureServiceError::Talk),
        }
    }

    /// Answers, with a descriptor where one is part of it.
    ///
    /// # Errors
    /// The caller has gone.
    pub async fn answer(
        &mut self,
        answer: &CaptureAnswer,
        fd: Option<&OwnedFd>,
    ) -> Result<(), CaptureServiceError> {
        self.channel.send(answer, fd).await.map_err(CaptureServiceError::Talk)
    }

    /// Tells something that is no answer.
    ///
    /// # Errors
    /// The caller has gone.
    pub async fn tell<T: Serialize>(&mut self, event: &T) -> Result<(), CaptureServiceError> {
        self.channel.send(event, None).await.map_err(CaptureServiceError::Talk)
    }
}
