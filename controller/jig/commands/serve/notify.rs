//! Status messages to a service manager (sd_notify(3)).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a status if a service manager has asked for it. Errors are ignored.
pub(super) fn tell(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    let told = || {
        let socket = UnixDatagram::unbound()?;
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&name)?,
        };
        socket.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(error) = told() {
        tracing::warn!(%error, "the service manager was not told {state}");
    }
}
