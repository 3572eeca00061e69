//! `jig rpc`: serves the rig of this host to one caller, on standard input and output.
//!
//! What `ssh HOST jig rpc --stdio` starts; also what an authorised key may be limited to. The caller
//! acts as `--as NAME`, else as the user that this process runs as.

use std::ffi::OsString;
use std::sync::Arc;

use jig_lab::KnowledgeDoor;
use jig_model::{Fault, exit};
use jig_rig::identity::{named, over_ssh, own_identity};
use jig_rig::store::host_name;
use jig_service::jobs::{JobStore, WorkerProgram};
use jig_service::server::{CatalogueCache, FileStore, JobWatchers, RigHost, serve};
use tokio::io::{stdin, stdout};

use super::embedding::model_of_host;
use super::runtime::until_signalled;
use crate::args::{Common, RpcArgs};
use crate::failure::Failure;

/// Serves one caller until it closes the connection.
pub(crate) fn rpc(common: &Common, args: RpcArgs) -> Result<u8, Failure> {
    let host = Arc::new(rig_host(common)?);
    let identity = over_ssh(args.identity.map_or_else(own_identity, named));
    until_signalled(async |cancel| {
        tokio::select! {
            ended = serve(host, identity, stdin(), stdout()) => {
                ended.map_err(|error| Failure::of(Fault::Usage, &error))?;
            }
            () = cancel.cancelled() => {}
        }
        Ok(exit::PASS)
    })
}

/// Says what connections are served from.
pub(crate) fn rig_host(common: &Common) -> Result<RigHost, Failure> {
    let config = common.lab()?;
    let catalogue = common.reader.read(&config)?;
    let state = catalogue.state();
    let program: OsString = std::env::current_exe().unwrap_or_else(|_| "jig".into()).into();
    Ok(RigHost {
        jobs: JobStore::new(state.join("jobs")),
        files: FileStore::new(state.join("files")),
        runs: catalogue.runs_dir(),
        audit: catalogue.audit_log(),
        watchers: JobWatchers::default(),
        worker: WorkerProgram { program, args: common.again(), ..WorkerProgram::default() },
        knowledge: KnowledgeDoor::new(&state, model_of_host()),
        catalogue: CatalogueCache::reading_by(config, Arc::clone(&common.reader)),
        name: host_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        refuse: |error| Failure::from(error).into(),
        refuse_lease: |error| Failure::from(error).into(),
        refuse_knowledge: |error| Failure::from(error).into(),
    })
}
