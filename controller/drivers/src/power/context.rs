//! What devices need of their surroundings to be opened.

use std::path::PathBuf;
use std::sync::Arc;

use jig_model::protocol::ProcessLedger;

use super::PowerError;
use super::human::AskHuman;
use super::outlets::Outlets;

/// Stands between a device's owner and its driver.
pub type Between = Arc<dyn Fn(Box<dyn Outlets>) -> Box<dyn Outlets> + Send + Sync>;

/// What devices need of their surroundings.
#[derive(Clone)]
pub struct PowerContext {
    /// Folder in which processes of this user meet; created if it is missing.
    pub locks: PathBuf,
    /// Where child processes are accounted for.
    pub ledger: Arc<dyn ProcessLedger>,
    /// Asks the person, where a person switches.
    pub human: Arc<dyn AskHuman>,
    /// Where the kernel shows its devices: `/sys`.
    pub sysfs: PathBuf,
    /// What stands between the device that switches a place and its driver, if anything does:
    /// tests and faults on purpose. Senses are asked without it.
    pub between: Option<Between>,
}

/// The description of a device, from which its driver is made: one implementation for each kind.
pub(super) trait OpenOutlets {
    /// Makes the driver: reads secrets, and touches nothing else. Called within a tokio runtime.
    fn open(self, context: &PowerContext) -> Result<Box<dyn Outlets>, PowerError>;
}
