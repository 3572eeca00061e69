//! Removing old runs of this host, for a user who may be elsewhere.
//!
//! # Design
//! *Runs of all places go by age and size*, so their removal needs the right to administer each
//! place, and the audit log says who did.

use jiff::Timestamp;
use jig_model::access::AccessRight;
use jig_model::{Fault, RunId, chain};
use jig_rig::audit::AuditError;
use jig_rig::store::{Retention, RunStore, StoreError};
use serde::{Deserialize, Serialize};

use crate::{AccessError, Catalogue};

/// Name of the removal in the audit log.
const COMMAND: &str = "runs-prune";

/// Which runs may stay. Without either limit, those that the rig file lets stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunLimits {
    /// Runs that began more days ago than this go.
    pub keep_days: Option<u32>,
    /// The oldest runs go until the rest takes no more bytes than this.
    pub keep_bytes: Option<u64>,
}

/// What was removed, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrunedRuns {
    /// Runs that are gone.
    pub removed: Vec<RemovedRun>,
    /// Runs that should be.
    pub left: Vec<LeftRun>,
}

/// A run that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedRun {
    /// The run.
    pub id: RunId,
    /// What its files held.
    pub bytes: u64,
}

/// A run that could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftRun {
    /// The run.
    pub id: RunId,
    /// Why, in words.
    pub error: String,
}

/// Says why no run was removed.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// Neither the user nor the rig file says which runs may stay.
    #[error("nothing says which runs may stay")]
    NoLimit,
    /// The user has not the right.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// It cannot be noted, and comes from elsewhere.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The folder of runs cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PruneError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoLimit => Fault::Usage,
            Self::Access(error) => error.fault(),
            Self::Audit(error) => error.fault(),
            Self::Store(error) => error.fault(),
        }
    }

    /// Returns the next step, if there is one to name.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoLimit => {
                Some("try `jig runs prune --keep-days 30`, or set `keep` in [runs] of the rig file")
            }
            Self::Access(_) => Some("ask who administers the rig for an access rule"),
            Self::Audit(_) | Self::Store(_) => None,
        }
    }
}

impl PrunedRuns {
    /// Removes runs of a folder that are not kept. Waits for the disk.
    ///
    /// # Errors
    /// The folder cannot be read. A run that cannot be removed is in the answer.
    pub fn of(store: &RunStore, limits: RunLimits) -> Result<Self, StoreError> {
        let RunLimits { keep_days, keep_bytes } = limits;
        let mut pruned = Self::default();
        for run in store.prune(Retention { keep_days, keep_bytes }, Timestamp::now())? {
            match run.error {
                None => pruned.removed.push(RemovedRun { id: run.id, bytes: run.bytes }),
                Some(error) => pruned.left.push(LeftRun { id: run.id, error: chain(&error) }),
            }
        }
        Ok(pruned)
    }
}

impl Catalogue {
    /// Removes runs of the rig that the limits do not let stay, if the user administers all places.
    ///
    /// # Errors
    /// The user may not, it cannot be noted, or the folder cannot be read.
    pub fn prune_runs(&self, asked: RunLimits) -> Result<PrunedRuns, PruneError> {
        let basis = self.authorise_everywhere(AccessRight::Administer, COMMAND)?;
        let limits = match asked == RunLimits::default() {
            // What is asked for replaces what the rig file says; mixing them would surprise.
            true => {
                let Retention { keep_days, keep_bytes } = self.retention();
                RunLimits { keep_days, keep_bytes }
            }
            false => asked,
        };
        if limits == RunLimits::default() {
            return Err(PruneError::NoLimit);
        }
        let days = limits.keep_days.map(|days| format!("; keeps {days} days"));
        let bytes = limits.keep_bytes.map(|bytes| format!("; keeps {bytes} bytes"));
        let why = [Some(basis), days, bytes].into_iter().flatten().collect();
        self.note_call(COMMAND, AccessRight::Administer, why)?;
        Ok(PrunedRuns::of(&RunStore::new(self.runs_dir()), limits)?)
    }
}
