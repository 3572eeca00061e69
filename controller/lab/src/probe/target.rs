//! The place that a command is about, and how the caller wants to get at it.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::PlaceName;
use jig_model::command::{EventSink, ProbeAccess};
use jig_model::profile::BoardProfile;
use jig_model::rig_file::{Place, ProbePart};
use jig_probe::{AttachMode, AttachOptions, ChipDescription, Payload, check_flashable};
use jig_rig::store::{PlaceLock, read_whole};
use jig_rig::workflow::CancelToken;
use tokio::sync::OwnedMutexGuard;

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

    /// Returns how to attach to a probe: as the caller says, else as the place does. A chip that is
    /// described is taken as described.
    pub(super) fn options(
        &self,
        bound: &ProbePart,
        described: Option<&ChipDescription>,
    ) -> AttachOptions {
        let access = &self.access;
        let mut options = AttachOptions {
            chip: access.chip.clone(),
            speed_khz: access.speed_khz.or(bound.speed_khz),
            protocol: access.protocol.or(bound.protocol),
            allow_unlock: access.allow_unlock,
            wait: Duration::from_millis(access.wait_ms),
            ..AttachOptions::default()
        };
        if access.under_reset || bound.under_reset {
            options.mode = AttachMode::UnderReset;
        }
        if options.chip.is_some() {
            return options;
        }
        match described {
            Some(described) => {
                options.chip = Some(described.chip.clone());
                options.chip_description = Some(described.text.clone());
            }
            None => options.chip = bound.chip.clone().or_else(|| self.profile.chip.clone()),
        }
        options
    }

    /// Refuses an image that cannot be written to the chip behind the place's probe, as far as the
    /// chip's description tells. Touches no hardware.
    pub(super) fn check_flashable(&self, payload: &Payload) -> Result<(), ProbeCommandError> {
        let bound = match (&self.place.probe, &self.access.selector) {
            (Some(bound), _) => bound.clone(),
            (None, Some(_)) if !self.place.is_emulated() => ProbePart::default(),
            (None, _) => return Ok(()),
        };
        // What describes itself is no chip that is known beforehand.
        if self.access.chip.is_none() && ChipDescription::at_place(&self.profile, &bound).is_some()
        {
            return Ok(());
        }
        let options = self.options(&bound, None);
        let Some(chip) = options.chip else { return Ok(()) };
        check_flashable(&chip, payload).map_err(|error| {
            let place = self.place.name.clone();
            ProbeCommandError::Probe { place, error }
        })
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

/// The places that a command has for itself.
pub(super) enum CommandLocks {
    /// It has taken them.
    Own(Vec<PlaceLock>),
    /// This process holds them for several commands, one of which uses them at a time.
    Held(OwnedMutexGuard<Vec<PlaceLock>>),
}

impl Deref for CommandLocks {
    type Target = [PlaceLock];

    fn deref(&self) -> &[PlaceLock] {
        match self {
            Self::Own(locks) => locks,
            Self::Held(locks) => locks,
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
