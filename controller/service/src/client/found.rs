//! Finding out what a service of this host serves, before it is used without having been named.
//!
//! # Design
//! *A service that does not answer is not used.* The caller can carry the command out itself, so nothing here
//! waits for long, and whatever a socket says is one of the reasons of [`NoService`].

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jig_lab::DescribedRig;
use nix::unistd::geteuid;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{CallError, RigClient};
use crate::protocol::{DescribeRig, Hello, error_code};

/// How long a service may take to say what it serves. It reads no file that it has not read within the
/// last second, so it answers in milliseconds unless it hangs or the host is overloaded.
const ANSWER: Duration = Duration::from_secs(2);

/// What a service of this host serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRig {
    /// What describes the rig.
    pub rig: DescribedRig,
    /// Whether the service runs as this user.
    pub same_user: bool,
    /// The version of its program, where that is another one; may hold any text.
    pub other_version: Option<String>,
}

/// Says why a socket leads to no service that can be used.
#[derive(Debug, thiserror::Error)]
pub enum NoService {
    /// There is no socket.
    #[error("there is none")]
    Absent,
    /// No process listens on it.
    #[error("the service that made it has ended")]
    Stale,
    /// This user may not connect to this socket.
    #[error("this user has no right to connect (see: ls -l {0:?})")]
    Denied(PathBuf),
    /// It is served by a user who has no right to this folder.
    #[error("user {uid} serves it, to whom its folder does not belong")]
    Stranger {
        /// The user.
        uid: u32,
    },
    /// The service has another version.
    #[error("the service is jig {program}")]
    Version {
        /// The version of its program; may hold any text.
        program: String,
    },
    /// The service does not answer in time.
    #[error("nothing was answered within {ANSWER:?}")]
    Silent,
    /// The service answers something else, or hangs up.
    #[error("no answer of a service")]
    Answer(#[source] CallError),
    /// The socket cannot be used.
    #[error("it cannot be used")]
    Socket(#[source] io::Error),
}

impl NoService {
    /// Tells whether there is something that its owner should know.
    pub fn is_worth_telling(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// Asks a service of this host what it serves. Greets as `version`.
///
/// # Errors
/// There is no service that this user may use, or one of another version that does not say what it serves.
pub async fn find_service(socket: &Path, version: &str, by: &str) -> Result<FoundRig, NoService> {
    match std::fs::symlink_metadata(socket) {
        Ok(about) if about.file_type().is_socket() => {}
        Ok(_) => return Err(NoService::Absent),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(NoService::Absent),
        // A folder that this user may not enter is another user's business.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(NoService::Denied(socket.to_owned()));
        }
        Err(error) => return Err(NoService::Socket(error)),
    }
    let asked = timeout(ANSWER, ask(socket, version, by)).await;
    asked.unwrap_or(Err(NoService::Silent))
}

async fn ask(socket: &Path, version: &str, by: &str) -> Result<FoundRig, NoService> {
    let stream = UnixStream::connect(socket).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NoService::Absent,
        io::ErrorKind::ConnectionRefused => NoService::Stale,
        io::ErrorKind::PermissionDenied => NoService::Denied(socket.to_owned()),
        // Its queue is full.
        io::ErrorKind::WouldBlock => NoService::Silent,
        _ => NoService::Socket(error),
    })?;
    let uid = stream.peer_cred().map_err(NoService::Socket)?.uid();
    let same_user = uid == geteuid().as_raw();
    let owner = || socket.parent().and_then(|folder| std::fs::metadata(folder).ok());
    if !same_user && uid != 0 && owner().is_none_or(|folder| folder.uid() != uid) {
        return Err(NoService::Stranger { uid });
    }
    let (from, to) = stream.into_split();
    let client = RigClient::over(from, to);
    let host = client.hello(&Hello::of(version, by)).await.map_err(NoService::Answer)?;
    let other_version: Option<String> =
        (host.program != version).then(|| host.program.chars().take(64).collect());
    let asked = client.call(&DescribeRig {});
    let answered = match &other_version {
        None => asked.await,
        // A service of another version may never answer what it does not understand.
        Some(_) => timeout(ANSWER / 2, asked).await.unwrap_or(Err(CallError::Lost(None))),
    };
    let rig = answered.map_err(|error| {
        let is_unknown = |error: &CallError| {
            matches!(error, CallError::Refused(error) if error.code == error_code::UNKNOWN_METHOD)
        };
        match &other_version {
            Some(program) => NoService::Version { program: program.clone() },
            None if is_unknown(&error) => NoService::Version { program: version.to_owned() },
            None => NoService::Answer(error),
        }
    })?;
    Ok(FoundRig { rig, same_user, other_version })
}
