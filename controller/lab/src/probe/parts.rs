//! Flashing and resetting a board by other parts than a debug probe: a program, a line, an
//! outlet, the power.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{
    BoardResetCommand, DeployReply, EventSink, FlashImageCommand, ProbeAccess, Reply, ResetMethod,
    ResetReply,
};
use jig_model::profile::Deploy;
use jig_model::protocol::{BindContext, DriverFactory as _, NoLedger, Protocols};
use jig_model::rig_file::{MissingPart, Needed, ResetPart};
use jig_rig::store::PlaceLock;
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use super::port::image_of;
use super::sink::ConsoleSink;
use super::target::Target;
use crate::{BindError, Lab};

/// Tells whether a program puts the image on the board, and not a debug probe: where the place or
/// its profile names one, and the caller asks for nothing that only a probe can do.
pub(super) fn flashed_by_program(
    target: &Target<'_>,
    command: &FlashImageCommand,
) -> Result<bool, MissingPart> {
    let Target { place, profile, access, .. } = target;
    if access.selector.is_some() || place.is_emulated() {
        return Ok(false);
    }
    match profile.deploy_at(place) {
        Some(Deploy::Command(_)) if !wants_probe(command) => Ok(true),
        Some(Deploy::Command(_)) => {
            place.needs(Needed::Probe, profile, "`flash` with an option of a probe")?;
            Ok(false)
        }
        Some(Deploy::EmulatorLoader | Deploy::ImageSet | Deploy::Probe) => Ok(false),
        None => place.needs(Needed::Flasher, profile, "`flash`").map(|()| false),
    }
}

/// Tells whether a command says something that only a debug probe can do.
fn wants_probe(command: &FlashImageCommand) -> bool {
    let FlashImageCommand { place: _, probe, image: _, verify, start, preserve, skip_equal } =
        command;
    names_probe(probe) || !verify || !start || !preserve.is_empty() || !skip_equal
}

/// Tells whether an access says anything of a debug probe.
fn names_probe(access: &ProbeAccess) -> bool {
    *access != ProbeAccess { wait_ms: access.wait_ms, ..ProbeAccess::default() }
}

/// Returns what resets the board, if not a debug probe.
pub(super) fn reset_by_part(
    target: &Target<'_>,
    command: &BoardResetCommand,
) -> Result<Option<ResetMethod>, MissingPart> {
    let Target { place, profile, access, .. } = target;
    if access.selector.is_some() || place.is_emulated() {
        return Ok(None);
    }
    if command.halt {
        return place.needs(Needed::Probe, profile, "`reset --halt`").map(|()| None);
    }
    if names_probe(&command.probe) {
        return place
            .needs(Needed::Probe, profile, "`reset` with an option of a probe")
            .map(|()| None);
    }
    place.needs(Needed::Reset, profile, "`reset`")?;
    Ok(place.reset_part().as_ref().and_then(method))
}

fn method(part: &ResetPart) -> Option<ResetMethod> {
    match part {
        ResetPart::Probe => None,
        ResetPart::Power => Some(ResetMethod::Power),
        ResetPart::Line { .. } => Some(ResetMethod::Line),
        ResetPart::Outlet(_) => Some(ResetMethod::Outlet),
        ResetPart::Command(_) => Some(ResetMethod::Command),
    }
}

impl Lab {
    /// Flashes a board by its program, and boots the image where the place has a reset.
    pub(super) async fn flash_by_program(
        &self,
        target: &Target<'_>,
        image: &Path,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let (image, _) = image_of(image, &target.profile)?;
        let _held = self.hold_parts(target, events, cancel).await?;
        let evidence = tempfile::tempdir().map_err(ProbeCommandError::Folder)?;
        let mut parts = self.bind_parts(target, evidence.path().to_owned())?;
        let place = target.place.name.clone();
        let Some(flasher) = &mut parts.flasher else {
            return Err(ProbeCommandError::NotBound(place));
        };
        let deployed = tokio::select! {
            deployed = flasher.deploy(&image) => deployed,
            () = cancel.cancelled() => {
                let evidence = evidence.keep();
                return Err(ProbeCommandError::FlashCancelled { place, evidence });
            }
        };
        let report = deployed.map_err(|error| {
            // What the program said stays for whoever asks why.
            ProbeCommandError::Flasher { error, evidence: evidence.keep() }
        })?;
        if let Some(reset) = &mut parts.reset {
            reset.reset().await.map_err(ProbeCommandError::Driver)?;
        }
        Ok(Reply::Deployed(DeployReply { place, report }))
    }

    /// Resets a board by what the place has for it.
    pub(super) async fn reset_by(
        &self,
        method: ResetMethod,
        target: &Target<'_>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let _held = self.hold_parts(target, events, cancel).await?;
        let evidence = tempfile::tempdir().map_err(ProbeCommandError::Folder)?;
        let mut parts = self.bind_parts(target, evidence.path().to_owned())?;
        match &mut parts.reset {
            Some(reset) => tokio::select! {
                biased;
                done = reset.reset() => done.map_err(ProbeCommandError::Driver)?,
                // A line or an outlet is not left half-way.
                () = cancel.cancelled(), if method == ResetMethod::Command => {
                    return Err(ProbeCommandError::Cancelled(target.place.name.clone()));
                }
            },
            None => return Err(ProbeCommandError::NotBound(target.place.name.clone())),
        }
        Ok(Reply::Reset(ResetReply { place: target.place.name.clone(), method }))
    }

    /// Takes the place, and those that may lose their power with it if its power is switched.
    async fn hold_parts(
        &self,
        target: &Target<'_>,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Vec<PlaceLock>, ProbeCommandError> {
        if target.place.reset_part() != Some(ResetPart::Power) {
            return Ok(vec![target.lock(events, cancel).await?]);
        }
        let switch = self.switch_of(&target.place)?;
        let wait = Duration::from_millis(target.access.wait_ms);
        tokio::select! {
            biased;
            held = self.hold_switched(&switch, wait, false, events) => Ok(held?),
            () = cancel.cancelled() => Err(ProbeCommandError::Waiting(target.place.name.clone())),
        }
    }

    /// Binds all parts of a place; what its consoles print is thrown away.
    fn bind_parts(
        &self,
        target: &Target<'_>,
        evidence: PathBuf,
    ) -> Result<Protocols, ProbeCommandError> {
        let context = BindContext {
            profile: Arc::clone(&target.profile),
            place: Arc::new(target.place.clone()),
            sink: Arc::new(ConsoleSink::new(None)),
            evidence,
            images: target.catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        Ok(self.parts().bind(context).map_err(BindError::from)?)
    }
}
