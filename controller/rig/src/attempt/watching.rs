//! The watchers of all consoles of an attempt, from its beginning to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Each returns its result, and whether its console is the one with the test results.
    watchers: JoinSet<Result<(bool, WatcherResult), AttemptError>>,
    stops: Vec<oneshot::Sender<()>>,
}

/// Results of the watchers of all consoles.
#[derive(Default)]
pub(super) struct Sights {
    /// Of the console with the test results.
    pub(super) results: WatcherResult,
    pub(super) others: Vec<WatcherResult>,
}

impl Watching {
    /// Starts the watchers; results are read as the plan says. Also returns the progress of each
    /// watcher, a channel that closes when the watcher ends.
    pub(super) fn start(
        board: &Arc<AttemptBoard>,
        patterns: &Arc<RunPatterns>,
        reading: &ResultsReader,
    ) -> (Self, BTreeMap<ConsoleName, watch::Receiver<WatcherProgress>>) {
        let mut watching = Self { watchers: JoinSet::new(), stops: Vec::new() };
        let mut watched = BTreeMap::new();
        for name in board.lines.keys() {
            let is_results = *name == board.results;
            let how = is_results.then(|| reading.clone());
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
                Ok((is_results, read?))
            });
        }
        (watching, watched)
    }

    /// Lets the watchers read the rest, and ends them.
    pub(super) async fn end(mut self) -> Result<Sights, AttemptError> {
        drop(self.stops);
        let mut sights = Sights::default();
        while let Some(ended) = self.watchers.join_next().await {
            let (is_results, seen) = ended.map_err(AttemptError::Broken)??;
            if is_results {
                sights.results = seen;
            } else {
                sights.others.push(seen);
            }
        }
        Ok(sights)
    }
}
