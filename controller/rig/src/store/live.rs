//! A run under way.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::{BoardId, Identity, PlaceName, RunId, SessionTrace, Verdict};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::disk::Durability;
use super::lost_run::put_aside;
use super::{
    ChildLedger, Clock, EventLog, ImageRecord, PlanRecord, RunDir, RunRecord, RunState, StoreError,
    id_to_try,
};

/// How many ids are tried. A clash needs another run within the same 15 microseconds.
const TRIES: u32 = 1000;

/// A note is saved when this many times the cost of the last saving have passed: it then
/// takes at most a hundredth of the run, and single attempts are saved at once.
const SAVING_SHARE: u32 = 100;

/// Marks a run that is being built and not yet visible to readers.
pub(super) const NEW_PREFIX: &str = ".new-";

/// The folders of each run.
pub(super) const FOLDERS: [&str; 3] = ["artefacts", "consoles", "reports"];

/// What is known when a run begins.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// The program's version.
    pub jig_version: String,
    /// The place it runs on.
    pub place: Option<PlaceName>,
    /// The kind of board.
    pub board: Option<BoardId>,
    /// The plan it follows.
    pub plan: Option<PlanRecord>,
    /// The images it is going to use.
    pub images: Vec<ImageRecord>,
    /// Facts about the host.
    pub host: BTreeMap<String, String>,
    /// Who asked for it.
    pub identity: Option<Identity>,
    /// The session that asks for it, if one does.
    pub asked: Option<SessionTrace>,
}

/// A run under way: as long as this value lives, its lock is held.
///
/// Dropped without [`LiveRun::finish`], it stays `running` with a free lock, exactly as
/// if the process had been killed; the next sweep marks it abandoned.
pub struct LiveRun {
    dir: RunDir,
    record: RunRecord,
    events: Arc<EventLog>,
    children: Arc<ChildLedger>,
    clock: Arc<dyn Clock>,
    began: Duration,
    /// When the record was saved last, and how long that took.
    saved: (Duration, Duration),
    _lock: Flock<File>,
}

impl LiveRun {
    pub(super) fn begin(
        root: &Path,
        new: NewRun,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        // Logs may hold secrets of the firmware: only this user and the group look in.
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(root)
            .map_err(|e| StoreError::writing(root, e))?;
        let now = clock.wall();
        for n in 0..TRIES {
            let Some(id) = id_to_try(now, n) else { break };
            if let Some(run) = Self::build(root, id, &new, &clock)? {
                return Ok(run);
            }
        }
        Err(StoreError::NoFreeId { root: root.to_owned(), tries: TRIES })
    }

    /// Builds the run out of sight and moves it into place; none where the id is taken,
    /// or where a sweep took the unfinished directory for a dead one.
    fn build(
        root: &Path,
        id: RunId,
        new: &NewRun,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, StoreError> {
        let dir = RunDir::new(root, id.clone());
        if dir.path().exists() {
            return Ok(None);
        }
        let hidden = RunDir::at(root.join(format!("{NEW_PREFIX}{id}")), id.clone());
        match DirBuilder::new().mode(0o750).create(hidden.path()) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(e) => return Err(StoreError::writing(root, e)),
        }
        match Self::fill(&hidden, &dir, new, clock) {
            Ok(run) => Ok(run),
            Err(error) if !hidden.path().exists() || dir.path().exists() => {
                let _ = fs::remove_dir_all(hidden.path());
                tolerate_loss(error)
            }
            Err(error) => {
                let _ = fs::remove_dir_all(hidden.path());
                Err(error)
            }
        }
    }

    fn fill(
        hidden: &RunDir,
        dir: &RunDir,
        new: &NewRun,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Self>, StoreError> {
        let lock_path = hidden.lock_path();
        let file = File::create_new(&lock_path).map_err(|e| StoreError::writing(&lock_path, e))?;
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            // A sweep got hold of it first and removes the directory.
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(StoreError::writing(&lock_path, errno.into())),
        };
        for folder in FOLDERS {
            let path = hidden.path().join(folder);
            fs::create_dir(&path).map_err(|e| StoreError::writing(&path, e))?;
        }
        let began = clock.mono();
        let mut record = RunRecord::unknown(dir.id().clone());
        record.jig_version = Some(new.jig_version.clone());
        record.started = Some(clock.wall());
        record.place = new.place.clone();
        record.board = new.board.clone();
        record.plan = new.plan.clone();
        record.images = new.images.clone();
        record.host = new.host.clone();
        record.identity = new.identity.clone();
        record.asked = new.asked.clone();
        let events = EventLog::create(&hidden.events_path(), Arc::clone(clock), began)?;
        let children = ChildLedger::create(&hidden.children_path())?;
        // Not flushed: after a power cut this run is abandoned whatever the record says,
        // and a flush costs about 10 ms, ten times as much as all else here.
        record.write(&hidden.record_path(), Durability::Kill)?;
        // A directory replaces an empty one only, and a run is never empty.
        fs::rename(hidden.path(), dir.path()).map_err(|e| StoreError::writing(dir.path(), e))?;
        events.moved_to(&dir.events_path());
        children.moved_to(&dir.children_path());
        let clock = Arc::clone(clock);
        let (events, children) = (Arc::new(events), Arc::new(children));
        let saved = (clock.mono(), Duration::ZERO);
        let dir = dir.clone();
        Ok(Some(Self { dir, record, events, children, clock, began, saved, _lock: lock }))
    }

    /// Returns the run's id.
    pub fn id(&self) -> &RunId {
        self.dir.id()
    }

    /// Returns the run's paths.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Returns the record as it stands.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Returns the event log; tasks of the run share it.
    pub fn events(&self) -> &Arc<EventLog> {
        &self.events
    }

    /// Returns the ledger of child processes; all code that spawns for the run shares it.
    pub fn children(&self) -> &Arc<ChildLedger> {
        &self.children
    }

    /// Returns the clock that stamps the events, and its monotonic time at the run's
    /// begin: another time line of this run is stamped alike.
    pub fn clock(&self) -> (Arc<dyn Clock>, Duration) {
        (Arc::clone(&self.clock), self.began)
    }

    /// Changes the record, such as after an attempt, and saves it so that it survives
    /// the death of this process.
    ///
    /// # Errors
    /// Says why it cannot be written; the old record is then still in place.
    pub fn update(&mut self, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        change(&mut self.record);
        let before = self.clock.mono();
        self.record.write(&self.dir.record_path(), Durability::Kill)?;
        let after = self.clock.mono();
        self.saved = (after, after.saturating_sub(before));
        Ok(())
    }

    /// Changes the record like [`Self::update`], but saves it only when that is worth its
    /// time. The record of many attempts is long, and each is in the event log as well.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn note(&mut self, change: impl FnOnce(&mut RunRecord)) -> Result<(), StoreError> {
        let (at, cost) = self.saved;
        if self.clock.mono().saturating_sub(at) < cost.saturating_mul(SAVING_SHARE) {
            change(&mut self.record);
            return Ok(());
        }
        self.update(change)
    }

    /// Ends the run with a verdict and saves the record so that it survives a power cut.
    ///
    /// A record that cannot be written where it belongs, such as in a folder that was deleted
    /// during the run, is saved elsewhere, and its verdict says so: the logs are not what they
    /// should be.
    ///
    /// # Errors
    /// Says why it cannot be written anywhere; the run then stays `running` for the next sweep.
    pub fn finish(mut self, verdict: Verdict) -> Result<RunRecord, StoreError> {
        self.record.state = RunState::Ended;
        self.record.ended = Some(self.clock.wall());
        let took = self.clock.mono().saturating_sub(self.began).as_millis();
        self.record.duration_ms = Some(u64::try_from(took).unwrap_or(u64::MAX));
        self.record.conclude(crate::report::settle(verdict));
        let lock = self.dir.lock_path();
        let written = match lock.symlink_metadata() {
            Ok(_) => self.record.write(&self.dir.record_path(), Durability::PowerCut),
            // The lock is gone, so the run's folder was deleted, and the logs with it.
            Err(error) => Err(StoreError::writing(&lock, error)),
        };
        if let Err(error) = written {
            put_aside(&mut self.record, &self.dir, error)?;
        }
        // Only after the record says so; a kill in between leaves an ended run with a
        // free lock, which the next sweep merely tidies.
        let _ = fs::remove_file(self.dir.lock_path());
        Ok(self.record)
    }
}

/// Converts an error into "take another id" where it only says that the directory was lost
/// to a rival; a full disk is a full disk all the same.
fn tolerate_loss(error: StoreError) -> Result<Option<LiveRun>, StoreError> {
    match error {
        StoreError::Write { .. } | StoreError::Damaged { .. } | StoreError::Read { .. } => Ok(None),
        StoreError::Unwritable { .. }
        | StoreError::Full { .. }
        | StoreError::TooLarge { .. }
        | StoreError::Newer { .. }
        | StoreError::NotFound { .. }
        | StoreError::Ambiguous { .. }
        | StoreError::NoFreeId { .. }
        | StoreError::Encode { .. } => Err(error),
    }
}
