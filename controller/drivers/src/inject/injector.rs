//! The one owner of all faults of a run: knows when each is due, strikes, and tells.
//!
//! # Design
//! Two kinds of faults: those that need an action (a signal, a limit) are done by
//! [`Injector::run`], or at once by the caller that reports the event that makes them due; those
//! that change what a call does are claimed by the wrapper at that call. Each is told to the run
//! before it is done, so that no record lacks what may have spoiled it.

use std::convert::Infallible;
use std::ffi::OsString;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::protocol::{NoLedger, SharedSink};
use rustix::process::Signal;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::catalogue::{FaultKind, When};
use super::grammar::{Argument, Injection};
use super::host::{LoweredLimit, Staller, outlive_full_files};
use super::line::FaultyLine;
use super::mangle::{LineEffect, LineFilter};
use super::port_reader::{PortRead, PortReader};
use super::processes::{Process, Role};
use super::schedule::{Course, later};
use crate::process::{ManagedProcess, SpawnRequest};

/// What the targets print before their build id.
const BUILD_ID: &[u8] = b"jig-build-id: ";

/// Makes a rig fail as it was asked to. Clones share everything.
#[derive(Clone)]
pub struct Injector {
    shared: Arc<InjectorShared>,
}

struct InjectorShared {
    state: Mutex<InjectorState>,
    changed: Notify,
    /// Percent of the deployment under way.
    deployed: watch::Sender<u8>,
    /// How far the host's clock has jumped, in milliseconds.
    jumped: AtomicI64,
    staller: Staller,
}

struct InjectorState {
    armed: Vec<Armed>,
    course: Course,
    attempts: u64,
    /// The sink of the attempt under way.
    sink: Option<SharedSink>,
    line: Arc<FaultyLine>,
    processes: Vec<(Role, Process)>,
    /// The tty that the console is, if it is one.
    tty: Option<String>,
    port_reader: Option<PortReader>,
    /// Faults that end at a given time.
    ends: Vec<(Instant, FaultEnd)>,
    /// Pauses of this process that are due.
    stalls: Vec<Duration>,
    /// Reads of the tty by another program that are due.
    thefts: Vec<PortRead>,
    /// Strikes that were not reported yet.
    untold: Vec<BoardEvent>,
}

/// How far a fault has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultStage {
    Waiting,
    /// Armed at a transport until bytes arrive.
    Lurking,
    Struck,
}

struct Armed {
    injection: Injection,
    stage: FaultStage,
    /// The run was told of it, for this strike.
    told: bool,
    /// It has struck in this run.
    ever: bool,
}

enum FaultEnd {
    Continue(Vec<Process>),
    Mend(Arc<FaultyLine>, usize),
    Raise(LoweredLimit),
    Dismiss(ManagedProcess, usize),
}

impl FaultEnd {
    fn come(self) {
        match self {
            Self::Continue(processes) => {
                processes.iter().for_each(|process| process.signal(Signal::CONT));
            }
            Self::Mend(line, fault) => line.end(fault),
            Self::Raise(lowered) => lowered.raise(),
            Self::Dismiss(process, _) => drop(process),
        }
    }
}

/// What is done when a fault is due.
enum Strike {
    Signal(Vec<Process>, Signal, Option<Duration>),
    Lose,
    Files(Duration),
    Handles(Duration),
    Jump(i64),
    Stall(Duration),
    Steal(PortRead),
}

impl Injector {
    /// Prepares faults for one run.
    pub fn new(injections: Vec<Injection>, staller: Staller) -> Self {
        let armed = injections.into_iter();
        let armed = armed.map(|injection| Armed {
            injection,
            stage: FaultStage::Waiting,
            told: false,
            ever: false,
        });
        let state = InjectorState {
            armed: armed.collect(),
            course: Course::default(),
            attempts: 0,
            sink: None,
            line: Arc::new(FaultyLine::new()),
            processes: Vec::new(),
            tty: None,
            port_reader: None,
            ends: Vec::new(),
            stalls: Vec::new(),
            thefts: Vec::new(),
            untold: Vec::new(),
        };
        Self {
            shared: Arc::new(InjectorShared {
                state: Mutex::new(state),
                changed: Notify::new(),
                deployed: watch::Sender::new(0),
                jumped: AtomicI64::new(0),
                staller,
            }),
        }
    }

    /// Says how a program is started that steals a console's bytes.
    pub fn with_port_reader(self, port_reader: PortReader) -> Self {
        self.state().port_reader = Some(port_reader);
        self
    }

    /// Says which tty the console is, if it is one.
    pub(super) fn console_is(&self, tty: Option<String>) {
        self.state().tty = tty;
    }

    /// Strikes when something is due, for as long as it is polled: beside the run.
    pub async fn run(&self) -> Infallible {
        let full = self.state().armed.iter().any(|a| a.injection.fault == FaultKind::DiskFull);
        if full && let Err(error) = outlive_full_files() {
            tracing::warn!(%error, "a full disk may end this process");
        }
        self.state().course.begin(Instant::now());
        loop {
            self.advance();
            let stalls = std::mem::take(&mut self.state().stalls);
            for time in stalls {
                self.stall(time).await;
            }
            let thefts = std::mem::take(&mut self.state().thefts);
            for theft in thefts {
                let (until, fault) = (later(Instant::now(), theft.time), theft.fault);
                if let Some(process) = theft.begin().await {
                    self.state().ends.push((until, FaultEnd::Dismiss(process, fault)));
                }
            }
            let next = self.state().next();
            let changed = self.shared.changed.notified();
            match next {
                None => changed.await,
                Some(at) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(at) => {}
                },
            }
        }
    }

    /// Ends the faults that still last, at once: no timer runs when the run is over.
    pub fn put_right(&self) {
        let ends: Vec<_> = self.state().ends.drain(..).collect();
        ends.into_iter().for_each(|(_, end)| end.come());
    }

    /// Returns how far the host's clock has jumped, in milliseconds.
    pub fn clock_jump(&self) -> i64 {
        self.shared.jumped.load(Ordering::Relaxed)
    }

    /// Returns the faults that have not struck, as they were written.
    pub fn left(&self) -> Vec<String> {
        let state = self.state();
        let left = state.armed.iter().filter(|armed| !armed.ever);
        left.map(|armed| armed.injection.to_string()).collect()
    }

    fn state(&self) -> MutexGuard<'_, InjectorState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt whose board tells `sink` what happens; returns its console.
    pub(super) fn begin_attempt(&self, sink: SharedSink) -> Arc<FaultyLine> {
        let (line, untold) = {
            let mut state = self.state();
            state.course.begin_attempt(Instant::now());
            state.attempts += 1;
            state.line = Arc::new(FaultyLine::new());
            state.sink = Some(Arc::clone(&sink));
            for armed in &mut state.armed {
                if armed.injection.every || armed.stage == FaultStage::Lurking {
                    (armed.stage, armed.told) = (FaultStage::Waiting, false);
                }
            }
            (Arc::clone(&state.line), std::mem::take(&mut state.untold))
        };
        self.shared.deployed.send_replace(0);
        for event in untold {
            sink.event(event);
        }
        self.notify();
        line
    }

    pub(super) fn powered(&self) {
        self.state().course.powered(Instant::now());
        self.notify();
    }

    /// So many percent of the deployment under way are done.
    pub(super) fn deployed(&self, percent: u8) {
        self.state().course.deployed = Some(percent);
        self.shared.deployed.send_replace(percent);
        self.notify();
    }

    /// Waits until so many percent are done.
    pub(super) async fn reached(&self, percent: u8) {
        let mut deployed = self.shared.deployed.subscribe();
        // The sender lives as long as this.
        let _ = deployed.wait_for(|done| *done >= percent).await;
    }

    pub(super) fn process_started(&self, role: Role, process: Process) {
        self.state().processes.push((role, process));
        self.notify();
    }

    pub(super) fn process_ended(&self, pid: i32) {
        self.state().processes.retain(|(_, process)| process.pid != pid);
    }

    /// Claims a fault that changes what a call does, if it is due.
    pub(super) fn claim(&self, fault: FaultKind) -> Option<(usize, Argument)> {
        let mut state = self.state();
        let index = state.due(fault)?;
        let armed = state.armed.get_mut(index)?;
        armed.stage = FaultStage::Struck;
        Some((index, armed.injection.argument.clone()))
    }

    /// Tells whether a fault could be claimed.
    pub(super) fn is_due(&self, fault: FaultKind) -> bool {
        self.state().due(fault).is_some()
    }

    /// Returns the number of the attempt under way, counted from 1.
    pub(super) fn attempt(&self) -> u64 {
        self.state().attempts
    }

    /// Returns the share of the deployment at which a fault is to strike.
    pub(super) fn share_of(&self, fault: FaultKind) -> Option<u8> {
        let state = self.state();
        let waiting = state.armed.iter().filter(|armed| armed.stage == FaultStage::Waiting);
        waiting.filter(|armed| armed.injection.fault == fault).find_map(|armed| {
            match armed.injection.when {
                When::Share(share) => Some(share),
                When::After(_) => None,
            }
        })
    }

    /// Tells the run what a fault does. Only its first deed is told.
    pub(super) fn struck(&self, index: usize, detail: String) {
        let (event, sink) = {
            let mut state = self.state();
            let Some(armed) = state.armed.get_mut(index) else { return };
            if std::mem::replace(&mut armed.told, true) {
                return;
            }
            (armed.stage, armed.ever) = (FaultStage::Struck, true);
            let event = BoardEvent::Injected { fault: armed.injection.to_string(), detail };
            match &state.sink {
                Some(sink) => (event, Arc::clone(sink)),
                None => return state.untold.push(event),
            }
        };
        sink.event(event);
    }

    /// Tells the run what became of a fault that has struck.
    fn tell(&self, index: usize, detail: String) {
        let told = {
            let state = self.state();
            let fault = state.armed.get(index).map(|armed| armed.injection.to_string());
            fault.zip(state.sink.clone())
        };
        if let Some((fault, sink)) = told {
            sink.event(BoardEvent::Injected { fault, detail });
        }
    }

    /// Does everything that is due.
    fn advance(&self) {
        loop {
            let Some((index, detail, strike)) = self.state().next_strike(Instant::now()) else {
                break;
            };
            self.struck(index, detail);
            self.strike(strike);
        }
        let over = self.state().take_over(Instant::now());
        for end in over {
            if let FaultEnd::Dismiss(process, fault) = &end
                && process.ending().is_some()
            {
                self.tell(*fault, "the other program was kept out of the tty".to_owned());
            }
            end.come();
        }
    }

    /// Strikes the faults that are due, and wakes the timer loop.
    fn notify(&self) {
        self.advance();
        self.shared.changed.notify_one();
    }

    fn strike(&self, strike: Strike) {
        let until = |time| later(Instant::now(), time);
        match strike {
            Strike::Signal(processes, signal, time) => {
                processes.iter().for_each(|process| process.signal(signal));
                if let Some(time) = time {
                    self.state().ends.push((until(time), FaultEnd::Continue(processes)));
                }
            }
            Strike::Steal(theft) => self.state().thefts.push(theft),
            Strike::Lose => {
                let sink = self.state().sink.clone();
                let detail = "the probe stopped answering".to_owned();
                if let Some(sink) = sink {
                    sink.event(BoardEvent::Lost { cause: Cause::ProbeLost, detail });
                }
            }
            Strike::Files(time) => self.lower(LoweredLimit::files(), until(time)),
            Strike::Handles(time) => self.lower(LoweredLimit::handles(), until(time)),
            Strike::Jump(millis) => {
                self.shared.jumped.fetch_add(millis, Ordering::Relaxed);
            }
            Strike::Stall(time) => self.state().stalls.push(time),
        }
    }

    fn lower(&self, lowered: std::io::Result<LoweredLimit>, until: Instant) {
        match lowered {
            Ok(lowered) => self.state().ends.push((until, FaultEnd::Raise(lowered))),
            Err(error) => tracing::warn!(%error, "a limit could not be lowered"),
        }
    }

    /// Has this process stopped for a while.
    async fn stall(&self, time: Duration) {
        let Staller { program, mut args } = self.shared.staller.clone();
        args.push(OsString::from(format!("{}ms", time.as_millis())));
        let request = SpawnRequest::silent(program, args, "staller");
        match ManagedProcess::spawn(request, Arc::new(NoLedger)).await {
            Ok(mut process) => drop(process.ended().await),
            Err(error) => tracing::warn!(%error, "this process could not be stopped"),
        }
    }
}

impl InjectorState {
    /// Finds a fault that waits for a call and may strike now.
    fn due(&self, fault: FaultKind) -> Option<usize> {
        let now = Instant::now();
        self.armed.iter().position(|armed| {
            armed.injection.fault == fault
                && armed.stage == FaultStage::Waiting
                && self.course.due(&armed.injection).is_some_and(|at| at <= now)
        })
    }

    /// Returns when to look again, if at a time.
    fn next(&self) -> Option<Instant> {
        let waiting = self.armed.iter().filter(|armed| armed.stage == FaultStage::Waiting);
        let due = waiting.filter_map(|armed| self.course.due(&armed.injection));
        // What is due and has not struck waits for something else than a time.
        let due = due.filter(|at| *at > Instant::now());
        due.chain(self.ends.iter().map(|(at, _)| *at)).min()
    }

    fn take_over(&mut self, now: Instant) -> Vec<FaultEnd> {
        self.ends.extract_if(.., |(at, _)| *at <= now).map(|(_, end)| end).collect()
    }

    /// Finds a fault that is due and can strike now. Those of the console begin to lurk.
    fn next_strike(&mut self, now: Instant) -> Option<(usize, String, Strike)> {
        for index in 0..self.armed.len() {
            let armed = &self.armed[index];
            let due = self.course.due(&armed.injection).is_some_and(|at| at <= now);
            if armed.stage != FaultStage::Waiting || !due {
                continue;
            }
            if let Some(effect) = effect(&armed.injection) {
                // There is a transport from the first power on.
                if self.course.attempt.powered.is_some() {
                    self.lurk(index, effect, now);
                }
                continue;
            }
            if let Some((detail, strike)) = self.strike_of(index, &armed.injection) {
                self.armed[index].stage = FaultStage::Struck;
                return Some((index, detail, strike));
            }
        }
        None
    }

    fn lurk(&mut self, index: usize, effect: LineEffect, now: Instant) {
        let lasts = match (&effect, &self.armed[index].injection.argument) {
            (LineEffect::Away | LineEffect::Garble, Argument::Time(time)) => Some(*time),
            _ => None,
        };
        self.armed[index].stage = FaultStage::Lurking;
        self.line.begin(index, effect);
        if let Some(time) = lasts {
            self.ends.push((later(now, time), FaultEnd::Mend(Arc::clone(&self.line), index)));
        }
    }

    /// Returns the action of a fault that needs one; nothing for other faults, and where the action
    /// has no target.
    fn strike_of(&self, index: usize, injection: &Injection) -> Option<(String, Strike)> {
        let time = match injection.argument {
            Argument::Time(time) => time,
            _ => Duration::ZERO,
        };
        let signal_to = |role, words: &str, signal, time| {
            let all = self.processes.iter().filter(|(is, _)| *is == role);
            let all: Vec<Process> = all.map(|(_, process)| process.clone()).collect();
            let pids: Vec<_> = all.iter().map(|process| process.pid.to_string()).collect();
            let detail = format!("{words} (process {})", pids.join(", "));
            (!all.is_empty()).then_some((detail, Strike::Signal(all, signal, time)))
        };
        let signal = |signal, words: &str, time| {
            signal_to(Role::Emulator, &format!("{words} the emulator"), signal, time)
        };
        match injection.fault {
            FaultKind::KillEmulator => signal(Signal::KILL, "killed", None),
            FaultKind::StopEmulator => signal(Signal::STOP, "stopped", None),
            FaultKind::PauseEmulator => {
                signal(Signal::STOP, &format!("stopped for {time:?}"), Some(time))
            }
            FaultKind::SshDrop => {
                signal_to(Role::Console, "killed what reaches the console", Signal::KILL, None)
            }
            FaultKind::StealTty => {
                let (tty, port_reader) = self.tty.clone().zip(self.port_reader.clone())?;
                let detail = format!("another program reads {tty} for {time:?}");
                Some((detail, Strike::Steal(PortRead { fault: index, port_reader, tty, time })))
            }
            FaultKind::LoseProbe => match injection.when {
                When::Share(_) => None,
                When::After(_) => Some(("the probe was lost".to_owned(), Strike::Lose)),
            },
            FaultKind::DiskFull => {
                Some((format!("no file can grow for {time:?}"), Strike::Files(time)))
            }
            FaultKind::NoHandles => {
                Some((format!("no file can be opened for {time:?}"), Strike::Handles(time)))
            }
            FaultKind::ClockJump => match injection.argument {
                Argument::Jump(millis) => {
                    Some((format!("the clock jumped by {millis} ms"), Strike::Jump(millis)))
                }
                _ => None,
            },
            FaultKind::PauseHost => {
                Some((format!("this process is stopped for {time:?}"), Strike::Stall(time)))
            }
            FaultKind::HangUpConsole
            | FaultKind::CutConsole
            | FaultKind::OverrunConsole
            | FaultKind::DropBytes
            | FaultKind::CorruptBytes
            | FaultKind::GarbleConsole
            | FaultKind::DelayConsole
            | FaultKind::HideBuildId
            | FaultKind::SilenceChip
            | FaultKind::StaleImage
            | FaultKind::PowerMismatch
            | FaultKind::PowerSilent
            | FaultKind::PowerBabbles
            | FaultKind::OutletSwapped => None,
        }
    }
}

/// Returns what a fault of the console does to its transport.
fn effect(injection: &Injection) -> Option<LineEffect> {
    Some(match (injection.fault, &injection.argument) {
        (FaultKind::HangUpConsole, _) => LineEffect::Away,
        (FaultKind::CutConsole, _) => LineEffect::Cut,
        (FaultKind::OverrunConsole, Argument::Bytes(bytes)) => LineEffect::Overrun(*bytes),
        (FaultKind::DropBytes, Argument::Bytes(bytes)) => LineEffect::Drop(*bytes),
        (FaultKind::CorruptBytes, Argument::Bytes(bytes)) => LineEffect::Corrupt(*bytes),
        (FaultKind::GarbleConsole, _) => LineEffect::Garble,
        (FaultKind::DelayConsole, Argument::Time(time)) => LineEffect::Delay(*time),
        (FaultKind::HideBuildId, _) => LineEffect::HideId(LineFilter::new(BUILD_ID)),
        _ => return None,
    })
}
