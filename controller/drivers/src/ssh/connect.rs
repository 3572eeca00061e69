//! A TCP connection to a host, with a limit of time for all its addresses together.

use std::io;
use std::net::TcpStream as StdStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::SshError;
use super::options::Hop;

/// Connects to the host.
///
/// # Errors
/// The name does not resolve, or no address accepts in time.
pub(super) async fn connect(hop: &Hop) -> Result<OwnedFd, SshError> {
    let at = hop.at();
    let until = Instant::now() + hop.connect_timeout;
    let late = |what| SshError::Timeout { at: at.clone(), what, after: hop.connect_timeout };
    let found = timeout_at(until, lookup_host((hop.host.as_str(), hop.port))).await;
    let found = found.map_err(|_| late("address for the name"))?;
    let addresses: Vec<_> = match found {
        Ok(addresses) => addresses.collect(),
        Err(source) => return Err(SshError::Resolve { at, source: Arc::new(source) }),
    };
    let mut failed = late("TCP connection");
    for (index, address) in addresses.iter().enumerate() {
        // An address that does not answer leaves time for the others.
        let shares = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = until.saturating_duration_since(Instant::now()) / shares;
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let prepared = stream.set_nodelay(true).and_then(|()| stream.into_std());
                return prepared
                    .map(|stream: StdStream| OwnedFd::from(stream))
                    .map_err(|source| SshError::system(&at, "prepare the connection", source));
            }
            Ok(Err(source)) if source.kind() == io::ErrorKind::ConnectionRefused => {
                failed = SshError::Refused { at: at.clone() };
            }
            Ok(Err(source)) => {
                failed = SshError::Unreachable { at: at.clone(), source: Arc::new(source) };
            }
            Err(_) => failed = late("TCP connection"),
        }
    }
    Err(failed)
}
