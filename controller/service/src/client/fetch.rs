//! A run of the rig, fetched to be shown here.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_lab::{FoundRun, SEEN_FILE};
use jig_model::{RunId, chain};
use jig_rig::store::{
    CopiedRun, RunEntry, RunRecord, RunStore, StoreError, UNACCOUNTED_FILE, lost_runs,
};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::mirror::{WantedFile, copy_all, read_all};
use super::remote::RemoteRig;
use super::{CallError, MirrorError, RemoteRigError, RigClient};
use crate::protocol::{DescribeRun, EVENTS, MOST_CALLS, ReadRunFile, SharedFolder};

/// Most ranges of evidence that come with a record.
const MOST_EVIDENCE: usize = 8;

/// Most records that are read at once.
pub const MOST_RECORDS: usize = MOST_CALLS / 2;

/// The path of the record of a run within it.
const RECORD: &str = "record.json";

/// The ledger of the processes of a run. A copy that is kept has none, because they are those of another
/// host; one that is removed again is never swept.
const CHILDREN: &str = "children.jsonl";

/// What of a run is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPart {
    /// The record, the lists of lines that nothing accounts for, and the bytes that the record names as
    /// evidence.
    Record,
    /// The record, the events and the logs of the consoles.
    Log,
    /// Every file.
    Whole,
}

impl RunPart {
    fn has(self, path: &str) -> bool {
        match self {
            Self::Record => [RECORD, SEEN_FILE].contains(&path) || is_list(path),
            Self::Log => [RECORD, EVENTS, SEEN_FILE].contains(&path) || is_log(path),
            Self::Whole => true,
        }
    }
}

/// Tells whether a file is the list of the lines of an attempt that nothing accounts for.
fn is_list(path: &str) -> bool {
    let name = Path::new(path).file_name();
    path.starts_with("consoles/") && name.is_some_and(|name| name == UNACCOUNTED_FILE)
}

/// Tells whether a file is the log or index of a console.
fn is_log(path: &str) -> bool {
    let end = Path::new(path).extension();
    path.starts_with("consoles/") && end.is_some_and(|end| end == "raw" || end == "idx")
}

/// A run of the rig. What was fetched of it is removed when this is dropped.
#[derive(Debug)]
pub struct FetchedRun {
    store: RunStore,
    found: FoundRun,
    /// Held where the run is under way at the rig: its copy is under way, too.
    _live: Option<CopiedRun>,
    _folder: Option<TempDir>,
}

impl FetchedRun {
    /// Opens it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn entry(&self) -> Result<RunEntry, StoreError> {
        self.store.open(self.found.run.as_str())
    }

    /// Returns the folder of runs that it is in.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    /// Returns where it is at the rig.
    pub fn found(&self) -> &FoundRun {
        &self.found
    }
}

impl RemoteRig {
    /// Reads the records of runs, [`MOST_RECORDS`] at most, in their order. One that is not there, or
    /// cannot be read, is left out.
    ///
    /// # Errors
    /// The host cannot be reached.
    pub async fn records(&self, runs: &[RunId]) -> Result<Vec<RunRecord>, RemoteRigError> {
        self.again(async || Ok(read_records(&self.link().await?.client, runs).await?)).await
    }

    /// Fetches a run, or a part of it. Where the caller sees the rig's own folder, nothing is copied.
    ///
    /// # Errors
    /// The host cannot be reached, or the run cannot be kept here.
    pub async fn fetch(
        &self,
        found: FoundRun,
        part: RunPart,
    ) -> Result<FetchedRun, RemoteRigError> {
        let link = self.link().await?;
        let here = SharedFolder::of(self.runs_dir());
        if let Some(folder) = found.dir.parent()
            && here.inode.is_some()
            && here == link.host.runs
        {
            let store = RunStore::new(folder);
            return Ok(FetchedRun { store, found, _live: None, _folder: None });
        }
        self.again(async || {
            let client = self.link().await?.client;
            self.fetch_once(&client, &found, part).await.map_err(|source| match source {
                MirrorError::Call(error) => RemoteRigError::Call(error),
                source => {
                    RemoteRigError::Mirror { run: found.run.clone(), host: self.host(), source }
                }
            })
        })
        .await
    }
}

impl RemoteRig {
    async fn fetch_once(
        &self,
        client: &RigClient,
        found: &FoundRun,
        part: RunPart,
    ) -> Result<FetchedRun, MirrorError> {
        if !found.live {
            for runs in [self.runs_dir().to_owned(), lost_runs()] {
                let store = RunStore::new(runs);
                match complete(client, &store, &found.run).await {
                    Ok(true) => {
                        let found = found.clone();
                        return Ok(FetchedRun { store, found, _live: None, _folder: None });
                    }
                    Ok(false) => {}
                    Err(error) if error.is_lost() => return Err(error),
                    // It can be shown nevertheless.
                    Err(error) => {
                        tracing::warn!(
                            error = chain(&error),
                            "the copy of the run stays incomplete"
                        );
                    }
                }
            }
        }
        fetch(client, found.clone(), part).await
    }
}

/// Completes the copy of a run that a lost connection has left incomplete; tells whether there was one.
async fn complete(client: &RigClient, store: &RunStore, run: &RunId) -> Result<bool, MirrorError> {
    let Some(copied) = store.resume_copy(run)? else { return Ok(false) };
    let listed = client.call(&DescribeRun { run: run.clone() }).await?;
    // What is there of a log is its beginning.
    let wanted =
        listed.files.into_iter().map(|file| WantedFile { grown: is_log(&file.path), file });
    copy_all(client, &copied, wanted).await?;
    copied.finish()?;
    tracing::info!(%run, folder = %store.root().display(), "the copy of the run is complete");
    Ok(true)
}

async fn read_records(client: &RigClient, runs: &[RunId]) -> Result<Vec<RunRecord>, CallError> {
    let mut reads = JoinSet::new();
    // Started at once: a caller looks at no more than a host answers side by side.
    for (number, run) in runs.iter().take(MOST_RECORDS).cloned().enumerate() {
        let client = client.clone();
        reads.spawn(async move { (number, read_all(&client, &run, RECORD).await) });
    }
    let mut records = Vec::new();
    for (number, read) in reads.join_all().await {
        match read {
            Ok(content) => records.extend(
                RunRecord::parse(Path::new(RECORD), &content).ok().map(|record| (number, record)),
            ),
            Err(MirrorError::Call(error)) if error.is_lost() => return Err(error),
            Err(error) => tracing::debug!(error = chain(&error), "a record is not read"),
        }
    }
    records.sort_unstable_by_key(|(number, _)| *number);
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

async fn fetch(
    client: &RigClient,
    found: FoundRun,
    part: RunPart,
) -> Result<FetchedRun, MirrorError> {
    let folder = tempfile::Builder::new().prefix("jig-run-").tempdir();
    let folder = folder.map_err(|error| MirrorError::write(&std::env::temp_dir(), error))?;
    let store = RunStore::new(folder.path());
    let copied = match part {
        RunPart::Record => {
            let record = read_all(client, &found.run, RECORD).await?;
            let copied = store.begin_copy(&found.run, &record)?;
            evidence(client, &copied).await?;
            seen(client, &copied).await?;
            copied
        }
        RunPart::Log | RunPart::Whole => {
            let listed = client.call(&DescribeRun { run: found.run.clone() }).await?;
            let copied = store.begin_copy(&found.run, b"")?;
            let record = copied.dir().record_path();
            // A run without a record is shown as one.
            fs::remove_file(&record).map_err(|error| MirrorError::write(&record, error))?;
            let wanted = listed.files.into_iter().filter(|file| part.has(&file.path));
            let wanted = wanted.map(|file| WantedFile { file, grown: false });
            // The index of a console before its log: what it tells of is in the log then.
            let (indices, rest): (Vec<_>, Vec<_>) =
                wanted.partition(|wanted| wanted.file.path.ends_with(".idx"));
            let ledger = rest.iter().any(|wanted| wanted.file.path == CHILDREN);
            copy_all(client, &copied, indices).await?;
            copy_all(client, &copied, rest).await?;
            if ledger {
                let path = copied.dir().path().join(CHILDREN);
                let text = read_all(client, &found.run, CHILDREN).await?;
                fs::write(&path, text).map_err(|error| MirrorError::write(&path, error))?;
            }
            copied
        }
    };
    let live = match found.live {
        true => Some(copied),
        false => copied.finish().map(|_| None)?,
    };
    Ok(FetchedRun { store, found, _live: live, _folder: Some(folder) })
}

/// Fetches what was known of the failure of a run, if anything was.
async fn seen(client: &RigClient, copied: &CopiedRun) -> Result<(), MirrorError> {
    let id = copied.dir().id();
    match client.call(&ReadRunFile { run: id.clone(), path: SEEN_FILE.to_owned(), offset: 0 }).await
    {
        Ok(chunk) => {
            let path = copied.dir().path().join(SEEN_FILE);
            let text = BASE64_STANDARD.decode(chunk.data)?;
            fs::write(&path, text).map_err(|error| MirrorError::write(&path, error))
        }
        Err(error) if error.is_lost() => Err(error.into()),
        // Most runs have none.
        Err(_) => Ok(()),
    }
}

/// Fetches the bytes that a record names, each to its place in a file that has holes else.
async fn evidence(client: &RigClient, copied: &CopiedRun) -> Result<(), MirrorError> {
    // A record that cannot be read names nothing; the verb that shows the run says why.
    let Ok(RunRecord { verdict: Some(verdict), .. }) = copied.dir().record() else {
        return Ok(());
    };
    for evidence in verdict.evidence.iter().take(MOST_EVIDENCE) {
        let Some(path) = copied.file(&evidence.file)? else { continue };
        let (run, path_there, offset) = (copied.dir().id(), &evidence.file, evidence.start);
        let read = ReadRunFile { run: run.clone(), path: path_there.clone(), offset };
        let bytes = match client.call(&read).await {
            Ok(chunk) => BASE64_STANDARD.decode(chunk.data)?,
            Err(error) if error.is_lost() => return Err(error.into()),
            // Evidence that is not there is not quoted.
            Err(_) => continue,
        };
        let written = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let written = written.and_then(|file| file.write_all_at(&bytes, offset));
        written.map_err(|error| MirrorError::write(&path, error))?;
    }
    Ok(())
}
