//! Both ends of the capture service's socket.
//!
//! Owns the server end ([`Door`]), the client, and the passing of descriptors between them. The
//! messages are defined in `jig_model::capture_service`; this module decides nothing about them.
//! Each end accepts only a peer of its own user, whose identity the kernel reports.

mod channel;
mod client;
mod door;
#[cfg(test)]
mod tests;
mod transport;

use std::io;
use std::path::PathBuf;

pub use channel::LineSender;
pub use client::{
    HeldBack, LineClient, WriterClient, give_way, release_port, set_line, status, writer,
};
pub use door::{Caller, Door};
pub(super) use transport::borrow;

/// Error of a connection to the capture service.
#[derive(Debug, thiserror::Error)]
pub enum CaptureServiceError {
    /// The socket cannot be made or used.
    #[error("use the capture service's socket {}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The other end is no capture service, or none of this user.
    #[error("{} {why}", path.display())]
    Stranger {
        /// The socket.
        path: PathBuf,
        /// What it did, with no subject.
        why: String,
    },
    /// The service refuses the request.
    #[error("jig serve refuses: {0}")]
    Refused(String),
    /// The connection has failed.
    #[error("talk to jig serve")]
    Talk(#[source] io::Error),
}
