//! The run that a verb shows: one of this host, or one that is fetched from a rig elsewhere.

use std::path::{Path, PathBuf};

use jig_lab::{FoundRun, RigQuery, RigView};
use jig_model::RunId;
use jig_rig::store::{RunEntry, RunRecord, RunStore};
use jig_service::client::{FetchedRun, RemoteRig, RunPart};

use crate::args::Common;
use crate::commands::execute::unexpected;
use crate::commands::rig::{named_elsewhere, seen, stopped};
use crate::commands::runtime::until_signalled;
use crate::failure::Failure;

/// A run, opened.
pub(crate) struct OpenedRun {
    pub(crate) entry: RunEntry,
    /// Where it is at the rig's host.
    pub(crate) dir: PathBuf,
    /// The folder of runs in which it is read here.
    pub(crate) store: RunStore,
    /// Keeps what was fetched.
    _fetched: Option<FetchedRun>,
}

/// Opens a run by its id, a beginning of that, or `last`; of a rig elsewhere, a part is fetched.
pub(crate) fn open(common: &Common, wanted: &str, part: RunPart) -> Result<OpenedRun, Failure> {
    let rig = named_elsewhere(common)?;
    until_signalled(async |cancel| {
        tokio::select! {
            opened = read_part(rig.as_ref(), common, wanted, part) => opened,
            () = cancel.cancelled() => Err(stopped()),
        }
    })
}

/// Finds a run.
pub(crate) async fn found(
    rig: Option<&RemoteRig>,
    common: &Common,
    wanted: &str,
) -> Result<FoundRun, Failure> {
    match seen(rig, common, RigQuery::Run { wanted: wanted.to_owned() }).await? {
        RigView::Run(found) => Ok(found),
        _ => Err(unexpected()),
    }
}

/// Opens a run by its record, with the records of at most `most` older runs of its place, the newest
/// first. Those that cannot be read are left out.
pub(crate) fn open_with_earlier(
    common: &Common,
    wanted: &str,
    most: usize,
) -> Result<(OpenedRun, Vec<RunRecord>), Failure> {
    let rig = named_elsewhere(common)?;
    until_signalled(async |cancel| {
        tokio::select! {
            read = read_with_earlier(rig.as_ref(), common, wanted, most) => read,
            () = cancel.cancelled() => Err(stopped()),
        }
    })
}

/// Does the same within a runtime.
pub(crate) async fn read_with_earlier(
    rig: Option<&RemoteRig>,
    common: &Common,
    wanted: &str,
    most: usize,
) -> Result<(OpenedRun, Vec<RunRecord>), Failure> {
    let opened = read_part(rig, common, wanted, RunPart::Record).await?;
    // Who shows the run says why its record cannot be read.
    let Ok(record) = &opened.entry.record else { return Ok((opened, Vec::new())) };
    let ids = earlier_ids(rig, common, record, most).await?;
    let earlier = match rig {
        Some(rig) => rig.records(&ids).await?,
        None => records_here(common, &ids).await,
    };
    Ok((opened, earlier))
}

/// Finds and opens a run within a runtime; of a rig elsewhere, a part is fetched.
pub(crate) async fn read_part(
    rig: Option<&RemoteRig>,
    common: &Common,
    wanted: &str,
    part: RunPart,
) -> Result<OpenedRun, Failure> {
    let found = found(rig, common, wanted).await?;
    match rig {
        Some(rig) => fetched(rig, found, part).await,
        None => here(found),
    }
}

async fn earlier_ids(
    rig: Option<&RemoteRig>,
    common: &Common,
    record: &RunRecord,
    most: usize,
) -> Result<Vec<RunId>, Failure> {
    let (mut ids, mut before) = (Vec::new(), record.id.clone());
    loop {
        let query = RigQuery::Runs { before: Some(before) };
        let RigView::Runs(page) = seen(rig, common, query).await? else { return Err(unexpected()) };
        let (more, last) = (page.more, page.runs.last().map(|run| run.id.clone()));
        let alike = page.runs.into_iter().filter(|run| run.place == record.place);
        ids.extend(alike.map(|run| run.id).take(most - ids.len()));
        match last {
            Some(last) if more && ids.len() < most => before = last,
            _ => return Ok(ids),
        }
    }
}

async fn records_here(common: &Common, ids: &[RunId]) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for id in ids {
        // One that was removed since is left out, too.
        let opened = found(None, common, id.as_str()).await.and_then(here);
        records.extend(opened.ok().and_then(|opened| opened.entry.record.ok()));
    }
    records
}

fn here(found: FoundRun) -> Result<OpenedRun, Failure> {
    let store = RunStore::new(found.dir.parent().unwrap_or(Path::new("")));
    let entry = store.open(found.run.as_str()).map_err(Failure::from)?;
    Ok(OpenedRun { entry, dir: found.dir, store, _fetched: None })
}

/// Fetches a part of a run.
pub(crate) async fn fetched(
    rig: &RemoteRig,
    found: FoundRun,
    part: RunPart,
) -> Result<OpenedRun, Failure> {
    let fetched = rig.fetch(found, part).await?;
    let entry = fetched.entry().map_err(Failure::from)?;
    let (dir, store) = (fetched.found().dir.clone(), fetched.store().clone());
    Ok(OpenedRun { entry, dir, store, _fetched: Some(fetched) })
}
