//! What is known of the board during one attempt, as its parts report it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::plan::PowerOp;
use jig_model::protocol::{BoardSink, BoxFuture, PowerState, Transport};
use jig_model::{Cause, ConsoleName, RunEvent};
use tokio::sync::watch;

use crate::console::ConsoleHandle;
use crate::judge::{ByteRange, Incident, IncidentKind, Standstill};

/// How long the driver may take to say why a console's transport has ended. It learns of the
/// emulator's end within a millisecond of the transport; a loaded host may take a thousand.
pub(super) const REASON: Duration = Duration::from_secs(5);

/// Takes the events of a run, in order.
pub trait EventSink: Send + Sync {
    /// Takes one.
    fn emit(&self, event: RunEvent);
}

/// One console of the board.
pub(super) struct Line {
    pub(super) handle: ConsoleHandle,
    /// The log's path relative to the run.
    pub(super) file: String,
}

/// What the results console's watcher has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Bytes of the log that were looked at.
    pub(super) processed: u64,
    /// Boots that were begun.
    pub(super) boots: usize,
    /// Whether the report's end marker was seen in this boot.
    pub(super) ended: bool,
    /// How many reports were complete in this boot.
    pub(super) reports: u32,
    /// Whether a report has begun in this boot.
    pub(super) reporting: bool,
    /// Whether what came last in this boot is garbage, and no text has followed.
    pub(super) garbled: bool,
}

/// A boot that was asked for: where its output begins on each console.
pub(super) type Boot = BTreeMap<ConsoleName, u64>;

#[derive(Default)]
pub(super) struct Facts {
    pub(super) boots: Vec<Boot>,
    pub(super) incidents: Vec<Incident>,
    /// Boots (counted from 1) in which the plan waited for a report and got it.
    pub(super) heard: Vec<usize>,
    /// Addresses of forwarded ports.
    pub(super) forwards: BTreeMap<String, String>,
    pub(super) power: Option<PowerState>,
    /// The plan is switching the power: transports may end before the driver says that it is off.
    pub(super) switching: bool,
    /// A behaviour was started again, and no boot has begun since.
    pub(super) restarted: bool,
    /// What boots up to this one still show belongs to a try that is over.
    pub(super) forgiven: Option<usize>,
    /// The code that the target ended this boot with, if it did.
    pub(super) exit: Option<i32>,
    /// SHA-256 of what the board was found to hold of the image that was put on it last.
    pub(super) read_back: Option<String>,
    /// What the rig had to do beside.
    pub(super) notes: Vec<String>,
    /// The test is made again if garbage spoils this attempt.
    pub(super) again: bool,
    /// For how long the board could not run, though it had power.
    pub(super) stood: Duration,
    /// For how much of that somebody had stopped what runs it.
    pub(super) stopped: Duration,
    /// For how long Jig itself stood still, and the longest of it at once.
    pub(super) late: Duration,
    pub(super) latest: Duration,
}

/// Writes an ordinal number.
fn nth(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

impl Facts {
    /// Forgets what the target did; what the rig did stays true.
    fn forget(&mut self) {
        self.incidents.retain(|incident| matches!(incident.kind, IncidentKind::Lost(_)));
    }
}

/// Collects facts; everybody may ask and wait for a change.
pub(super) struct Board {
    pub(super) lines: BTreeMap<ConsoleName, Line>,
    /// What an action means that names no console.
    pub(super) primary: ConsoleName,
    /// Where results are read.
    pub(super) results: ConsoleName,
    facts: Mutex<Facts>,
    changed: watch::Sender<()>,
    events: std::sync::Arc<dyn EventSink>,
}

impl Board {
    pub(super) fn new(
        lines: BTreeMap<ConsoleName, Line>,
        (primary, results): (ConsoleName, ConsoleName),
        events: std::sync::Arc<dyn EventSink>,
    ) -> Self {
        let facts = Mutex::new(Facts::default());
        Self { lines, primary, results, facts, changed: watch::Sender::new(()), events }
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(super) fn emit(&self, event: RunEvent) {
        self.events.emit(event);
    }

    pub(super) fn boots(&self) -> usize {
        self.facts().boots.len()
    }

    /// Returns what a command to the power is held against: how many boots there were, and
    /// whether the board has power.
    pub(super) fn powered(&self) -> (usize, bool) {
        let facts = self.facts();
        (facts.boots.len(), facts.power == Some(PowerState::On))
    }

    /// Tells whether the board did what its power was told, as far as its driver knows. What
    /// switches the power may believe itself, and be another board's.
    pub(super) fn obeyed(&self, op: PowerOp, before: (usize, bool)) -> bool {
        let (boots, on) = self.powered();
        match op {
            PowerOp::Off => !on,
            PowerOp::On => before.1 || boots > before.0,
            PowerOp::Cycle => boots > before.0,
        }
    }

    /// Returns for how long the board could not run, and for how long Jig could not, so far.
    pub(super) fn time_lost(&self) -> (Duration, Duration) {
        let facts = self.facts();
        (facts.stood, facts.late)
    }

    /// Returns the time that stood still in a way that upsets what a target measures.
    pub(super) fn standstill(&self) -> Standstill {
        let facts = self.facts();
        Standstill { stopped: facts.stopped, latest: facts.latest }
    }

    /// Records something unasked and wakes whoever waits.
    pub(super) fn incident(&self, kind: IncidentKind, range: ByteRange) {
        self.facts().incidents.push(Incident { kind, range });
        self.changed.send_replace(());
    }

    /// Records something that a console showed in a boot, counted from 1.
    pub(super) fn shown(&self, boot: usize, kind: IncidentKind, range: ByteRange) {
        let forgiven = self.facts().forgiven.is_some_and(|forgiven| boot <= forgiven);
        if !forgiven {
            self.incident(kind, range);
        }
    }

    /// Forgets the incidents of a try that is started again, and the reports it was served
    /// beyond the first `heard` of the attempt; the judge counts the restart.
    pub(super) fn forgive(&self, heard: usize) {
        let mut facts = self.facts();
        facts.forget();
        facts.heard.truncate(heard);
        facts.restarted = true;
    }

    /// Marks that what follows on every console belongs to a boot that was asked for.
    fn begin_boot(&self) {
        let starts = self.lines.iter().map(|(name, line)| {
            let len = line.handle.state().borrow().len;
            (name.clone(), len)
        });
        let boot: Boot = starts.collect();
        let offset = boot.get(&self.primary).copied().unwrap_or_default();
        let count = {
            let mut facts = self.facts();
            if std::mem::take(&mut facts.restarted) {
                // A crashing target prints on until its power is taken, and its output is
                // looked at a little later still.
                facts.forget();
                facts.forgiven = Some(facts.boots.len());
            }
            facts.boots.push(boot);
            facts.exit = None;
            facts.boots.len()
        };
        let boot = u32::try_from(count).unwrap_or(u32::MAX);
        self.emit(RunEvent::Boot { boot, offset });
    }

    /// Points at where the primary console stands now.
    fn here(&self, text: String) -> ByteRange {
        let Some(line) = self.lines.get(&self.primary) else { return ByteRange::default() };
        let at = line.handle.state().borrow().len;
        ByteRange { file: line.file.clone(), start: at, end: at, text }
    }
}

impl BoardSink for Board {
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
            for line in self.lines.values() {
                // A closed console has nothing left to drain.
                let _ = line.handle.drained().await;
            }
        })
    }

    fn event(&self, event: BoardEvent) {
        match event.clone() {
            BoardEvent::Injected { fault, detail } => {
                self.emit(RunEvent::Injected { fault, detail });
            }
            // A busy host makes thousands of them; what they amount to is in the verdict.
            BoardEvent::Stood { stopped: false, .. } => {}
            event => self.emit(RunEvent::Board(event)),
        }
        match event {
            BoardEvent::Injected { fault, detail } => {
                self.facts().notes.push(format!("injected {fault}: {detail}"));
            }
            BoardEvent::Power { state } => {
                self.facts().power = Some(state);
                if state == PowerState::On {
                    self.begin_boot();
                }
            }
            BoardEvent::Deploying { .. } | BoardEvent::TakenOver { .. } => {}
            BoardEvent::Stood { ms, stopped } => {
                let time = Duration::from_millis(ms);
                let mut facts = self.facts();
                facts.stood = facts.stood.saturating_add(time);
                if stopped {
                    facts.stopped = facts.stopped.saturating_add(time);
                }
            }
            BoardEvent::Attached { attempts, method, .. } => {
                let note = format!("the probe answered at the {} attach ({method})", nth(attempts));
                self.facts().notes.push(note);
            }
            BoardEvent::Forwarded { port, address } => {
                self.facts().forwards.insert(port, address);
            }
            BoardEvent::ReadBack { sha256 } => self.facts().read_back = Some(sha256),
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
                self.facts().exit = Some(code);
                self.incident(IncidentKind::Exit(code), self.here(format!("exit code {code}")));
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
        self.changed.send_replace(());
    }
}
