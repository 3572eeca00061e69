//! The rig's host: answers the calls of one connection after the other.
//!
//! Holds nothing between connections: jobs, files and runs are folders, so a connection may be served
//! by any process of the host, such as `jig rpc --stdio` behind SSH.

mod cancels;
mod catalogue_cache;
mod connection;
mod file_store;
mod gate;
mod input_queue;
mod listen;
mod refusal;
mod run_files;
mod run_places;
mod streams;
mod view;
mod watch;
mod watchers;

use std::path::PathBuf;

use jig_lab::{KnowledgeDoor, KnowledgeOrderError, LeaseOrderError, RigViewError};
use jig_model::command::Refusal;
use jig_rig::audit::AuditLog;

pub use catalogue_cache::CatalogueCache;
pub use connection::serve;
pub use file_store::{FileStore, FileStoreError};
pub use listen::{RpcListener, SocketAccess, bind_socket};
pub use watchers::JobWatchers;

use crate::jobs::{JobStore, WorkerProgram};

/// What a connection is served from.
#[derive(Debug)]
pub struct RigHost {
    /// The jobs.
    pub jobs: JobStore,
    /// Files of callers.
    pub files: FileStore,
    /// The folder of runs.
    pub runs: PathBuf,
    /// Where cancellations are noted.
    pub audit: AuditLog,
    /// Connections that fetch the output of jobs.
    pub watchers: JobWatchers,
    /// What carries out jobs.
    pub worker: WorkerProgram,
    /// Boards and places.
    pub catalogue: CatalogueCache,
    /// What the rig has learnt.
    pub knowledge: KnowledgeDoor,
    /// Name of the host.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// How a caller is told why it cannot look at the rig: as one of this host is.
    pub refuse: fn(RigViewError) -> Refusal,
    /// How a caller is told why the leases do not answer: as one of this host is.
    pub refuse_lease: fn(LeaseOrderError) -> Refusal,
    /// How a caller is told why knowledge does not answer: as one of this host is.
    pub refuse_knowledge: fn(KnowledgeOrderError) -> Refusal,
}
