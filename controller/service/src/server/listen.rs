//! The socket of a rig's host, for callers of the same host.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::{Identity, chain};
use jig_rig::identity::of_uid;
use nix::unistd::{Uid, geteuid};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{RigHost, serve};

/// Most callers at a time; further ones are hung up on.
const MOST_CALLERS: usize = 256;

/// Pause when the system has no descriptor left for another caller.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that callers connect to; removed when dropped.
#[derive(Debug)]
pub struct RpcListener {
    listener: UnixListener,
    path: PathBuf,
}

impl RpcListener {
    /// Listens on a socket that only this user may connect to. Removes one that an earlier process
    /// left: the caller holds the lock which proves that no other process serves. Call within a tokio
    /// runtime that has I/O enabled.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn open(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        let listener = Self { listener, path: path.to_owned() };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Serves callers of this user, and root, until the future is dropped.
    pub async fn run(&self, host: Arc<RigHost>) {
        let mut callers = JoinSet::new();
        loop {
            while callers.try_join_next().is_some() {}
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a caller was not let in");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let Some(identity) = identity_of(&stream) else {
                tracing::warn!("a caller of another user was turned away");
                continue;
            };
            if callers.len() >= MOST_CALLERS {
                tracing::warn!("too many callers: one was hung up on");
                continue;
            }
            let host = Arc::clone(&host);
            callers.spawn(async move {
                let (from, to) = stream.into_split();
                if let Err(error) = serve(host, identity, from, to).await {
                    tracing::warn!(error = chain(&error), "a caller was cut off");
                }
            });
        }
    }
}

impl Drop for RpcListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Names the user at the other end; none for another one than this process' and root.
fn identity_of(stream: &UnixStream) -> Option<Identity> {
    let peer = Uid::from_raw(stream.peer_cred().ok()?.uid());
    if peer != geteuid() && !peer.is_root() {
        return None;
    }
    Some(of_uid(peer))
}
