//! Where drivers, watchers and actions report what they observe of a board in one attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::protocol::{BoardSink, BoxFuture, PowerState, Transport};
use jig_model::{Cause, ConsoleName, Note, RunEvent};
use tokio::sync::watch;

use super::facts::{BoardFacts, Boot, Observed};
use crate::console::ConsoleHandle;
use crate::judge::{ByteRange, Incident, IncidentKind};

/// How long the driver may take to say why a console's transport has ended. It learns of the
/// emulator's end within a millisecond of the transport; a loaded host may take a thousand.
pub(super) const REASON: Duration = Duration::from_secs(5);

/// Takes the events of a run, in order.
pub trait RunEventSink: Send + Sync {
    /// Takes one.
    fn emit(&self, event: RunEvent);
}

/// One console of the board.
pub(super) struct BoardConsole {
    pub(super) handle: ConsoleHandle,
    /// The log's path relative to the run.
    pub(super) file: String,
}

/// What the results console's watcher has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WatcherProgress {
    /// Number of bytes of the log that the watcher has read.
    pub(super) processed: u64,
    /// Boots that were begun.
    pub(super) boots: usize,
    /// Whether the report's end marker was seen in this boot.
    pub(super) ended: bool,
    /// How many reports were complete in this boot.
    pub(super) reports: u32,
    /// Whether a report has begun in this boot.
    pub(super) reporting: bool,
    /// Where the last report of this boot ends, if it does and output may follow it.
    pub(super) ended_at: Option<u64>,
    /// Whether the last output of this boot is garbage without text after it.
    pub(super) garbled: bool,
    /// Whether a crash was printed that the next line may excuse.
    pub(super) undecided: bool,
}

/// Collects reports; any task may read the facts and wait for a change.
pub(super) struct AttemptBoard {
    pub(super) lines: BTreeMap<ConsoleName, BoardConsole>,
    /// Console of an action that names none.
    pub(super) primary: ConsoleName,
    /// Where results are read.
    pub(super) results: ConsoleName,
    /// Whether the test is attempted again if garbage on a console spoils this attempt.
    pub(super) again: bool,
    /// Whether an emulator is the board, whose consoles alter no byte.
    pub(super) emulated: bool,
    facts: watch::Sender<BoardFacts>,
    events: std::sync::Arc<dyn RunEventSink>,
}

impl AttemptBoard {
    pub(super) fn new(
        lines: BTreeMap<ConsoleName, BoardConsole>,
        (primary, results): (ConsoleName, ConsoleName),
        (again, emulated): (bool, bool),
        events: std::sync::Arc<dyn RunEventSink>,
    ) -> Self {
        Self { lines, primary, results, again, emulated, facts: watch::Sender::default(), events }
    }

    /// Returns the facts; reports block while the guard is held.
    pub(super) fn facts(&self) -> watch::Ref<'_, BoardFacts> {
        self.facts.borrow()
    }

    /// Adds an event without waking waiting tasks.
    pub(super) fn report(&self, event: Observed) {
        self.facts.send_if_modified(|facts| {
            facts.fold(event);
            false
        });
    }

    /// Adds an event and wakes waiting tasks.
    pub(super) fn alert(&self, event: Observed) {
        self.facts.send_modify(|facts| facts.fold(event));
    }

    /// Returns a receiver of changed facts.
    pub(super) fn changes(&self) -> watch::Receiver<BoardFacts> {
        self.facts.subscribe()
    }

    pub(super) fn emit(&self, event: RunEvent) {
        self.events.emit(event);
    }

    pub(super) fn boots(&self) -> usize {
        self.facts().boots.len()
    }

    /// Reports an incident.
    pub(super) fn incident(&self, kind: IncidentKind, range: ByteRange) {
        self.alert(Observed::Incident(Incident { kind, range }));
    }

    /// Marks that the next output of every console belongs to a new boot of the plan.
    fn begin_boot(&self) {
        let starts = self.lines.iter().map(|(name, line)| {
            let len = line.handle.state().borrow().len;
            (name.clone(), len)
        });
        let boot: Boot = starts.collect();
        let offset = boot.get(&self.primary).copied().unwrap_or_default();
        let mut count = 0;
        self.facts.send_if_modified(|facts| {
            facts.fold(Observed::Boot(boot));
            count = facts.boots.len();
            false
        });
        let boot = u32::try_from(count).unwrap_or(u32::MAX);
        self.emit(RunEvent::Boot { boot, offset });
    }

    /// Marks that an action has got a reset by the target that it expected.
    pub(super) fn claim_reset(&self) {
        self.report(Observed::ResetClaimed);
    }

    /// Begins a boot of the target behind an expected reset, where its output begins.
    pub(super) fn begin_boot_at(&self, boot: Boot) {
        let offset = boot.get(&self.primary).copied().unwrap_or_default();
        self.alert(Observed::TargetBoot(boot));
        let boot = u32::try_from(self.boots()).unwrap_or(u32::MAX);
        self.emit(RunEvent::Boot { boot, offset });
    }

    /// Returns the current end of the primary console as an empty range.
    fn here(&self, text: String) -> ByteRange {
        let Some(line) = self.lines.get(&self.primary) else { return ByteRange::default() };
        let at = line.handle.state().borrow().len;
        ByteRange { file: line.file.clone(), start: at, end: at, text }
    }
}

impl BoardSink for AttemptBoard {
    fn attach(&self, console: &ConsoleName, transport: Box<dyn Transport>) {
        let attached = match self.lines.get(console) {
            Some(line) => line.handle.attach(transport).map_err(|error| error.to_string()),
            None => Err(format!("the board has no console {console}")),
        };
        if let Err(error) = attached {
            self.incident(IncidentKind::Lost(Cause::ConsoleLost), self.here(error));
        }
    }

    fn drained(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // All at once: each of them waits for its disk.
            let mut begun = Vec::with_capacity(self.lines.len());
            for line in self.lines.values() {
                begun.extend(line.handle.begin_drain().await);
            }
            for drained in begun {
                // A closed console has nothing left to drain.
                let _ = drained.await;
            }
        })
    }

    fn event(&self, event: BoardEvent) {
        match event.clone() {
            BoardEvent::Injected { fault, detail } => {
                self.emit(RunEvent::Injected { fault, detail });
            }
            // A busy host causes thousands of them; the verdict holds their sum.
            BoardEvent::Stood { stopped: false, .. } => {}
            event => self.emit(RunEvent::Board(event)),
        }
        match event {
            BoardEvent::Injected { fault, detail } => {
                self.report(Observed::Note(Note::Injected { fault, detail }));
            }
            BoardEvent::Power { state } => {
                self.report(Observed::Power(state));
                if state == PowerState::On {
                    self.begin_boot();
                }
            }
            BoardEvent::Deploying { .. } | BoardEvent::TakenOver { .. } => {}
            BoardEvent::Stood { ms, stopped } => {
                self.report(Observed::Stood { time: Duration::from_millis(ms), stopped });
            }
            BoardEvent::Attached { attempts, method, .. } => {
                self.report(Observed::Note(Note::AttachedLate { attempts, method }));
            }
            BoardEvent::Forwarded { port, address } => {
                self.report(Observed::Forwarded { port, address });
            }
            BoardEvent::ReadBack { sha256 } => self.report(Observed::ReadBack(Some(sha256))),
            BoardEvent::Reset { by_target: false, .. } => self.begin_boot(),
            BoardEvent::Reset { by_target: true, reason } => {
                self.incident(IncidentKind::Reset, self.here(reason));
            }
            BoardEvent::Watchdog { action } => {
                self.incident(IncidentKind::Watchdog, self.here(action));
            }
            BoardEvent::GuestPanic { detail } => {
                self.incident(IncidentKind::GuestPanic, self.here(detail));
            }
            BoardEvent::TargetExit { code } => {
                let range = self.here(format!("exit code {code}"));
                let incident = Incident { kind: IncidentKind::Exit(code), range };
                self.report(Observed::Exit { code, incident });
            }
            BoardEvent::Lockup { detail } => {
                self.incident(IncidentKind::Lockup, self.here(detail));
            }
            BoardEvent::Aborted { detail } => {
                self.incident(IncidentKind::Aborted, self.here(detail));
            }
            BoardEvent::Lost { cause, detail } => {
                self.incident(IncidentKind::Lost(cause), self.here(detail));
            }
        }
        self.facts.send_modify(|_| {});
    }
}
