//! What callers look at in the rig.

use std::sync::Arc;

use jig_lab::{RigQuery, RigView, look};
use jig_model::Fault;
use tokio::runtime::Handle;

use super::RigHost;
use super::refusal::refused;
use crate::protocol::RequestError;

/// Looks at the rig; waits for the disk on a thread of its own.
pub(super) async fn view(host: &Arc<RigHost>, query: RigQuery) -> Result<RigView, RequestError> {
    let (host, runtime) = (Arc::clone(host), Handle::current());
    let seen = tokio::task::spawn_blocking(move || {
        runtime.block_on(look(&host.lab, &query)).map_err(|error| (host.refuse)(error))
    });
    match seen.await {
        Ok(seen) => seen.map_err(RequestError::of_refusal),
        Err(error) => Err(refused(&error, Fault::Bug)),
    }
}
