//! This host's rig, opened: profiles and rig file become places, places become bound boards.
//!
//! Owns the composition: it finds the files, binds a place to its drivers, holds the places
//! that a command uses, and hands both to the rig. **Invariant: no terminal, no command line,
//! no signal handler and no runtime of its own.** Every future runs on the caller's runtime and
//! ends with the caller's [`CancelToken`](jig_rig::workflow::CancelToken).

mod access;
mod attach;
mod audit;
mod beside;
mod bind;
mod board_facts;
mod capture_requests;
mod catalogue;
mod checks;
mod config;
mod console;
mod console_name;
mod coverage;
mod execute;
mod faults;
mod health;
mod held;
mod hold;
mod knowledge;
mod leases;
mod open_stores;
mod port_opener;
mod power;
mod probe;
mod prune;
mod run;
mod shell_answer;
mod views;

use std::sync::Arc;

use jig_drivers::power::{AskHuman, NoHuman};
use jig_model::chain;
use jig_model::command::Refusal;

pub use self::access::AccessError;
pub use self::attach::AttachError;
pub use self::audit::LeaseOrderError;
pub use self::bind::BindError;
pub use self::board_facts::BoardFacts;
pub use self::capture_requests::ClientRequests;
pub use self::catalogue::{
    BoardSet, Boards, Catalogue, CatalogueError, CatalogueReader, ChipAtProbe, DescribedRig,
    DescribingFile, SharedPort, Source, Unreadable, read, rig_files, shared_ports, state_folder,
};
pub use self::checks::ChecksError;
pub use self::config::LabConfig;
pub use self::console_name::NoConsole;
pub use self::coverage::NoCoverage;
pub use self::execute::CommandError;
pub use self::faults::InjectError;
pub use self::health::{CheckError, health_subject};
pub use self::held::HoldError;
pub use self::hold::hold;
pub use self::knowledge::{
    CaughtUp, KnowledgeAnswered, KnowledgeDesk, KnowledgeDoor, KnowledgeOrder, KnowledgeOrderError,
    KnowledgeReply, LearnError, OutboxNote, SEEN_FILE, ShownUnit, observed_run, seen_in,
    signature_of,
};
pub use self::leases::{
    KEPT as LEASE_KEPT, LeaseOverview, RENEWAL as LEASE_RENEWAL, UNRENEWED as LEASE_UNRENEWED,
    acquire,
};
pub use self::port_opener::PortOpener;
pub use self::power::{PlaceSwitch, PowerCommandError, SwitchError, confirmation_words};
pub use self::probe::{ProbeCommandError, ServedPlace, served_places};
pub use self::prune::{LeftRun, PruneError, PrunedRuns, RemovedRun, RunLimits};
pub use self::run::RunError;
pub use self::shell_answer::ShellSilence;
pub use self::views::{
    AccessList, AttachedDevices, AuditPage, BoardList, BrokenRecord, CandidateBoard, CurrentRun,
    FoundRun, HealthList, HeldLease, ListedAccess, ListedHealth, ListedPlace, ListedProbe,
    ListedProfile, PlacePast, PlaceView, ProfileSheet, RecordTrouble, RigQuery, RigSnapshot,
    RigView, RigViewError, RunPage, RunStanding, RunSummary, SheetLine, SnapshotReader, look,
    look_again,
};

/// The rig of this host. Cheap to clone.
#[derive(Clone)]
pub struct Lab {
    catalogue: Arc<Catalogue>,
    human: Arc<dyn AskHuman>,
    program: std::path::PathBuf,
    /// Makes what a client is told of an error.
    refusal: Arc<dyn Fn(ProbeCommandError) -> Refusal + Send + Sync>,
    /// The board that this process holds for other processes, where it carries out their commands.
    held: Option<Arc<probe::HeldPlace>>,
}

impl Lab {
    /// Reads the rig file and the profiles. Touches no hardware.
    ///
    /// # Errors
    /// A file cannot be read, or does not say what it should.
    pub fn open(config: &LabConfig) -> Result<Self, CatalogueError> {
        Ok(Self::of(Arc::new(Catalogue::load(config)?), config))
    }

    /// Takes the rig file and the profiles as they were read by this configuration.
    pub fn of(catalogue: Arc<Catalogue>, config: &LabConfig) -> Self {
        let program = config.program.clone().unwrap_or_default();
        let refusal = Arc::new(|error: ProbeCommandError| Refusal {
            fault: error.fault(),
            message: chain(&error),
            help: None,
            problems: Vec::new(),
        });
        Self { catalogue, human: Arc::new(NoHuman), program, refusal, held: None }
    }

    /// Sets how an error is explained to the other processes for which a board is held.
    #[must_use]
    pub fn refusing(
        mut self,
        refusal: impl Fn(ProbeCommandError) -> Refusal + Send + Sync + 'static,
    ) -> Self {
        self.refusal = Arc::new(refusal);
        self
    }

    /// Sets how a person is asked to switch what only a person can switch.
    #[must_use]
    pub fn asking(mut self, human: Arc<dyn AskHuman>) -> Self {
        self.human = human;
        self
    }

    /// Returns the boards and places.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }
}
