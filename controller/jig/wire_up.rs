//! Where the crates that do not know each other meet.

use std::path::PathBuf;
use std::sync::Arc;

use jig_drivers::host::LocalHost;
use jig_drivers::qemu::QemuFactory;
use jig_model::protocol::{DriverFactory, Host, ProcessLedger};
use jig_model::rig_file::Resource;

/// Every driver of this build.
const FACTORIES: &[&dyn DriverFactory] = &[&QemuFactory];

/// Finds the driver of a resource.
pub(crate) fn factory(resource: &Resource) -> Option<&'static dyn DriverFactory> {
    let kind = match resource {
        Resource::Emulator(_) => "emulator",
    };
    FACTORIES.iter().copied().find(|factory| factory.kind() == kind)
}

/// Makes the host that a run's commands run on: this one, from the current directory.
pub(crate) fn host(ledger: Arc<dyn ProcessLedger>) -> Box<dyn Host> {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Box::new(LocalHost { cwd, ledger })
}
