//! The place that a command is about, and how the caller wants to get at it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::PlaceName;
use jig_model::command::{EventSink, ProbeAccess};
use jig_model::profile::BoardProfile;
use jig_model::rig_file::Place;
use jig_rig::store::{PlaceLock, read_whole};
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use crate::hold::hold;
use crate::{Catalogue, CatalogueError};

/// A place that a command is about, and how to get at it.
pub(super) struct CommandTarget<'c> {
    pub(super) catalogue: &'c Catalogue,
    pub(super) place: Place,
    pub(super) profile: Arc<BoardProfile>,
    pub(super) access: ProbeAccess,
}

impl<'c> CommandTarget<'c> {
    /// Looks a place up.
    pub(super) fn of(
        catalogue: &'c Catalogue,
        place: &PlaceName,
        access: ProbeAccess,
    ) -> Result<Self, CatalogueError> {
        let (place, profile) = catalogue.place(place)?;
        Ok(Self { catalogue, place, profile, access })
    }

    /// Takes the place for this process.
    pub(super) async fn lock(
        &self,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<PlaceLock, ProbeCommandError> {
        let wait = Duration::from_millis(self.access.wait_ms);
        tokio::select! {
            biased;
            held = hold(self.catalogue, &self.place.name, wait, events) => Ok(held?),
            () = cancel.cancelled() => Err(ProbeCommandError::Waiting(self.place.name.clone())),
        }
    }
}

/// Most bytes of a file with symbols: the largest memory of a shipped board is 512 MiB, and
/// debug information takes some more.
pub(super) const MAX_SYMBOLS: u64 = 1 << 30;

/// Reads a file that the caller named, of at most `limit` bytes.
pub(super) fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ProbeCommandError> {
    read_whole(path, limit)
        .map_err(|source| ProbeCommandError::Unreadable { path: path.to_owned(), source })
}
