//! Which drivers bind the parts of a place: here the crates meet that do not know each other.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::flasher::CommandFlasherFactory;
use jig_drivers::host::LocalHost;
use jig_model::Fault;
use jig_model::profile::BoardProfile;
use jig_model::protocol::{
    BindContext, DriverError, DriverFactory, Host, NoLedger, NoSink, PartFactory, ProcessLedger,
    Protocols,
};
use jig_model::rig_file::Place;
use jig_probe::{EmulatedProbeFactory, ProbeFactory, WatchedEmulator};

use crate::Lab;

/// Every part that this build can drive, in the order in which a binding joins them: what flashes
/// a board stands before the probe that has to let go of it.
pub(crate) const FACTORIES: &[&dyn PartFactory] =
    &[&WatchedEmulator, &EmulatedProbeFactory, &CommandFlasherFactory, &ProbeFactory];

/// Binds a place part by part.
pub(crate) struct Parts;

impl DriverFactory for Parts {
    fn bind(&self, context: BindContext) -> Result<Protocols, DriverError> {
        let join = |built, part: &&dyn PartFactory| part.join(&context, built);
        FACTORIES.iter().try_fold(Protocols::default(), join)
    }
}

/// Says why a board was not bound to its drivers.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BindError(#[from] DriverError);

impl BindError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        self.0.cause.fault().unwrap_or(Fault::Lab)
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
        let bound = Parts.bind(BindContext {
            profile: Arc::clone(profile),
            place: Arc::new(place.clone()),
            sink: Arc::new(NoSink),
            evidence,
            images: self.catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        });
        Ok(bound?)
    }
}
