//! Where the crates that do not know each other meet.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::host::LocalHost;
use jig_model::Fault;
use jig_model::profile::{BoardProfile, Deploy};
use jig_model::protocol::{DriverFactory, Host, ProcessLedger};
use jig_model::rig_file::Resource;
use jig_probe::{EmulatedProbeFactory, ProbeBoardFactory, WatchedEmulator};

use crate::failure::Failure;

/// Every driver of this build.
const FACTORIES: &[&dyn DriverFactory] =
    &[&WatchedEmulator, &EmulatedProbeFactory, &ProbeBoardFactory];

/// Finds the driver of a place's board.
///
/// # Errors
/// This build has none for it.
pub(crate) fn factory(
    profile: &BoardProfile,
    resource: &Resource,
) -> Result<&'static dyn DriverFactory, Failure> {
    let kind = kind(profile, resource);
    FACTORIES.iter().copied().find(|factory| factory.kind() == kind).ok_or_else(|| {
        let message = format!("this build has no driver {kind:?} for board {}", profile.id);
        Failure::new(Fault::Bug, message)
    })
}

/// Names the driver that a place needs.
fn kind(profile: &BoardProfile, resource: &Resource) -> &'static str {
    match (resource, profile.deploy_on(resource)) {
        (Resource::Probe(_), _) => "probe",
        (Resource::Emulator(_), Deploy::Probe) => "virtual-probe",
        (Resource::Emulator(_), _) => "emulator",
    }
}

/// Makes the host that a run's commands run on: this one, from the current directory.
pub(crate) fn host(ledger: Arc<dyn ProcessLedger>) -> Box<dyn Host> {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Box::new(LocalHost { cwd, ledger })
}
