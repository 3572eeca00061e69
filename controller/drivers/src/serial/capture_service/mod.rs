//! Transports that another process keeps: how they are asked for, and how they are handed over.
//!
//! Owns the two ends of the capture service's socket ([`Door`] and the client), and the passing of
//! descriptors between them. What is said is the model's (`jig_model::capture service`); what is
//! done about it is decided elsewhere. Either end believes only a peer of its own user, which the
//! kernel vouches for.

mod channel;
mod client;
mod door;
#[cfg(test)]
mod tests;
mod transport;

use std::io;
use std::path::PathBuf;

pub use client::{HeldBack, WriterClient, give_way, let_go, status, writer};
pub use door::{Caller, Door};
pub(super) use transport::borrow;

/// Says why a capture service could not be talked to.
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
    /// It does not do it.
    #[error("jig serve refuses: {0}")]
    Refused(String),
    /// The connection has failed.
    #[error("talk to jig serve")]
    Talk(#[source] io::Error),
}
