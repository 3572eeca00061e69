//! The socket of a rig's host, for callers of the same host.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jig_model::{Identity, chain};
use jig_rig::identity::of_uid;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, chown, geteuid};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{RigHost, serve};

/// Most callers at a time, and most of one user, who so leaves room for the others; further ones are
/// hung up on, and come again.
const MOST_CALLERS: usize = 256;
const MOST_OF_USER: usize = 192;

/// How long it is not told again that there are too many: thousands of them fill no log.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// Pause when the system has no descriptor left for another caller.
const PAUSE: Duration = Duration::from_millis(100);

/// Who may connect to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketAccess {
    /// Permissions of the socket; connecting takes the right to write.
    pub mode: u32,
    /// Group of the socket, if not that of this process.
    pub group: Option<Gid>,
}

impl SocketAccess {
    /// Permissions of a socket that this user alone may connect to.
    pub const OWN: Self = Self { mode: 0o600, group: None };

    /// Tells whether other users than this one are meant to connect.
    fn admits_others(self) -> bool {
        self.mode & 0o022 != 0
    }
}

/// A socket that callers connect to; removed when dropped.
#[derive(Debug)]
pub struct RpcListener {
    listener: UnixListener,
    path: PathBuf,
    access: SocketAccess,
}

impl RpcListener {
    /// Listens on a socket. Removes one that an earlier process left: the caller holds the lock which
    /// proves that no other process serves. Call within a tokio runtime that has I/O enabled, and
    /// before other threads make files: the file mask of the process changes for a moment.
    ///
    /// # Errors
    /// The socket cannot be made, or this user may not give it to the group.
    pub fn open(path: &Path, access: SocketAccess) -> io::Result<Self> {
        Ok(Self { listener: bind_socket(path, access)?, path: path.to_owned(), access })
    }

    /// Serves callers until the future is dropped: those of this user, root, and any other user whom
    /// the permissions of the socket let connect, where they admit others.
    pub async fn run(&self, host: Arc<RigHost>) {
        let mut callers = JoinSet::new();
        let mut of_user = BTreeMap::<u32, usize>::new();
        let mut told: Option<Instant> = None;
        loop {
            while let Some(ended) = callers.try_join_next() {
                if let Some(count) = ended.ok().and_then(|uid| of_user.get_mut(&uid)) {
                    *count = count.saturating_sub(1);
                }
            }
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a caller was not let in");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some((uid, identity)) = identity_of(&stream, self.access) else {
                tracing::warn!("a caller of another user was turned away");
                continue;
            };
            let count = of_user.entry(uid).or_default();
            if callers.len() >= MOST_CALLERS || *count >= MOST_OF_USER {
                if told.is_none_or(|told| told.elapsed() >= TOLD_AGAIN) {
                    tracing::warn!(%identity, "too many callers: further ones are hung up on");
                    told = Some(Instant::now());
                }
                continue;
            }
            *count += 1;
            let host = Arc::clone(&host);
            callers.spawn(async move {
                let (from, to) = stream.into_split();
                if let Err(error) = serve(host, identity, from, to).await {
                    tracing::warn!(error = chain(&error), "a caller was cut off");
                }
                uid
            });
        }
    }
}

/// Listens on a socket as [`RpcListener::open`] does; the caller removes it.
///
/// # Errors
/// The socket cannot be made, or another file than a socket is there.
pub fn bind_socket(path: &Path, access: SocketAccess) -> io::Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.file_type().is_socket() => std::fs::remove_file(path)?,
        // Binding fails, and the file stays.
        Ok(_) | Err(_) => {}
    }
    // No other user can connect before the socket has its group and permissions.
    let before = umask(Mode::S_IRWXG | Mode::S_IRWXO);
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound?;
    let opened = access.group.map_or(Ok(()), |group| Ok(chown(path, None, Some(group))?));
    let mode = std::fs::Permissions::from_mode(access.mode);
    if let Err(error) = opened.and_then(|()| std::fs::set_permissions(path, mode)) {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(listener)
}

impl Drop for RpcListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Names the user at the other end; none for a user who is not admitted.
fn identity_of(stream: &UnixStream, access: SocketAccess) -> Option<(u32, Identity)> {
    let peer = Uid::from_raw(stream.peer_cred().ok()?.uid());
    if peer != geteuid() && !peer.is_root() && !access.admits_others() {
        return None;
    }
    Some((peer.as_raw(), of_uid(peer)))
}
