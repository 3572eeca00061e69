//! All captured consoles of a rig; applies changes of the rig file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jig_model::capture_service::{CaptureState, CaptureStatus};
use jig_model::{ConsoleName, PlaceName};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::console_capture::ConsoleCapture;
use super::files::LogFolder;
use super::orders::{CaptureHandle, CaptureOrder, CaptureSpec, ORDERS, OpenTransport};
use crate::console::ConsoleClock;
use crate::store::Places;

/// Called with each change of a console's status. Must not block.
pub type CaptureObserver = Arc<dyn Fn(&CaptureStatus) + Send + Sync>;

/// Place and console.
type Key = (PlaceName, ConsoleName);

/// Effect of a new list of consoles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// New consoles.
    pub began: Vec<(PlaceName, ConsoleName)>,
    /// Consoles whose transport or limits changed.
    pub changed: Vec<(PlaceName, ConsoleName)>,
    /// Consoles that are no longer captured.
    pub ended: Vec<(PlaceName, ConsoleName)>,
}

struct CaptureEntry {
    spec: CaptureSpec,
    handle: CaptureHandle,
}

/// The captured consoles of a rig. Use within a tokio runtime.
pub struct CaptureService {
    places: Places,
    opener: Arc<dyn OpenTransport>,
    clock: Arc<dyn ConsoleClock>,
    tell: CaptureObserver,
    kept: BTreeMap<Key, CaptureEntry>,
    tasks: JoinSet<()>,
}

impl CaptureService {
    /// Starts without consoles; logs go below the folder of `places`.
    pub fn new(
        places: Places,
        opener: Arc<dyn OpenTransport>,
        clock: Arc<dyn ConsoleClock>,
        tell: CaptureObserver,
    ) -> Self {
        let (kept, tasks) = (BTreeMap::new(), JoinSet::new());
        Self { places, opener, clock, tell, kept, tasks }
    }

    /// Captures exactly these consoles. Unchanged consoles are not disturbed; a lent transport
    /// changes when it is returned.
    pub async fn apply(&mut self, specs: Vec<CaptureSpec>) -> Applied {
        while self.tasks.try_join_next().is_some() {}
        let mut applied = Applied::default();
        let mut old = std::mem::take(&mut self.kept);
        for spec in specs {
            let key = (spec.place.clone(), spec.transport.console.clone());
            let entry = match old.remove(&key) {
                Some(entry) if entry.spec == spec => entry,
                Some(entry) => {
                    applied.changed.push(key.clone());
                    // The actor may have ended.
                    let _ = entry.handle.order(CaptureOrder::Change(Box::new(spec.clone()))).await;
                    CaptureEntry { spec, ..entry }
                }
                None => {
                    applied.began.push(key.clone());
                    self.begin(spec)
                }
            };
            self.kept.insert(key, entry);
        }
        for (key, entry) in old {
            applied.ended.push(key);
            let _ = entry.handle.order(CaptureOrder::Stop).await;
        }
        applied
    }

    /// Retries transports that have ended for good.
    pub async fn again(&self) {
        for entry in self.kept.values() {
            let _ = entry.handle.order(CaptureOrder::Again).await;
        }
    }

    fn begin(&mut self, spec: CaptureSpec) -> CaptureEntry {
        let (orders, inbox) = mpsc::channel(ORDERS);
        let (status, seen) = watch::channel(CaptureStatus {
            place: spec.place.clone(),
            console: spec.transport.console.clone(),
            end: spec.transport.end.address().into_owned(),
            state: CaptureState::Waiting { why: "it is being opened".to_owned() },
            file: 0,
            writer: None,
        });
        let kept = ConsoleCapture {
            folder: LogFolder::new(&self.places, &spec.place, &spec.transport.console),
            spec: spec.clone(),
            opener: Arc::clone(&self.opener),
            clock: Arc::clone(&self.clock),
            tell: Arc::clone(&self.tell),
            inbox,
            orders: orders.downgrade(),
            status,
            lends: VecDeque::new(),
            releases: VecDeque::new(),
            changed: None,
            again: false,
            stopping: false,
            log: None,
            missed: false,
            writer: None,
            writers: 0,
            writes: JoinSet::new(),
            fresh_at: None,
        };
        self.tasks.spawn(kept.run());
        CaptureEntry { spec, handle: CaptureHandle { orders, status: seen } }
    }

    /// Finds a console.
    pub fn find(&self, place: &PlaceName, console: &ConsoleName) -> Option<&CaptureHandle> {
        self.kept.get(&(place.clone(), console.clone())).map(|entry| &entry.handle)
    }

    /// Lists the consoles by place and name, each with its specification.
    pub fn all(&self) -> impl Iterator<Item = (&CaptureSpec, &CaptureHandle)> {
        self.kept.values().map(|entry| (&entry.spec, &entry.handle))
    }

    /// Shuts down: writes received bytes and syncs the logs. Lent transports stay with their
    /// borrowers.
    pub async fn close(mut self) {
        for entry in self.kept.values() {
            let _ = entry.handle.order(CaptureOrder::Stop).await;
        }
        self.kept.clear();
        while self.tasks.join_next().await.is_some() {}
    }
}
