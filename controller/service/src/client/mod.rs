//! The caller's side: a connection to a rig's host, and a rig behind it that is used as one of this
//! host.
//!
//! # Design
//! *A run at the rig has a copy here*, in the folder of runs of the caller: its console logs grow with
//! those of the rig, and at the end every file is fetched and compared by its digest. So whatever
//! shows, reports or exports runs needs not know where a run took place.
//!
//! *A lost connection is made anew*, and what was followed goes on at its offset.

mod connection;
mod fetch;
mod found;
mod leave;
mod mirror;
mod remote;
#[cfg(test)]
mod tests;
mod upload;
mod watch;

pub use connection::{CallError, RigClient};
pub use fetch::{FetchedRun, MOST_RECORDS, RunPart};
pub use found::{FoundRig, NoService, find_service};
pub use mirror::MirrorError;
pub use remote::{Connect, Connected, GoesOn, Patience, RemoteRig, RemoteRigError};
pub use upload::UploadError;
pub use watch::WatchedPiece;
