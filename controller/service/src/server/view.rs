//! What callers look at in the rig.

use std::sync::Arc;

use jig_lab::{RigQuery, RigView, look_again};
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
        let reader = host.catalogue.reader();
        let seen = runtime.block_on(look_again(reader, &gate.config(), &query));
        let seen = seen.map_err(|error| RequestError::of_refusal((host.refuse)(error)))?;
        gate.filtered(seen)
    });
    seen.await.unwrap_or_else(|error| Err(refused(&error, Fault::Bug)))
}
