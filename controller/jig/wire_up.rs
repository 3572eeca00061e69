//! Where the crates that do not know each other meet.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::flasher::CommandFlasherFactory;
use jig_drivers::host::LocalHost;
use jig_model::protocol::{
    BindContext, DriverError, DriverFactory, Host, PartFactory, ProcessLedger, Protocols,
};
use jig_probe::{EmulatedProbeFactory, ProbeFactory, WatchedEmulator};

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

/// Makes the host that a run's commands run on: this one, from the current directory.
pub(crate) fn host(ledger: Arc<dyn ProcessLedger>) -> Box<dyn Host> {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Box::new(LocalHost { cwd, ledger })
}
