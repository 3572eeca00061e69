//! Deployments that fail, or say that they did not.

use std::path::Path;
use std::sync::Arc;

use jig_model::Cause;
use jig_model::image::{DeployReport, Image, ImageSource};
use jig_model::profile::BoardProfile;
use jig_model::protocol::{BoxFuture, DriverError, Flasher};
use jig_model::rig_file::Place;

use super::catalogue::FaultKind;
use super::grammar::Argument;
use super::injector::Injector;
use crate::regular_file::read_regular;

/// Stands before a board's flasher.
pub(super) struct InjectedFlasher {
    pub(super) flasher: Box<dyn Flasher>,
    pub(super) injector: Injector,
    pub(super) profile: Arc<BoardProfile>,
    pub(super) place: Arc<Place>,
}

impl InjectedFlasher {
    /// Leaves the old image on the board, or one that is to count as the old one, and says
    /// that the new one was deployed. Nothing was read back, so nothing of it is claimed.
    async fn stale(
        &mut self,
        image: &Image,
        old: Argument,
        fault: usize,
    ) -> Result<DeployReport, DriverError> {
        let (method, words) = match old {
            Argument::File(path) => {
                let old = read(&path, &self.profile)?;
                let report = self.flasher.deploy(&old).await?;
                (report.method, format!("{} stays on the board", path.display()))
            }
            _ => (method(&self.profile, &self.place), "nothing was deployed".to_owned()),
        };
        self.injector.struck(fault, words);
        Ok(DeployReport {
            method,
            image: image.name.clone(),
            sha256: image.sha256.clone(),
            build_id: image.build_id.clone(),
            bytes: image.payload_bytes,
            ..DeployReport::default()
        })
    }

    fn lost(&self, words: &str) -> Option<DriverError> {
        let (fault, _) = self.injector.claim(FaultKind::LoseProbe)?;
        self.injector.struck(fault, format!("the probe was lost {words}"));
        let message = format!("deploy: the probe stopped answering {words}");
        Some(DriverError::new(Cause::ProbeLost, message))
    }

    async fn deploy_real(&mut self, image: &Image) -> Result<DeployReport, DriverError> {
        let Some(share) = self.injector.share_of(FaultKind::LoseProbe) else {
            return self.flasher.deploy(image).await;
        };
        let injector = self.injector.clone();
        let deployed = tokio::select! {
            // Behind the deployment is behind it, and not at its last step.
            () = injector.reached(share), if share < 100 => None,
            deployed = self.flasher.deploy(image) => Some(deployed),
        };
        match deployed {
            Some(deployed) => {
                self.injector.deployed(100);
                let deployed = deployed?;
                self.lost("behind the last byte").map_or(Ok(deployed), Err)
            }
            // Dropped on the way: the content of the board is unknown now.
            None => Err(self.lost(&format!("with {share} % written")).unwrap_or_else(|| {
                DriverError::new(Cause::DeployFailed, "the deployment was broken off")
            })),
        }
    }
}

impl Flasher for InjectedFlasher {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async move {
            self.injector.deployed(0);
            if let Some((fault, _)) = self.injector.claim(FaultKind::SilenceChip) {
                self.injector.struck(fault, "the chip did not answer".to_owned());
                let message = "attach: the chip does not answer the probe";
                return Err(DriverError::new(Cause::TargetUnresponsive, message));
            }
            if let Some(lost) = self.lost("before the first byte") {
                return Err(lost);
            }
            if let Some((fault, old)) = self.injector.claim(FaultKind::StaleImage) {
                return self.stale(image, old, fault).await;
            }
            let report = self.deploy_real(image).await?;
            self.injector.deployed(100);
            Ok(report)
        })
    }
}

/// Names how a board is deployed, as its own driver would.
fn method(profile: &BoardProfile, place: &Place) -> String {
    let deploy = profile.deploy_at(place);
    deploy.map_or("none", |deploy| deploy.method().as_str()).to_owned()
}

fn read(path: &Path, profile: &BoardProfile) -> Result<Image, DriverError> {
    let wrong = |why: &dyn std::error::Error| {
        let message = format!("use {} as the old image: {why}", path.display());
        DriverError::new(Cause::DeployFailed, message)
    };
    let source = ImageSource::of(path, Path::exists).map_err(|e| wrong(&e))?;
    let bytes =
        read_regular(&source.path, profile.image_file_limit()).map_err(|error| wrong(&error))?;
    let image = Image::parse_from(&source, &bytes, profile).map_err(|e| wrong(&e))?;
    // The emulator is started elsewhere.
    let path = std::path::absolute(&source.path).map_err(|e| wrong(&e))?;
    Ok(Image { path, ..image })
}
