//! Which driver binds the board of a place: here the crates meet that do not know each other.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::host::LocalHost;
use jig_model::profile::{BoardProfile, Deploy};
use jig_model::protocol::{
    BindContext, DriverError, DriverFactory, Host, NoLedger, NoSink, ProcessLedger, Protocols,
};
use jig_model::rig_file::{Place, Resource};
use jig_model::{BoardId, Fault};
use jig_probe::{EmulatedProbeFactory, ProbeBoardFactory, WatchedEmulator};

use crate::Lab;

/// Every driver of this build.
const FACTORIES: &[&dyn DriverFactory] =
    &[&WatchedEmulator, &EmulatedProbeFactory, &ProbeBoardFactory];

/// Says why a board was not bound to its driver.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// This build has no driver for it.
    #[error("this build has no driver {kind:?} for board {board}")]
    NoDriver {
        /// The driver.
        kind: &'static str,
        /// The board.
        board: BoardId,
    },
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl BindError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoDriver { .. } => Fault::Bug,
            Self::Driver(error) => error.cause.fault().unwrap_or(Fault::Lab),
        }
    }
}

/// Finds the driver of a place's board.
pub(crate) fn factory(
    profile: &BoardProfile,
    resource: &Resource,
) -> Result<&'static dyn DriverFactory, BindError> {
    let kind = kind(profile, resource);
    let found = FACTORIES.iter().copied().find(|factory| factory.kind() == kind);
    found.ok_or_else(|| BindError::NoDriver { kind, board: profile.id.clone() })
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

impl Lab {
    /// Binds a board that is only asked questions: what it prints is not kept, and evidence
    /// goes to a folder of the caller.
    pub(crate) fn bind_quietly(
        &self,
        place: &Place,
        profile: &Arc<BoardProfile>,
        evidence: PathBuf,
    ) -> Result<Protocols, BindError> {
        let bound = factory(profile, &place.resource)?.bind(BindContext {
            profile: Arc::clone(profile),
            resource: place.resource.clone(),
            sink: Arc::new(NoSink),
            evidence,
            images: self.catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        });
        Ok(bound?)
    }
}
