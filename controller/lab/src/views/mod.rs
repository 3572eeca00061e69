//! What is looked at in a rig, as facts that travel.
//!
//! **Looks only**: no query touches a board, opens a device or changes a run.
//!
//! # Design
//! *One answer, two ways to it.* A caller of this host calls [`look`], one of another host sends the
//! query to the rig, which calls it there. Both show the same [`RigView`] by the same code, so their
//! output cannot differ.

mod access;
mod attached;
mod audit;
mod boards;
mod console_tail;
mod error;
mod health;
mod places;
mod probes;
mod profile;
mod runs;

use jiff::Timestamp;
use jig_model::access::AccessRight;
use jig_model::{BoardId, IdentityName, PlaceName, RunId};
use jig_rig::audit::AuditChain;
use jig_rig::store::RunStore;
use serde::{Deserialize, Serialize};

pub use self::access::{AccessList, ListedAccess};
pub use self::attached::{AttachedDevices, CandidateBoard};
pub use self::audit::AuditPage;
pub use self::boards::{BoardList, ListedPlace, ListedProfile};
pub use self::error::RigViewError;
pub use self::health::{HealthList, ListedHealth, PlacePast};
pub use self::places::{CurrentRun, HeldLease, PlaceView, RigSnapshot, SnapshotReader};
pub use self::probes::ListedProbe;
pub use self::profile::{ProfileSheet, SheetLine};
pub use self::runs::{BrokenRecord, FoundRun, RecordTrouble, RunPage, RunStanding, RunSummary};
use crate::{CatalogueReader, LabConfig};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case", deny_unknown_fields)]
pub enum RigQuery {
    /// Boards and places.
    Boards,
    /// The health of places.
    Health {
        /// The place; all of them if not named.
        place: Option<PlaceName>,
        /// How many entries of the history to tell; none if not said.
        history: Option<u32>,
    },
    /// Debug probes.
    Probes,
    /// Devices that may become parts of a rig.
    Attached,
    /// Runs, the newest first, a page at a time.
    Runs {
        /// Those that are older than this one; from the newest on if not said.
        before: Option<RunId>,
    },
    /// One run.
    Run {
        /// Its id, a beginning of that, or `last`.
        wanted: String,
    },
    /// All places at this moment.
    Places,
    /// The last lines of the primary console of a place.
    Tail {
        /// The place.
        place: PlaceName,
    },
    /// The profile of a kind of board.
    Profile {
        /// The kind of board.
        board: BoardId,
    },
    /// What an identity may do.
    Access {
        /// The identity; who asks if not named.
        identity: Option<IdentityName>,
        /// Where; at each place if not named.
        place: Option<PlaceName>,
        /// What; each right if not named.
        right: Option<AccessRight>,
    },
    /// The audit log, a page at a time.
    Audit {
        /// Leaves out older lines.
        since: Option<Timestamp>,
        /// How many lines of the log to skip.
        skip: u64,
    },
    /// Whether the audit log is whole.
    AuditChain {
        /// Hash of a line that has to be there.
        contains: Option<String>,
    },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", content = "view", rename_all = "snake_case")]
pub enum RigView {
    /// Boards and places.
    Boards(BoardList),
    /// The health of places.
    Health(HealthList),
    /// Debug probes, and the emulated boards that are served as one.
    Probes(Vec<ListedProbe>),
    /// Devices that may become parts of a rig.
    Attached(AttachedDevices),
    /// Runs.
    Runs(RunPage),
    /// One run.
    Run(FoundRun),
    /// All places.
    Places(RigSnapshot),
    /// Lines of a console, safe for a terminal.
    Tail(Vec<String>),
    /// A profile.
    Profile(ProfileSheet),
    /// Decisions of the access rules.
    Access(AccessList),
    /// Lines of the audit log.
    Audit(AuditPage),
    /// What the check of the audit log has found.
    AuditChain(AuditChain),
}

/// Looks at the rig that is described by `config`. Waits for the disk.
///
/// # Errors
/// A file cannot be read, or what is asked for is not there.
pub async fn look(config: &LabConfig, query: &RigQuery) -> Result<RigView, RigViewError> {
    look_again(&CatalogueReader::default(), config, query).await
}

/// Does so for a process that looks at the rig again and again: `reader` keeps what it has read.
///
/// # Errors
/// As [`look`].
pub async fn look_again(
    reader: &CatalogueReader,
    config: &LabConfig,
    query: &RigQuery,
) -> Result<RigView, RigViewError> {
    let read = || reader.read(config);
    // Where a caller named the folder of runs, what the rig file says does not matter, nor whether it is
    // right.
    let runs = || {
        let named = config.runs.clone();
        let dir = named.map_or_else(|| read().map(|catalogue| catalogue.runs_dir()), Ok);
        dir.map(RunStore::new)
    };
    Ok(match query {
        RigQuery::Boards => RigView::Boards(BoardList::of(&*read()?)),
        RigQuery::Health { place, history } => {
            RigView::Health(HealthList::of(&*read()?, place.as_ref(), *history)?)
        }
        RigQuery::Probes => RigView::Probes(probes::list(&*read()?).await?),
        RigQuery::Attached => RigView::Attached(attached::look_around(reader, config).await?),
        RigQuery::Runs { before } => RigView::Runs(RunPage::of(&runs()?, before.as_ref())?),
        RigQuery::Run { wanted } => RigView::Run(FoundRun::find(&runs()?, wanted)?),
        RigQuery::Places => RigView::Places(SnapshotReader::default().read(&*read()?)),
        RigQuery::Tail { place } => {
            RigView::Tail(SnapshotReader::default().console(&*read()?, place))
        }
        RigQuery::Profile { board } => {
            RigView::Profile(ProfileSheet::of(&*read()?.profile(board)?))
        }
        RigQuery::Access { identity, place, right } => {
            let (identity, place) = (identity.as_ref(), place.as_ref());
            RigView::Access(AccessList::of(&*read()?, identity, place, *right)?)
        }
        RigQuery::Audit { since, skip } => {
            RigView::Audit(AuditPage::of(&read()?.audit_log(), *since, *skip)?)
        }
        RigQuery::AuditChain { contains } => {
            RigView::AuditChain(read()?.audit_log().verify(contains.as_deref())?)
        }
    })
}
