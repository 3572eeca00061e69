//! The run that a verb shows: one of this host, or one that is fetched from a rig elsewhere.

use std::path::{Path, PathBuf};

use jig_lab::{FoundRun, RigQuery, RigView};
use jig_rig::store::{RunEntry, RunStore};
use jig_service::client::{FetchedRun, RemoteRig, RunPart};

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::{elsewhere, seen, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;

/// A run, opened.
pub(super) struct OpenedRun {
    pub(super) entry: RunEntry,
    /// Where it is at the rig's host.
    pub(super) dir: PathBuf,
    /// The folder of runs in which it is read here.
    pub(super) store: RunStore,
    /// Keeps what was fetched.
    _fetched: Option<FetchedRun>,
}

/// Opens a run by its id, a beginning of that, or `last`; of a rig elsewhere, a part is fetched.
pub(super) fn open(common: &Common, wanted: &str, part: RunPart) -> Result<OpenedRun, Failure> {
    let rig = elsewhere(common)?;
    until_signalled(async |cancel| {
        tokio::select! {
            opened = async {
                let found = found(rig.as_ref(), common, wanted).await?;
                match &rig {
                    Some(rig) => fetched(rig, found, part).await,
                    None => here(found),
                }
            } => opened,
            () = cancel.cancelled() => Err(stopped()),
        }
    })
}

/// Finds a run.
pub(super) async fn found(
    rig: Option<&RemoteRig>,
    common: &Common,
    wanted: &str,
) -> Result<FoundRun, Failure> {
    match seen(rig, common, RigQuery::Run { wanted: wanted.to_owned() }).await? {
        RigView::Run(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

fn here(found: FoundRun) -> Result<OpenedRun, Failure> {
    let store = RunStore::new(found.dir.parent().unwrap_or(Path::new("")));
    let entry = store.open(found.run.as_str()).map_err(Failure::from)?;
    Ok(OpenedRun { entry, dir: found.dir, store, _fetched: None })
}

/// Fetches a part of a run.
pub(super) async fn fetched(
    rig: &RemoteRig,
    found: FoundRun,
    part: RunPart,
) -> Result<OpenedRun, Failure> {
    let fetched = rig.fetch(found, part).await?;
    let entry = fetched.entry().map_err(Failure::from)?;
    let (dir, store) = (fetched.found().dir.clone(), fetched.store().clone());
    Ok(OpenedRun { entry, dir, store, _fetched: Some(fetched) })
}
