//! The rig of a repair run: that of this host, or one elsewhere. Sources, builds and agents are here.

use std::sync::Arc;

use jig_lab::{BoardFacts, Catalogue, Lab, LabConfig};
use jig_model::command::EventSink;
use jig_model::{Fault, PlaceName};
use jig_service::client::RemoteRig;
use jig_service::protocol::DescribeBoard;

use super::door::RepairDoor;
use super::folders::Origin;
use crate::args::{Common, RigName};
use crate::commands::open_lab;
use crate::commands::rig::{elsewhere, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;

/// The rig of a repair run.
pub(super) enum RepairRig {
    Here(Lab),
    There {
        /// The arguments that name it. Each use connects anew, in its own runtime.
        common: Box<Common>,
        /// What is known here.
        catalogue: Box<Catalogue>,
    },
}

impl RepairRig {
    /// Opens the rig that the arguments name.
    pub(super) fn open(common: &Common) -> Result<Self, Failure> {
        match Self::there(common)? {
            Some(rig) => Ok(rig),
            None => Ok(Self::Here(open_lab(common)?)),
        }
    }

    fn there(common: &Common) -> Result<Option<Self>, Failure> {
        if elsewhere(common)?.is_none() {
            return Ok(None);
        }
        let catalogue = Box::new(Catalogue::load(&common.own_lab())?);
        Ok(Some(Self::There { common: Box::new(common.clone()), catalogue }))
    }

    /// Opens the rig of a run that goes on: the one that the arguments name, else the one that it was begun
    /// with.
    pub(super) fn of_run(common: &Common, origin: &Origin) -> Result<Self, Failure> {
        if common.rig.is_none()
            && let Some(there) = &origin.there
        {
            let rig: RigName = there.parse().map_err(|error| {
                Failure::of(Fault::Lab, &error).help("name the rig: --rig ssh://HOST")
            })?;
            return Self::open(&Common { rig: Some(rig), ..common.clone() });
        }
        if let Some(rig) = Self::there(common)? {
            return Ok(rig);
        }
        let given = common.lab()?;
        let config = LabConfig {
            rig: given.rig.clone().or_else(|| origin.rig.clone()),
            boards: given.boards.clone().or_else(|| origin.boards.clone()),
            program: std::env::current_exe().ok(),
            ..given
        };
        Ok(Self::Here(Lab::open(&config)?))
    }

    /// Returns where boards, places and knowledge of this host are.
    pub(super) fn catalogue(&self) -> &Catalogue {
        match self {
            Self::Here(lab) => lab.catalogue(),
            Self::There { catalogue, .. } => catalogue,
        }
    }

    /// Tells what the board of a place is.
    pub(super) fn board(&self, place: &PlaceName) -> Result<BoardFacts, Failure> {
        match self {
            Self::Here(lab) => Ok(lab.catalogue().board_facts(place)?),
            Self::There { common, .. } => until_signalled(async |cancel| {
                let asked = DescribeBoard { place: place.clone() };
                let rig = connected(common)?;
                tokio::select! {
                    told = rig.call_again(&asked) => Ok(told?),
                    () = cancel.cancelled() => Err(stopped()),
                }
            }),
        }
    }

    /// Returns the door of a run to its rig.
    pub(super) fn door(
        self,
        board: &BoardFacts,
        events: Arc<dyn EventSink>,
    ) -> Result<RepairDoor, Failure> {
        Ok(match self {
            Self::Here(lab) => RepairDoor::here(lab, board, events),
            Self::There { common, .. } => RepairDoor::there(connected(&common)?, board, events),
        })
    }
}

fn connected(common: &Common) -> Result<RemoteRig, Failure> {
    // The service of this host is looked for once, so what was there is still there.
    elsewhere(common)?.ok_or_else(|| Failure::new(Fault::Bug, "the rig is not elsewhere any more"))
}
