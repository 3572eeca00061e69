//! What callers look at in the rig.

use std::sync::Arc;

use jig_lab::{RigQuery, RigSource, RigView, look_at};
use jig_model::Fault;
use tokio::runtime::Handle;

use super::RigHost;
use super::gate::AccessGate;
use super::refusal::refused;
use crate::protocol::RequestError;

/// Looks at the rig for a caller; waits for the disk on a thread of its own.
pub(super) async fn view(
    (host, gate): (&Arc<RigHost>, &Arc<AccessGate>),
    query: RigQuery,
) -> Result<RigView, RequestError> {
    let (host, gate, runtime) = (Arc::clone(host), Arc::clone(gate), Handle::current());
    let seen = tokio::task::spawn_blocking(move || {
        // What the gate has read of the rig is as new as what it has decided by.
        let rig = RigSource::new(gate.config(), gate.catalogue().ok());
        let seen = runtime.block_on(look_at(&rig, &query));
        let seen = seen.map_err(|error| RequestError::of_refusal((host.refuse)(error)))?;
        gate.filtered(seen)
    });
    seen.await.unwrap_or_else(|error| Err(refused(&error, Fault::Bug)))
}
