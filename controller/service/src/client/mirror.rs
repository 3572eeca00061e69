//! The copy of a run at the caller's host.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_model::command::CommandEvent;
use jig_model::{Fault, RunId, chain};
use jig_rig::store::{CopiedRun, RunStore, StoreError, lost_runs};
use tokio::task::{JoinError, JoinSet};

use super::upload::SentImage;
use super::{CallError, RigClient};
use crate::digest::digest_of_file;
use crate::protocol::{
    DescribeRun, FollowFile, FollowedFile, MOST_CALLS, ReadRunFile, RunFile, SharedFolder,
};

/// Most files that are fetched at a time: a quarter of what a host answers side by side, so that streams
/// and input have their part.
const AT_ONCE: usize = MOST_CALLS / 4;

/// Says why a run was not copied.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The host does not give it.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There is no place for it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of it cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why, in the system's words.
        source: io::Error,
    },
    /// A file is another one than that of the rig.
    #[error("the copy of {path} of run {run} differs from the rig's")]
    Differs {
        /// The run.
        run: RunId,
        /// Its path within the run.
        path: String,
    },
    /// A copy ended in a panic.
    #[error("a file of the run was not copied")]
    Task(#[source] JoinError),
    /// What came is no base64.
    #[error("the rig's host sends no base64")]
    Data(#[from] base64::DecodeError),
}

impl MirrorError {
    /// Says who is to blame.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Call(error) => error.fault(),
            Self::Store(error) => error.fault(),
            Self::Write { .. } | Self::Differs { .. } | Self::Data(_) => Fault::Lab,
            Self::Task(_) => Fault::Bug,
        }
    }

    /// Tells whether another connection may bring what is missing.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_lost())
    }

    pub(super) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }
}

/// The run of a command, copied while it goes on.
pub(super) struct RunMirror {
    /// Folder of the copy.
    runs: PathBuf,
    /// Whether the caller sees the rig's own folder.
    shared: bool,
    /// Files of the caller, of which the run has copies.
    images: Arc<Vec<SentImage>>,
    run: Option<MirroredRun>,
    pumps: JoinSet<()>,
}

struct MirroredRun {
    id: RunId,
    /// Its folder at the rig.
    there: PathBuf,
    copy: CopiedRun,
    /// Console logs that are copied as they grow, by their paths within the run.
    logs: Vec<String>,
}

impl RunMirror {
    pub(super) fn new(runs: PathBuf, there: &SharedFolder, images: Arc<Vec<SentImage>>) -> Self {
        let here = SharedFolder::of(&runs);
        let shared = here.inode.is_some() && here == *there;
        Self { runs, shared, images, run: None, pumps: JoinSet::new() }
    }

    /// Takes in an event; its paths become those of this host.
    pub(super) async fn take_in(
        &mut self,
        client: &RigClient,
        event: CommandEvent,
    ) -> Result<CommandEvent, MirrorError> {
        if self.shared {
            return Ok(event);
        }
        match event {
            CommandEvent::RunBegan { run, dir } => {
                // Told again on a new connection.
                if self.run.as_ref().is_none_or(|known| known.id != run) {
                    self.begin(client, run.clone(), dir).await?;
                }
                let dir = self.run.as_ref().map(|run| run.copy.dir().path().to_owned());
                Ok(CommandEvent::RunBegan { run, dir: dir.unwrap_or_default() })
            }
            CommandEvent::Console { console, log } => {
                let Some(path) = self.follow(client, &log).await? else {
                    return Ok(CommandEvent::Console { console, log });
                };
                Ok(CommandEvent::Console { console, log: path })
            }
            other => Ok(other),
        }
    }

    async fn begin(
        &mut self,
        client: &RigClient,
        id: RunId,
        there: PathBuf,
    ) -> Result<(), MirrorError> {
        let record = read_all(client, &id, "record.json").await?;
        let begun = RunStore::new(&self.runs).begin_copy(&id, &record).or_else(|error| {
            tracing::warn!(error = chain(&error), "the run is copied to another folder");
            RunStore::new(lost_runs()).begin_copy(&id, &record)
        });
        self.run = Some(MirroredRun { id, there, copy: begun?, logs: Vec::new() });
        Ok(())
    }

    /// Begins to copy a console log as it grows; returns its path here.
    async fn follow(
        &mut self,
        client: &RigClient,
        log: &Path,
    ) -> Result<Option<PathBuf>, MirrorError> {
        let Some(run) = &mut self.run else { return Ok(None) };
        let inner = log.strip_prefix(&run.there).ok().and_then(Path::to_str);
        let Some(inner) = inner.map(str::to_owned) else { return Ok(None) };
        let Some(path) = run.copy.file(&inner)? else { return Ok(None) };
        let made = OpenOptions::new().append(true).create(true).open(&path);
        let len = made.and_then(|file| file.metadata()).map(|about| about.len());
        let len = len.map_err(|error| MirrorError::write(&path, error))?;
        if len == 0 && !run.logs.contains(&inner) {
            run.logs.push(inner.clone());
        }
        let (client, run) = (client.clone(), run.id.clone());
        let to = path.clone();
        self.pumps.spawn(async move {
            let follow = FollowFile { run, path: inner, offset: len };
            // Whatever is missing behind it is fetched at the end.
            if let Err(error) = pump(&client, follow, &to).await {
                tracing::debug!(error = chain(&error), "a console log is copied later");
            }
        });
        Ok(Some(path))
    }

    /// Goes on with the logs on another connection.
    pub(super) async fn go_on(&mut self, client: &RigClient) -> Result<(), MirrorError> {
        self.pumps.shutdown().await;
        let Some(run) = &self.run else { return Ok(()) };
        let logs: Vec<PathBuf> = run.logs.iter().map(|inner| run.there.join(inner)).collect();
        for log in logs {
            self.follow(client, &log).await?;
        }
        Ok(())
    }

    /// Copies what is missing of the run, which has ended; returns its folder here.
    pub(super) async fn finish(
        &mut self,
        client: &RigClient,
    ) -> Result<Option<PathBuf>, MirrorError> {
        if self.run.is_none() {
            return Ok(None);
        }
        // Each ends with the run, or with its connection.
        while self.pumps.join_next().await.is_some() {}
        let Some(run) = &self.run else { return Ok(None) };
        let listed = client.call(&DescribeRun { run: run.id.clone() }).await?;
        // Images are here already; they are compared like all files.
        for file in &listed.files {
            if let Some(image) = self.images.iter().find(|image| image.is(file))
                && let Some(path) = run.copy.file(&file.path)?
            {
                std::fs::write(&path, image.bytes())
                    .map_err(|error| MirrorError::write(&path, error))?;
            }
        }
        // A console log only grows; any other file may be a new one.
        let wanted = listed.files.into_iter().map(|file| {
            let grown = run.logs.contains(&file.path);
            WantedFile { file, grown }
        });
        copy_all(client, &run.copy, wanted).await?;
        let Some(run) = self.run.take() else { return Ok(None) };
        Ok(Some(run.copy.finish()?.path().to_owned()))
    }
}

async fn pump(client: &RigClient, follow: FollowFile, to: &Path) -> Result<(), MirrorError> {
    let mut file =
        OpenOptions::new().append(true).open(to).map_err(|error| MirrorError::write(to, error))?;
    let mut stream = client.stream(&follow).await?;
    while let Some(item) = stream.next().await {
        let piece: FollowedFile = serde_json::from_value(item)
            .map_err(|source| CallError::Stranger { method: "run.follow", source })?;
        let bytes = BASE64_STANDARD.decode(piece.data)?;
        file.write_all(&bytes).map_err(|error| MirrorError::write(to, error))?;
    }
    Ok(stream.answer::<FollowFile>().await.map(|_| ())?)
}

/// A file of a run that is to be copied.
pub(super) struct WantedFile {
    pub(super) file: RunFile,
    /// Whether the copy is a beginning of it, or all of it.
    pub(super) grown: bool,
}

/// Copies files, several at a time: a call for each would wait for the way there and back.
pub(super) async fn copy_all(
    client: &RigClient,
    to: &CopiedRun,
    wanted: impl IntoIterator<Item = WantedFile>,
) -> Result<(), MirrorError> {
    // What is under way ends with the first failure, when this is dropped.
    let mut copies = JoinSet::new();
    for WantedFile { file, grown } in wanted {
        let Some(path) = to.file(&file.path)? else { continue };
        if copies.len() >= AT_ONCE {
            joined(copies.join_next().await)?;
        }
        let (client, run) = (client.clone(), to.dir().id().clone());
        copies.spawn(async move { copy(&client, &run, &path, grown, &file).await });
    }
    while let Some(copied) = copies.join_next().await {
        joined(Some(copied))?;
    }
    Ok(())
}

fn joined(copied: Option<Result<Result<(), MirrorError>, JoinError>>) -> Result<(), MirrorError> {
    copied.map_or(Ok(()), |copied| copied.map_err(MirrorError::Task)?)
}

/// Copies a file, and compares the whole; of one that has `grown`, what is behind the end of the copy.
async fn copy(
    client: &RigClient,
    run: &RunId,
    path: &Path,
    grown: bool,
    file: &RunFile,
) -> Result<(), MirrorError> {
    let failed = |error| MirrorError::write(path, error);
    let same = |path: &Path| {
        let Some(wanted) = &file.sha256 else { return Ok(true) };
        io::Result::Ok(digest_of_file(path)?.sha256 == *wanted)
    };
    let len = std::fs::metadata(path).map_or(0, |about| about.len());
    if len == file.size && path.is_file() && same(path).map_err(failed)? {
        return Ok(());
    }
    let mut offset = if grown && len < file.size { len } else { 0 };
    loop {
        read_behind(client, run, path, offset, file).await?;
        if same(path).map_err(failed)? {
            return Ok(());
        }
        if offset == 0 {
            return Err(MirrorError::Differs { run: run.clone(), path: file.path.clone() });
        }
        // It did not begin as the rig's does.
        offset = 0;
    }
}

/// Reads a file from an offset on, and writes that behind as much of the copy.
async fn read_behind(
    client: &RigClient,
    run: &RunId,
    path: &Path,
    offset: u64,
    file: &RunFile,
) -> Result<(), MirrorError> {
    let failed = |error| MirrorError::write(path, error);
    let mut options = OpenOptions::new();
    options.create(true).append(offset > 0).write(true).truncate(offset == 0);
    let (mut to, mut at) = (options.open(path).map_err(failed)?, offset);
    // A file without a digest grows: all that is there by now is read.
    while at < file.size || file.sha256.is_none() {
        let read = ReadRunFile { run: run.clone(), path: file.path.clone(), offset: at };
        let bytes = BASE64_STANDARD.decode(client.call(&read).await?.data)?;
        if bytes.is_empty() {
            break;
        }
        to.write_all(&bytes).map_err(failed)?;
        at += u64::try_from(bytes.len()).unwrap_or(0);
    }
    Ok(())
}

pub(super) async fn read_all(
    client: &RigClient,
    run: &RunId,
    path: &str,
) -> Result<Vec<u8>, MirrorError> {
    let mut all = Vec::new();
    loop {
        let offset = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let read = ReadRunFile { run: run.clone(), path: path.to_owned(), offset };
        let bytes = BASE64_STANDARD.decode(client.call(&read).await?.data)?;
        if bytes.is_empty() {
            return Ok(all);
        }
        all.extend_from_slice(&bytes);
    }
}
