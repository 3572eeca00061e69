//! Watching a run at the rig while it grows.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_model::RunId;

use super::remote::{GoesOn, RemoteRig};
use super::{CallError, MirrorError, RemoteRigError, RigClient};
use crate::protocol::{EVENTS, RunPiece, WatchRun};

/// The next bytes of a file of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedPiece {
    /// Path of the file within the run: `events.jsonl`, or a console's `consoles/<attempt>/<name>.raw`.
    pub path: String,
    /// The bytes; none where the file has just been found.
    pub bytes: Vec<u8>,
}

impl RemoteRig {
    /// Tells events and consoles of a run until it has ended; of the consoles, from their begin or
    /// `from_now` on. A lost connection is made anew, and nothing is told twice.
    ///
    /// # Errors
    /// The host cannot be reached, or refuses.
    pub async fn watch(
        &self,
        run: &RunId,
        from_now: bool,
        mut tell: impl FnMut(WatchedPiece),
    ) -> Result<(), RemoteRigError> {
        let goes_on = GoesOn::Run(run.clone());
        let mut link = self.link().await?;
        let mut watch = WatchRun { run: run.clone(), have: BTreeMap::new(), from_now };
        loop {
            match watch_until_lost(&link.client, &mut watch, &mut tell).await {
                Err(error) if error.is_lost() => link = self.link_again(&goes_on).await?,
                Err(MirrorError::Call(error)) => return Err(error.into()),
                Err(source) => {
                    let (run, host) = (run.clone(), self.host());
                    return Err(RemoteRigError::Mirror { run, host, source });
                }
                Ok(()) => return Ok(()),
            }
        }
    }
}

async fn watch_until_lost(
    client: &RigClient,
    watch: &mut WatchRun,
    tell: &mut impl FnMut(WatchedPiece),
) -> Result<(), MirrorError> {
    let mut stream = client.stream(watch).await?;
    while let Some(item) = stream.next().await {
        let RunPiece { path, offset, data, .. } = serde_json::from_value(item)
            .map_err(|source| CallError::Stranger { method: "run.watch", source })?;
        let bytes = BASE64_STANDARD.decode(data)?;
        // The last file of each look: from here on the caller knows where it stands.
        watch.from_now &= path != EVENTS;
        let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        watch.have.insert(path.clone(), offset.saturating_add(len));
        tell(WatchedPiece { path, bytes });
    }
    Ok(stream.answer::<WatchRun>().await.map(|_| ())?)
}
