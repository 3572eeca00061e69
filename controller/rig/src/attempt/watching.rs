//! The watchers of all consoles of an attempt, from its beginning to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jig_model::{ConsoleName, chain};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::board::{AttemptBoard, WatcherProgress};
use super::compiled_patterns::RunPatterns;
use super::error::AttemptError;
use super::watcher::{ConsoleWatcher, ResultsReader, WatcherResult};
use crate::judge::{ByteRange, IncidentKind};

/// The running watchers, one for each console.
pub(super) struct Watching {
    /// Each returns its console and its result.
    watchers: JoinSet<Result<(ConsoleName, WatcherResult), AttemptError>>,
    stops: Vec<oneshot::Sender<()>>,
}

/// Results of the watchers of all consoles.
#[derive(Default)]
pub(super) struct Sights {
    /// Of the console with the test results.
    pub(super) results: WatcherResult,
    /// Of the other consoles.
    pub(super) others: BTreeMap<ConsoleName, WatcherResult>,
}

impl Sights {
    /// Returns for how long every console has been silent.
    pub(super) fn silent(&self) -> Duration {
        let others = self.others.values().map(|other| other.silent);
        others.fold(self.results.silent, Duration::min)
    }
}

impl Watching {
    /// Starts the watchers. On the console with the test results they are read as the plan says, on
    /// the others in every known format, except where their reports do not count. Also returns the progress of each
    /// watcher, a channel that closes when the watcher ends.
    pub(super) fn start(
        board: &Arc<AttemptBoard>,
        patterns: &Arc<RunPatterns>,
        reading: &ResultsReader,
        ignored: &BTreeSet<ConsoleName>,
    ) -> (Self, BTreeMap<ConsoleName, watch::Receiver<WatcherProgress>>) {
        let mut watching = Self { watchers: JoinSet::new(), stops: Vec::new() };
        let mut watched = BTreeMap::new();
        for name in board.lines.keys() {
            let how = match *name == board.results {
                true => Some(reading.clone()),
                false => (!ignored.contains(name)).then(ResultsReader::default),
            };
            let (told, progress) = watch::channel(WatcherProgress::default());
            watched.insert(name.clone(), progress);
            let (stop, stopped) = oneshot::channel();
            watching.stops.push(stop);
            let (name, board, patterns) = (name.clone(), Arc::clone(board), Arc::clone(patterns));
            watching.watchers.spawn(async move {
                let read = async {
                    let watcher =
                        ConsoleWatcher::new(&name, &board, patterns.compiled().await?, how, told)?;
                    watcher.run(stopped).await
                };
                let read: Result<WatcherResult, AttemptError> = read.await;
                if let Err(error) = &read {
                    // Without this watcher, waits for output would run into their time-outs.
                    let range = ByteRange { text: chain(error), ..ByteRange::default() };
                    board.incident(IncidentKind::Lost(error.cause()), range);
                }
                Ok((name, read?))
            });
        }
        (watching, watched)
    }

    /// Lets the watchers read the rest, and ends them.
    pub(super) async fn end(mut self, results: &ConsoleName) -> Result<Sights, AttemptError> {
        drop(self.stops);
        let mut sights = Sights::default();
        while let Some(ended) = self.watchers.join_next().await {
            let (name, seen) = ended.map_err(AttemptError::Broken)??;
            if name == *results {
                sights.results = seen;
            } else {
                sights.others.insert(name, seen);
            }
        }
        Ok(sights)
    }
}
