//! An emulated board without a debug port that this process holds: its emulator loads its image.

use std::path::Path;
use std::sync::Arc;

use jig_drivers::qemu::QemuFactory;
use jig_model::chain;
use jig_model::image::{DeployReport, Image, ImageSource};
use jig_model::protocol::{BindContext, DriverError, NoLedger, Protocols, SharedSink};
use jig_rig::store::PlaceLock;
use tempfile::TempDir;

use super::ProbeCommandError;
use super::target::{CommandTarget, read};
use crate::BindError;

/// An emulated board without a debug port.
pub(super) struct PlainBoard {
    protocols: Protocols,
    lock: PlaceLock,
    /// Holds a copy of the image: what a reset boots is what was checked.
    folder: TempDir,
}

impl PlainBoard {
    /// Binds the board, which has no power yet.
    pub(super) fn bind(
        target: &CommandTarget<'_>,
        lock: PlaceLock,
        sink: SharedSink,
    ) -> Result<Self, ProbeCommandError> {
        let folder = tempfile::tempdir().map_err(ProbeCommandError::Folder)?;
        let context = BindContext {
            profile: Arc::clone(&target.profile),
            place: Arc::new(target.place.clone()),
            sink,
            evidence: folder.path().to_owned(),
            images: target.catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        let (protocols, _) = QemuFactory.bind_with_machine(context).map_err(BindError::from)?;
        Ok(Self { protocols, lock, folder })
    }

    /// Reads an image and keeps a copy of it.
    pub(super) fn take(
        &self,
        target: &CommandTarget<'_>,
        named: &Path,
    ) -> Result<Image, ProbeCommandError> {
        let wrong = |source| ProbeCommandError::Image { image: named.to_owned(), source };
        let source = ImageSource::of(named, Path::exists).map_err(wrong)?;
        let bytes = read(&source.path, target.profile.image_file_limit())?;
        // The kind of an image is also told by its name.
        let name = source.path.file_name().unwrap_or("image".as_ref());
        let path = self.folder.path().join(name);
        let image = Image::parse_from(&source, &bytes, &target.profile).map_err(wrong)?;
        std::fs::write(&path, &bytes).map_err(ProbeCommandError::Folder)?;
        Ok(Image { path, ..image })
    }

    /// Puts an image on the board and boots it.
    pub(super) async fn flash(&mut self, image: &Image) -> Result<DeployReport, ProbeCommandError> {
        let Some(flasher) = &mut self.protocols.flasher else { return Err(self.not_bound()) };
        let report = flasher.deploy(image).await.map_err(ProbeCommandError::Driver)?;
        self.on().await?;
        Ok(report)
    }

    /// Gives the board power.
    pub(super) async fn on(&mut self) -> Result<(), ProbeCommandError> {
        match &mut self.protocols.power {
            Some(power) => power.on().await.map_err(ProbeCommandError::Driver),
            None => Err(self.not_bound()),
        }
    }

    /// Resets the board.
    pub(super) async fn reset(&mut self) -> Result<(), ProbeCommandError> {
        match &mut self.protocols.reset {
            Some(reset) => reset.reset().await.map_err(ProbeCommandError::Driver),
            None => Err(self.not_bound()),
        }
    }

    fn not_bound(&self) -> ProbeCommandError {
        ProbeCommandError::NotBound(self.lock.place().clone())
    }

    /// Takes the power and gives the place up.
    pub(super) async fn release(mut self) {
        let off = match &mut self.protocols.power {
            Some(power) => power.off().await,
            None => Ok::<_, DriverError>(()),
        };
        if let Err(error) = off {
            tracing::warn!(error = chain(&error), "the emulated board was not switched off");
        }
    }
}
