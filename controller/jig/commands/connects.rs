//! Connections to rigs of this host: to a service behind a socket, and to this process itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jig_model::command::Refusal;
use jig_model::protocol::BoxFuture;
use jig_model::{Fault, Identity};
use jig_rig::store::host_name;
use jig_service::client::{Connect, Connected};
use jig_service::server::{RigHost, serve};
use tokio::io::{duplex, split};
use tokio::net::UnixStream;

use crate::args::own_name;
use crate::failure::chain;

/// Says who calls: `user@host`.
pub(super) fn caller() -> String {
    let user = own_name();
    format!("{user}@{}", host_name())
}

/// Bytes that wait between both ends of a connection within this process: as in a pipe.
const OWN_BUFFER: usize = 64 << 10;

/// Connects to `jig serve` of this host.
pub(super) struct SocketConnect(pub(super) PathBuf);

impl Connect for SocketConnect {
    fn host(&self) -> String {
        format!("unix:{}", self.0.display())
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        Box::pin(async {
            let connected = UnixStream::connect(&self.0).await;
            let (from, to) = connected.map_err(|error| unreachable(&self.0, &error))?.into_split();
            Ok(Connected { from: Box::new(from), to: Box::new(to) })
        })
    }
}

/// Serves the rig of this host to this process.
pub(super) struct OwnConnect {
    pub(super) host: Arc<RigHost>,
    pub(super) identity: Identity,
}

impl Connect for OwnConnect {
    fn host(&self) -> String {
        "this host".to_owned()
    }

    fn connect(&self) -> BoxFuture<'_, Result<Connected, Refusal>> {
        let (near, far) = duplex(OWN_BUFFER);
        let (from, to) = split(far);
        // Ends with the other side.
        tokio::spawn(serve(Arc::clone(&self.host), self.identity.clone(), from, to));
        let (from, to) = split(near);
        Box::pin(async { Ok(Connected { from: Box::new(from), to: Box::new(to) }) })
    }
}

fn unreachable(socket: &Path, error: &std::io::Error) -> Refusal {
    let message = format!("cannot connect to {}: {}", socket.display(), chain(error));
    let help = Some(match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "another user serves this rig; one who may let you \
            in starts it with a group of yours: jig serve --socket-mode 660 --socket-group GROUP"
        }
        _ => "start `jig serve`, which names its socket",
    });
    let help = help.map(str::to_owned);
    Refusal { fault: Fault::Lab, message, help, problems: Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_socket_of_another_user_is_not_started_again_but_asked_for() {
        let of = |kind: io::ErrorKind| unreachable(Path::new("/run/r.sock"), &kind.into());
        let denied = of(io::ErrorKind::PermissionDenied);
        assert_eq!(denied.fault, Fault::Lab);
        assert!(denied.message.contains("/run/r.sock: permission denied"), "{denied:?}");
        assert!(denied.help.as_deref().unwrap().contains("--socket-group"), "{denied:?}");
        let absent = of(io::ErrorKind::NotFound);
        assert!(absent.help.as_deref().unwrap().starts_with("start `jig serve`"), "{absent:?}");
    }
}
