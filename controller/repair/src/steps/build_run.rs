//! BUILD_RUN: the candidate is built in the sandbox.

use jig_model::chain;

use crate::journal::{Fact, StepResult};
use crate::machine::RepairEvent;
use crate::recovery::ErrorClass;
use crate::run::Run;
use crate::setup::RepairSetup;
use crate::steps::failed;

pub(super) async fn run(setup: &RepairSetup, run: &Run) -> StepResult {
    let log = setup.folder.iteration(run.iteration).join("build.log");
    match setup.build(&setup.folder.tree(), &log).await {
        Ok(built) => {
            let reason = format!("built image {}", &built.sha256[..12]);
            StepResult::of(RepairEvent::BuildPassed, reason)
                .with(Fact::Built { image: built.sha256 })
        }
        Err(error) => {
            let why = chain(&error);
            let class = match error.blames_build() {
                true => ErrorClass::BuildFailure,
                false => ErrorClass::UnhandledException,
            };
            let patch = run.proposed.as_ref().map(|p| p.patch.clone()).unwrap_or_default();
            let fact = Fact::Refused { patch, why: why.clone() };
            failed(RepairEvent::BuildFailed, class, why).with(fact)
        }
    }
}
