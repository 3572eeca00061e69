//! Power, reset and deployment: what changes the board itself.

use std::path::PathBuf;
use std::time::Duration;

use jig_model::Cause;
use jig_model::event::RunEvent;
use jig_model::plan::PowerOp;

use super::{Actions, by_driver};
use crate::attempt::abort_condition::ended;
use crate::attempt::facts::Observed;
use crate::workflow::ActionFailure;

/// Method name of a deployment by probe, which always reads back what it has written in a run.
const BY_PROBE: &str = "probe";

/// Returns the failure of a power command that was accepted and had no effect.
pub(in crate::attempt) fn lied(op: PowerOp) -> ActionFailure {
    let detail = match op {
        PowerOp::Off => "the power was switched off, it is said, but the board runs on",
        PowerOp::On => "the power was switched on, it is said, but no boot began",
        PowerOp::Cycle => "the power was cycled, it is said, but no boot began",
    };
    ActionFailure::new(Cause::PowerMismatch, detail)
}

impl Actions<'_> {
    pub(super) async fn power(
        &mut self,
        op: PowerOp,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let Some(power) = &mut self.protocols.power else {
            return Err(ActionFailure::new(Cause::PowerFailed, "this place has no power control"));
        };
        let switch = async {
            match op {
                PowerOp::On => power.on().await,
                PowerOp::Off => power.off().await,
                PowerOp::Cycle => {
                    power.off().await?;
                    power.on().await
                }
            }
        };
        self.board.report(Observed::Switching(true));
        let before = self.board.facts().powered();
        let switched = tokio::time::timeout(timeout, switch).await;
        self.board.report(Observed::Switching(false));
        match switched {
            Ok(Ok(())) if !self.board.facts().obeyed(op, before) => Err(lied(op)),
            Ok(Ok(())) => Ok(format!("power {op:?}").to_lowercase()),
            Ok(Err(error)) => Err(by_driver(&error)),
            Err(_) => {
                let detail = format!("the board's power could not be switched within {timeout:?}");
                Err(ActionFailure::new(Cause::PowerFailed, detail))
            }
        }
    }

    pub(super) async fn reset(&mut self, timeout: Duration) -> Result<String, ActionFailure> {
        let Some(reset) = &mut self.protocols.reset else {
            return Err(ActionFailure::new(Cause::PowerFailed, "this place has no reset"));
        };
        match tokio::time::timeout(timeout, reset.reset()).await {
            Ok(Ok(())) => {
                // This reset is the plan's, which has looked at the core before it.
                let _ = self.protocols.debug.as_mut().and_then(|debug| debug.reset_in_fault());
                Ok("reset".to_owned())
            }
            // A target that has ended cannot be reset, and the rig is not to blame.
            Ok(Err(error)) => Err(ended(&self.board).unwrap_or_else(|| by_driver(&error))),
            Err(_) => {
                let detail = format!("the board could not be reset within {timeout:?}");
                Err(ActionFailure::new(Cause::PowerFailed, detail))
            }
        }
    }

    pub(super) async fn deploy(
        &mut self,
        image: &Option<PathBuf>,
        timeout: Duration,
    ) -> Result<String, ActionFailure> {
        let Some(flasher) = &mut self.protocols.flasher else {
            return Err(ActionFailure::new(Cause::DeployFailed, "this place cannot deploy images"));
        };
        let Some(image) = self.images.get(image) else {
            // The session resolves every image before the first attempt.
            return Err(ActionFailure::new(
                Cause::DeployFailed,
                "the plan names an image that was not read",
            ));
        };
        match tokio::time::timeout(timeout, flasher.deploy(image)).await {
            Ok(Ok(report)) => {
                self.board.emit(RunEvent::Deployed(report.clone()));
                if report.method == BY_PROBE && report.read_back_sha256.is_none() {
                    // The old image may still be there, and no later step would show it.
                    let detail = "the probe says that the image is on the board, but has not \
                                  read it back";
                    return Err(ActionFailure::new(Cause::DeployFailed, detail));
                }
                let short = report.sha256.get(..12).unwrap_or_default();
                let seen = format!("{} by {}", short, report.method);
                self.board.report(Observed::ReadBack(report.read_back_sha256.clone()));
                self.deployed = Some(report);
                Ok(seen)
            }
            Ok(Err(error)) => Err(by_driver(&error)),
            Err(_) => {
                let detail = format!("the image could not be deployed within {timeout:?}");
                Err(ActionFailure::new(Cause::DeployFailed, detail))
            }
        }
    }
}
