//! What the rig learns from its runs, and what it knows of a failure that it sees again.
//!
//! **Invariant: nothing here delays or changes a verdict.** A look has a limit of time, and a capture comes
//! behind the record of the run and the release of its place. What fails here is a warning in the log.
//!
//! # Design
//! *A thread for each call, which is waited for as long as the call may take.* SQLite and the disk block. A
//! thread that is not waited for any more does no harm: what it writes is one transaction, which is done or
//! not, and a run that is handed in twice is learnt from once.

mod commit;
mod observed_run;
mod orders;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jig_knowledge::observed::{LearningInput, ObservedRepair};
use jig_knowledge::retrieve::KnowledgeHit;
use jig_knowledge::store::{CaptureRules, Learnt};
use jig_knowledge::{Knowledge, KnowledgeError, Learner, Observed, SeenBefore, SimilarAsked};
use jig_model::redact::Redactor;
use jig_model::rig_file::KnowledgeSettings;
use jig_model::{BoardId, RunId, chain};
use jig_rig::store::{RunDir, RunEntry, RunRecord, RunState, RunStore, StoreError, read_whole};
use serde::{Deserialize, Serialize};

pub use self::observed_run::{observed_run, signature_of};
pub use self::orders::{
    KnowledgeAnswered, KnowledgeDoor, KnowledgeOrder, KnowledgeOrderError, KnowledgeReply,
    OutboxNote, ShownUnit,
};
use crate::Catalogue;

/// How long a look may take. A person waits for a verdict, not for what is known of it.
const LOOK: Duration = Duration::from_millis(100);

/// How long a search for an agent may take: the search itself 100 ms, and the opening of the index of a large
/// store as much again.
const SEARCH: Duration = Duration::from_secs(1);

/// How long the end of a command waits for what it learns. Behind the verdict, and twenty times what
/// a capture takes.
const CAPTURE: Duration = Duration::from_millis(500);

/// How long earlier runs are learnt from behind a run, at most; the rest waits for the next one.
const BACKLOG: Duration = Duration::from_millis(200);

/// Runs of the folder that may not have been learnt from, the newest ones. Older ones are named.
const LATEST: usize = 256;

/// The file of a run that says what was known of its failure when it ended.
pub const SEEN_FILE: &str = "knowledge.json";

/// Largest such file that is read.
const MOST_SEEN: u64 = 1 << 20;

/// Learns from runs of this host's rig, and looks up what is known.
#[derive(Debug, Clone)]
pub struct KnowledgeDesk {
    learner: Learner,
    runs: PathBuf,
    /// The chip of each kind of board.
    chips: BTreeMap<BoardId, String>,
    enabled: bool,
}

/// What became of runs that were not learnt from before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaughtUp {
    /// Runs that were learnt from.
    pub runs: usize,
    /// Units that were made.
    pub new_units: usize,
    /// Observations in the outbox that were learnt from.
    pub queued: usize,
    /// Files of the outbox that are damaged.
    pub damaged: Vec<PathBuf>,
    /// Whether the time was over before the last one.
    pub more: bool,
}

/// Says why a run was not learnt from.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// There is no such run, or it cannot be read.
    #[error(transparent)]
    Run(#[from] StoreError),
    /// It has not ended.
    #[error("run {0} has not ended")]
    Unended(RunId),
    /// It is a copy of a run of another host.
    #[error("run {0} was made by another rig, which has learnt from it")]
    Elsewhere(RunId),
    /// Knowledge cannot be used.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

impl Catalogue {
    /// Returns what learns from the runs of this rig.
    pub fn knowledge(&self) -> KnowledgeDesk {
        let KnowledgeSettings { enabled, repeats, threshold, most_units } = *self.learning();
        let rules = CaptureRules {
            repeats: repeats.into(),
            threshold: threshold.into(),
            most_units: most_units.into(),
        };
        let folder = Knowledge::folder_in(&self.state());
        let learner = Learner::new(&folder, rules, Redactor::default());
        KnowledgeDesk { learner, runs: self.runs_dir(), chips: self.chips(), enabled }
    }
}

impl KnowledgeDesk {
    /// Tells whether the rig learns and looks up by itself.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Returns what learns.
    pub fn learner(&self) -> &Learner {
        &self.learner
    }

    /// Tells what is known of the failure of a run; nothing for a pass, or where the store does not answer
    /// in time.
    pub fn seen_before(&self, record: &RunRecord) -> Option<SeenBefore> {
        self.seen(signature_of(record)?, record.id.to_string())
    }

    fn seen(&self, signature: String, run: String) -> Option<SeenBefore> {
        if !self.enabled {
            return None;
        }
        let learner = self.learner.clone();
        let look = move || learner.seen_before(&signature, &run);
        match in_time(LOOK, look)? {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(error = chain(&error), "what is known of the failure is left out");
                None
            }
        }
    }

    /// Finds what is like a failure, for an agent; nothing where the store does not answer in time.
    pub fn similar(&self, asked: SimilarAsked) -> Vec<KnowledgeHit> {
        if !self.enabled {
            return Vec::new();
        }
        let learner = self.learner.clone();
        match in_time(SEARCH, move || learner.similar(asked)) {
            Some(Ok(hits)) => hits,
            Some(Err(error)) => {
                tracing::warn!(error = chain(&error), "what is known of the failure is left out");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Leaves what is known of the failure of a run in its folder, for its reports and for callers of other
    /// hosts. Takes no longer than a look may.
    pub(crate) async fn note_seen(&self, dir: &RunDir, record: &RunRecord) {
        let Some(signature) = signature_of(record) else { return };
        let (desk, run) = (self.clone(), record.id.to_string());
        let path = dir.path().join(SEEN_FILE);
        let look = tokio::task::spawn_blocking(move || {
            let Some(seen) = desk.seen(signature, run) else { return };
            let text = serde_json::to_vec_pretty(&seen).map_err(io::Error::other);
            if let Err(error) = text.and_then(|text| fs::write(&path, text)) {
                tracing::warn!(error = chain(&error), "what is known of the failure is left out");
            }
        });
        // A panic has been told by its hook, and says nothing of the run.
        let _ = look.await;
    }

    /// Learns from a run that has ended, and from earlier ones of which nothing was learnt. Comes behind
    /// the verdict, and waits no longer than a moment.
    pub fn capture(&self, run: &RunId) {
        if !self.enabled {
            return;
        }
        let (desk, id) = (self.clone(), run.clone());
        let (observed, queue) = mpsc::channel();
        let work = move || {
            let seen = desk.observed(id.as_str())?;
            let _ = observed.send(seen.clone());
            // What was not learnt comes first: a lesson is what changed from one run to the next.
            if let Err(error) = desk.catch_up(Some(BACKLOG)) {
                tracing::debug!(error = chain(&error), "earlier runs were not learnt from");
            }
            Ok::<Observed, LearnError>(desk.learner.observe(seen)?)
        };
        match in_time(CAPTURE, work) {
            Some(Ok(Observed::Learnt(learnt))) => tell(run.as_str(), &learnt),
            Some(Ok(Observed::Queued { file, why })) => {
                tracing::warn!(
                    error = why,
                    "run {run} is learnt from later; it is kept in {}",
                    file.display()
                );
            }
            Some(Err(LearnError::Elsewhere(_))) => {}
            Some(Err(error)) => {
                tracing::warn!(error = chain(&error), "run {run} was not learnt from")
            }
            None => {
                let queued = queue.try_recv().ok().map(|seen| self.learner.queue(seen));
                if let Some(Err(error)) = queued {
                    tracing::warn!(error = chain(&error), "run {run} was not learnt from");
                }
            }
        }
    }

    /// Learns from a run of the repair loop that has ended. Behind its result, too.
    pub fn capture_repair(&self, repair: ObservedRepair) {
        if !self.enabled {
            return;
        }
        let (learner, name) = (self.learner.clone(), repair.run.clone());
        let seen = LearningInput::Repair(Box::new(repair));
        let observed = seen.clone();
        match in_time(CAPTURE, move || learner.observe(observed)) {
            Some(Ok(Observed::Learnt(learnt))) => tell(&name, &learnt),
            Some(Ok(Observed::Queued { file, why })) => {
                tracing::warn!(
                    error = why,
                    "{name} is learnt from later; it is kept in {}",
                    file.display()
                );
            }
            Some(Err(error)) => tracing::warn!(error = chain(&error), "{name} was not learnt from"),
            None => {
                if let Err(error) = self.learner.queue(seen) {
                    tracing::warn!(error = chain(&error), "{name} was not learnt from");
                }
            }
        }
    }

    /// Learns from one run, named by its id, a beginning of that, or `last`.
    ///
    /// # Errors
    /// There is no such run, it has not ended, or knowledge cannot be used.
    pub fn learn_from(&self, wanted: &str) -> Result<(RunId, Observed), LearnError> {
        let entry = RunStore::new(&self.runs).open(wanted)?;
        let id = entry.dir.id().clone();
        Ok((id, self.learner.observe(self.observed_of(entry)?)?))
    }

    /// Learns from what waits in the outbox, and from the latest runs of which nothing was learnt, the
    /// oldest first, as long as the time allows.
    ///
    /// # Errors
    /// The folder of runs or the store cannot be used.
    pub fn catch_up(&self, limit: Option<Duration>) -> Result<CaughtUp, LearnError> {
        let began = Instant::now();
        let mut done = CaughtUp::default();
        (done.queued, done.damaged) = self.learner.catch_up()?;
        let store = RunStore::new(&self.runs);
        let mut ids: Vec<String> =
            store.ids()?.into_iter().take(LATEST).map(|id| id.to_string()).collect();
        ids.reverse();
        for id in self.learner.unknown_of(ids)? {
            if limit.is_some_and(|limit| began.elapsed() >= limit) {
                done.more = true;
                break;
            }
            // One that was removed since, still goes on, cannot be read or is of another rig teaches nothing.
            let Ok(seen) = self.observed(&id) else { continue };
            if let Observed::Learnt(learnt) = self.learner.observe(seen)? {
                done.runs += 1;
                done.new_units += learnt.units.iter().filter(|unit| unit.new).count();
            }
        }
        self.learner.archive_unread(Timestamp::now())?;
        Ok(done)
    }

    /// Returns what is seen in a run that has ended.
    ///
    /// # Errors
    /// There is no such run, or it has not ended.
    pub fn observed(&self, wanted: &str) -> Result<LearningInput, LearnError> {
        self.observed_of(RunStore::new(&self.runs).open(wanted)?)
    }

    fn observed_of(&self, entry: RunEntry) -> Result<LearningInput, LearnError> {
        let RunEntry { dir, record, live } = entry;
        let record = record?;
        if live || record.state == RunState::Running {
            return Err(LearnError::Unended(record.id));
        }
        if dir.is_copy() {
            return Err(LearnError::Elsewhere(record.id));
        }
        let chip = record.board.as_ref().and_then(|board| self.chips.get(board));
        let repairs = self.runs.join("repairs");
        Ok(LearningInput::Run(Box::new(observed_run(&dir, &record, chip, &repairs))))
    }
}

/// Reads what was known of the failure of a run when it ended.
pub fn seen_in(run: &Path) -> Option<SeenBefore> {
    let text = read_whole(&run.join(SEEN_FILE), MOST_SEEN).ok()?;
    serde_json::from_slice(&text).ok()
}

fn tell(run: &str, learnt: &Learnt) {
    for unit in &learnt.units {
        let what = if unit.new { "new" } else { "known" };
        tracing::debug!("learnt from {run}: {} ({what})", unit.id);
    }
    if learnt.left_out > 0 {
        tracing::warn!(
            "there are as many units as `most_units` of [knowledge] allows: {} were not made",
            learnt.left_out
        );
    }
}

/// Does something on a thread of its own; says so where it takes longer than it may.
fn in_time<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, waits) = mpsc::channel();
    let thread = std::thread::Builder::new().name("knowledge".to_owned());
    let started = thread.spawn(move || drop(done.send(work())));
    if let Err(error) = started {
        tracing::warn!(%error, "knowledge is left out: no thread can be started");
        return None;
    }
    match waits.recv_timeout(limit) {
        Ok(value) => Some(value),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            tracing::warn!("knowledge is left out: it did not answer within {limit:?}");
            None
        }
        // A panic has been told by its hook.
        Err(mpsc::RecvTimeoutError::Disconnected) => None,
    }
}
