//! Why nothing was seen.

use std::path::PathBuf;

use jig_model::Fault;
use jig_probe::ProbeError;
use jig_rig::audit::AuditError;
use jig_rig::database::DatabaseError;
use jig_rig::store::StoreError;

use crate::CatalogueError;

/// Says why a rig does not tell what was asked.
#[derive(Debug, thiserror::Error)]
pub enum RigViewError {
    /// The rig is not described, or not as it should be.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A run, or the use of a place, cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no run at all.
    #[error("no runs yet in {}", folder.display())]
    NoRuns {
        /// The folder of the runs.
        folder: PathBuf,
    },
    /// The health of places cannot be read.
    #[error(transparent)]
    Health(#[from] DatabaseError),
    /// The probes cannot be listed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The audit log cannot be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl RigViewError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Catalogue(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::NoRuns { .. } => Fault::Usage,
            Self::Health(error) => error.fault(),
            Self::Probe(error) => error.fault(),
            Self::Audit(error) => error.fault(),
        }
    }
}
