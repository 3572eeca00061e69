//! Telling a run while it grows: its events and its consoles, in one stream.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jig_rig::store::RunDir;

use super::run_files;
use super::streams::StreamOut;
use crate::growing_file::{LookPauses, read_at};
use crate::protocol::{EVENTS, Nothing, RequestError, RunPiece, WatchRun};

/// Tells events and consoles of a run from where the caller stands, until the run has ended.
pub(super) async fn watch_run(
    dir: &RunDir,
    watch: WatchRun,
    to: &StreamOut,
) -> Result<Nothing, RequestError> {
    let WatchRun { run: _, have, from_now } = watch;
    let mut told = ToldRun { have, offsets: BTreeMap::new(), done: BTreeSet::new() };
    let (mut pauses, mut first) = (LookPauses::OF_RUN, true);
    loop {
        // Asked first: what was written before the end is read behind it.
        let live = dir.is_live();
        let Some(moved) = told.tell(dir, first && from_now, to).await else {
            return Ok(Nothing {});
        };
        first = false;
        if moved {
            pauses.news();
            continue;
        }
        if !live {
            return Ok(Nothing {});
        }
        tokio::select! {
            () = pauses.wait() => {}
            () = to.closed.cancelled() => return Ok(Nothing {}),
        }
    }
}

/// How far a run has been told.
struct ToldRun {
    /// What the caller had of each file before.
    have: BTreeMap<String, u64>,
    offsets: BTreeMap<String, u64>,
    /// Files that do not grow any more.
    done: BTreeSet<String>,
}

impl ToldRun {
    /// Tells the next piece of each file; says whether there was any. Nothing if the caller has gone.
    async fn tell(&mut self, dir: &RunDir, skip: bool, to: &StreamOut) -> Option<bool> {
        let mut moved = false;
        for (path, grows) in files(dir) {
            if self.done.contains(&path) {
                continue;
            }
            // One that has just been made, or is gone, is looked for again.
            let Ok(file) = run_files::open(dir.path(), &path) else { continue };
            let known = self.offsets.get(&path).copied();
            let had = known.or_else(|| self.have.get(&path).copied());
            let offset = had.unwrap_or_else(|| match skip && path != EVENTS {
                true => file.metadata().map_or(0, |about| about.len()),
                false => 0,
            });
            let Ok(bytes) = read_at(&file, offset) else { continue };
            // A new file is told of also without bytes: it is where the caller stands.
            if known.is_none() || !bytes.is_empty() {
                let data = BASE64_STANDARD.encode(&bytes);
                let piece = RunPiece { call: to.call, path: path.clone(), offset, data };
                if !to.send("run.piece", &piece).await {
                    return None;
                }
            }
            moved |= !bytes.is_empty();
            if bytes.is_empty() && !grows {
                self.done.insert(path.clone());
            }
            let len = u64::try_from(bytes.len()).unwrap_or(0);
            self.offsets.insert(path, offset.saturating_add(len));
        }
        Some(moved)
    }
}

/// Names the files that are told, and whether each may still grow: those of the last two attempts. The
/// events come last: a caller that has a piece of them knows where it stands in every file before.
fn files(dir: &RunDir) -> Vec<(String, bool)> {
    let mut files = Vec::new();
    let attempts = dir.attempts();
    let last = attempts.len().saturating_sub(2);
    for (number, attempt) in attempts.iter().enumerate() {
        let folder = dir.path().join("consoles").join(attempt.to_string());
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "raw"));
        paths.sort();
        let named = paths.iter().filter_map(|path| dir.relative(path));
        files.extend(named.map(|path| (path, number >= last)));
    }
    files.push((EVENTS.to_owned(), true));
    files
}
