//! Devices that may become parts of a rig.

use std::path::PathBuf;

use jig_drivers::discover::{HubFound, Roots, TtyFound, hubs, ttys};
use jig_model::{BoardId, chain};
use jig_probe::{ProbeInfo, list_probes};
use serde::{Deserialize, Serialize};

use super::RigViewError;
use crate::{Catalogue, LabConfig, ServedPlace, served_places};

/// What is attached to a host. No device was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedDevices {
    /// Serial ports.
    pub ttys: Vec<TtyFound>,
    /// Debug probes.
    pub probes: Vec<ProbeInfo>,
    /// USB hubs.
    pub hubs: Vec<HubFound>,
    /// Emulated boards that a process serves.
    pub served: Vec<ServedPlace>,
    /// The boards there are profiles of.
    pub boards: Vec<BoardId>,
    /// Why boards and served places are unknown, if they are; may hold any text.
    pub unknown: Option<String>,
}

impl AttachedDevices {
    /// Looks around on this host; `roots` are where the kernel shows devices.
    ///
    /// # Errors
    /// The host cannot be looked at.
    pub async fn at(roots: &Roots, config: &LabConfig) -> Result<Self, RigViewError> {
        let probes = list_probes().await?;
        // A broken rig file may be the reason for this question.
        let (served, boards, unknown) = match Catalogue::load(config) {
            Ok(catalogue) => {
                let served = served_places(&catalogue)?;
                (served, catalogue.profiles.into_keys().collect(), None)
            }
            Err(error) => (Vec::new(), Vec::new(), Some(chain(&error))),
        };
        Ok(Self { ttys: ttys(roots), probes, hubs: hubs(roots), served, boards, unknown })
    }
}

/// Looks around where the kernel shows devices by custom.
pub(super) async fn look_around(config: &LabConfig) -> Result<AttachedDevices, RigViewError> {
    let roots = Roots { sysfs: PathBuf::from("/sys"), dev: PathBuf::from("/dev") };
    AttachedDevices::at(&roots, config).await
}
