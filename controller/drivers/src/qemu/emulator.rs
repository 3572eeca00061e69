//! The owner of one board's emulator, and the handles that speak for it.
//!
//! The owner is a task that ends when its last handle is dropped, and takes the emulator
//! with it. Everything that changes the instance goes through its one loop.

use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::profile::Emulation;
use jig_model::protocol::{
    BindContext, BoxFuture, CheckReport, DriverError, Flasher, HealthCheck, Power, PowerState,
    Protocols, Reset,
};
use jig_model::rig_file::EmulatorPart;
use jig_model::{Cause, chain};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout_at};

use super::command_line::loads;
use super::debug::{ChannelPairs, DebugChannels};
use super::ending::{EndFacts, classify};
use super::exceptions::{CodeCollector, ExceptionLog};
use super::instance::{ANSWER, Instance};
use super::machine::Machine;
use super::monitor::{Arrival, MachineEvent, MonitorError};
use super::order::{
    AtLaunch, EmulatorOrder, EmulatorReply, Launched, Ready, Shown, Watcher, ask_owner,
};
use super::pauses::LostTime;
use super::read_back::read_back;
use super::trial::trial;
use crate::process::{Ending, Stillness, StillnessWatch};

/// How long a launched machine may stand while its memory is read back and its watcher gets ready.
/// An emulator that somebody has stopped answers neither; together with the answer that is awaited
/// next, this ends before the time for switching the power (30 s), so that the emulator is named.
const PREPARED: Duration = Duration::from_secs(15);

/// Offers boards as QEMU machines.
pub struct QemuFactory;

impl QemuFactory {
    /// Binds a board, and gives a handle for a debugger too. Touches nothing yet.
    ///
    /// # Errors
    /// The profile has no emulation, or the place no emulator.
    pub fn bind_with_machine(
        &self,
        context: BindContext,
    ) -> Result<(Protocols, Machine), DriverError> {
        self.bind_with_code(context, None)
    }

    /// As [`QemuFactory::bind_with_machine`]; `code` collects what each watched launch executes, if
    /// its watcher has the emulator list it.
    ///
    /// # Errors
    /// As there.
    pub fn bind_with_code(
        &self,
        context: BindContext,
        code: Option<CodeCollector>,
    ) -> Result<(Protocols, Machine), DriverError> {
        let Some(emulation) = context.profile.emulation.clone() else {
            let message = format!("board {} has no [emulation] in its profile", context.profile.id);
            return Err(DriverError::new(Cause::PowerFailed, message));
        };
        let Some(part) = context.place.emulator.clone() else {
            let message = format!("board {} is not emulated at this place", context.profile.id);
            return Err(DriverError::new(Cause::EmulatorRefused, message));
        };
        let (orders, inbox) = mpsc::channel(4);
        let owner = EmulatorOwner {
            context,
            part,
            emulation,
            image: None,
            instance: None,
            launches: 0,
            watcher: None,
            code,
            last_end: None,
            last_exceptions: None,
        };
        tokio::spawn(owner.run(inbox));
        let machine = Machine::new(orders.clone());
        let handle = EmulatorHandle { orders };
        let protocols = Protocols {
            power: Some(Box::new(handle.clone())),
            reset: Some(Box::new(handle.clone())),
            flasher: Some(Box::new(handle.clone())),
            debug: None,
            shell: None,
            control: Some(Box::new(handle.clone())),
            sense: None,
            health: vec![Box::new(handle)],
        };
        Ok((protocols, machine))
    }
}

#[derive(Clone)]
pub(super) struct EmulatorHandle {
    orders: mpsc::Sender<EmulatorOrder>,
}

impl EmulatorHandle {
    pub(super) async fn ask<T>(
        &self,
        order: impl FnOnce(EmulatorReply<T>) -> EmulatorOrder,
    ) -> Result<T, DriverError> {
        ask_owner(&self.orders, order).await
    }
}

impl Power for EmulatorHandle {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(EmulatorOrder::On))
    }
    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(EmulatorOrder::Off))
    }
    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        Box::pin(self.ask(EmulatorOrder::Status))
    }
}

impl Reset for EmulatorHandle {
    fn reset(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(self.ask(EmulatorOrder::Reset))
    }
}

impl Flasher for EmulatorHandle {
    fn deploy<'a>(
        &'a mut self,
        image: &'a Image,
    ) -> BoxFuture<'a, Result<DeployReport, DriverError>> {
        Box::pin(async {
            let order = image.clone();
            self.ask(|reply| EmulatorOrder::Deploy(order, reply)).await?;
            Ok(DeployReport {
                method: "emulator-loader".to_owned(),
                image: image.name.clone(),
                sha256: image.sha256.clone(),
                build_id: image.build_id.clone(),
                bytes: image.payload_bytes,
                ..DeployReport::default()
            })
        })
    }
}

impl HealthCheck for EmulatorHandle {
    fn name(&self) -> String {
        CHECK.to_owned()
    }

    fn cause(&self) -> Cause {
        Cause::EmulatorStuck
    }

    fn check(&mut self) -> BoxFuture<'_, CheckReport> {
        Box::pin(async {
            let (reply, answer) = oneshot::channel();
            let sent = self.orders.send(EmulatorOrder::Check(reply)).await.is_ok();
            match answer.await {
                Ok(report) if sent => report,
                _ => CheckReport {
                    check: CHECK.to_owned(),
                    ok: false,
                    detail: "the emulator's owner has ended".to_owned(),
                },
            }
        })
    }
}

const CHECK: &str = "emulator-answers";

/// How often a running emulator is asked whether it still answers; each question costs the
/// emulator about 50 us.
const PULSE: Duration = Duration::from_secs(1);

/// How often a running emulator is looked at for time that it does not have; a look takes about
/// 50 us. Stops between two looks are not seen, and are shorter than any time-out worth its name.
const LOOK: Duration = Duration::from_millis(100);

/// From how much stillness on it is told: each piece is an event.
const STILLNESS: Duration = Duration::from_millis(100);

/// How many beats may pass without an answer: five seconds against the millisecond it
/// takes. Counted in beats and not in time, because time also passes while Jig itself is
/// stopped or starved, and then the answer may lie unread.
const MISSED_BEATS: u32 = 5;

/// For how long an emulator may be stopped before it counts as dead: the kernel says that it is,
/// so no further questions are needed. A tool that inspects or briefly pauses a process takes less.
/// The time is summed from look to look, so none passes while Jig itself is stopped.
const STOPPED: Duration = Duration::from_secs(4);

/// When to poke a machine after console input that it would else notice a second later:
/// 20 ms after the write all of 20 measured pokes worked; earlier ones can come too soon.
const POKE_AFTER: Duration = Duration::from_millis(20);

pub(super) struct EmulatorOwner {
    pub(super) context: BindContext,
    part: EmulatorPart,
    emulation: Emulation,
    image: Option<Image>,
    pub(super) instance: Option<Running>,
    launches: u32,
    watcher: Option<Watcher>,
    /// Collects the code that watched launches execute.
    code: Option<CodeCollector>,
    /// What the end of the last instance meant, if it ended by itself.
    last_end: Option<BoardEvent>,
    /// What the last launch reported of its core, if it has ended by itself.
    last_exceptions: Option<ExceptionLog>,
}

pub(super) struct Running {
    pub(super) instance: Instance,
    shutdown: Option<MachineEvent>,
    /// The question that has no answer yet.
    pub(super) pulse: Option<MonitorPulse>,
    poke_at: Option<Instant>,
    /// Set while a debugger stops and runs the machine.
    pub(super) debugged: bool,
    /// Set while run control has halted it.
    pub(super) halted: bool,
    /// For how long its process could not run while it was not halted, at most.
    pub(super) starved: Duration,
    pub(super) lost: LostTime,
    /// When to listen to the monitor again.
    listen_at: Option<Instant>,
    pub(super) watch: StillnessWatch,
    /// Stillness that was not told yet.
    untold: Duration,
    /// For how long it has been stopped, without a look in between at which it was not.
    stopped: Duration,
}

impl Running {
    fn new(instance: Instance, debugged: bool) -> Self {
        Self {
            watch: StillnessWatch::new(&instance.process),
            untold: Duration::ZERO,
            stopped: Duration::ZERO,
            instance,
            shutdown: None,
            pulse: None,
            poke_at: None,
            debugged,
            halted: false,
            starved: Duration::ZERO,
            lost: LostTime::begin(Instant::now().into_std()),
            listen_at: None,
        }
    }
}

/// How long the monitor of a debugged machine is left alone after it spoke. Each stop and
/// each run of the machine is an event there, thousands in a second while a flash algorithm
/// works, and taking each by itself costs as much as the algorithm.
const LISTEN_AFTER: Duration = Duration::from_millis(20);

pub(super) struct MonitorPulse {
    id: u64,
    asked: Instant,
    /// Beats since then.
    missed: u32,
}

/// What the owner's loop woke up for.
enum EmulatorWake {
    Order(Option<EmulatorOrder>),
    Monitor(Result<Arrival, MonitorError>),
    Ended(Ending),
    Bell,
    Poke,
    Pulse,
    Look,
}

impl EmulatorOwner {
    async fn run(mut self, mut inbox: mpsc::Receiver<EmulatorOrder>) {
        let mut pulse = interval(PULSE);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let wake = match &mut self.instance {
                None => EmulatorWake::Order(inbox.recv().await),
                Some(running) => running.wake(&mut inbox, &mut pulse, &mut look).await,
            };
            match wake {
                EmulatorWake::Order(Some(order)) => self.obey(order).await,
                EmulatorWake::Order(None) => break,
                EmulatorWake::Monitor(Ok(arrival)) => self.hear(arrival),
                // Closed means that the end is near; the process's end tells the story.
                EmulatorWake::Monitor(Err(error)) => self.monitor_failed(error).await,
                EmulatorWake::Ended(ending) => self.ended(ending).await,
                EmulatorWake::Bell => self.plan_poke(),
                EmulatorWake::Poke => self.poke().await,
                EmulatorWake::Pulse => self.feel_pulse().await,
                EmulatorWake::Look => self.look().await,
            }
        }
        self.power_off().await;
    }

    async fn obey(&mut self, order: EmulatorOrder) {
        // A caller that has gone away needs no answer, so failed replies are nothing.
        match order {
            EmulatorOrder::On(reply) => drop(reply.send(self.power_on().await)),
            EmulatorOrder::Off(reply) => {
                self.power_off().await;
                drop(reply.send(Ok(())));
            }
            EmulatorOrder::Status(reply) => drop(reply.send(Ok(self.state()))),
            EmulatorOrder::Reset(reply) => drop(reply.send(self.reset().await)),
            EmulatorOrder::Deploy(image, reply) => drop(reply.send(self.deploy(image).await)),
            EmulatorOrder::Check(reply) => drop(reply.send(self.check().await)),
            EmulatorOrder::LaunchHalted(what, reply) => {
                drop(reply.send(self.launch_halted(what).await))
            }
            EmulatorOrder::Watch(watcher, reply) => {
                self.watcher = Some(watcher);
                drop(reply.send(Ok(())));
            }
            EmulatorOrder::Show(what, reply) => drop(reply.send(self.show(what).await)),
            EmulatorOrder::Halt(reply) => drop(reply.send(self.halt().await)),
            EmulatorOrder::Resume(reply) => drop(reply.send(self.resume().await)),
            EmulatorOrder::LostTime(reply) => drop(reply.send(Ok(self.lost_time()))),
            EmulatorOrder::HowEnded(reply) => drop(reply.send(Ok(self.how_ended().await))),
            EmulatorOrder::LastExceptions(reply) => {
                let seen = self.last_exceptions.as_ref().map(ExceptionLog::seen);
                drop(reply.send(Ok(seen)));
            }
        }
    }

    async fn deploy(&mut self, image: Image) -> Result<(), DriverError> {
        if !loads(&self.emulation, image.format) {
            let message = format!(
                "the emulator-loader of board {} takes ELF images only, because its profile \
                 boots them by `{}` (deploy the ELF file)",
                self.context.profile.id,
                self.emulation.image_args.join(" ")
            );
            return Err(DriverError::new(Cause::DeployFailed, message));
        }
        // The loader copies the image at launch: a running machine keeps the old one.
        self.power_off().await;
        self.image = Some(image);
        Ok(())
    }

    fn state(&self) -> PowerState {
        if self.instance.is_some() { PowerState::On } else { PowerState::Off }
    }

    async fn power_on(&mut self) -> Result<(), DriverError> {
        if self.instance.is_some() {
            return Ok(());
        }
        if self.image.is_none() && self.emulation.image_set.is_none() {
            return Err(DriverError::new(
                Cause::PowerFailed,
                format!("board {} has no image to boot: deploy one first", self.context.profile.id),
            ));
        }
        let mut instance = self.launch(AtLaunch::Deployed, self.watcher.is_some()).await?;
        let shown_by = Instant::now() + PREPARED;
        if let Some(image) = &self.image {
            let folder = &self.context.evidence;
            if let Some(sha256) = read_back(&mut instance.monitor, image, folder).await {
                self.context.sink.event(BoardEvent::ReadBack { sha256 });
            }
        }
        self.show_to_watcher(&mut instance, shown_by).await;
        match instance.release().await {
            Ok(()) => {}
            // A firmware can end the emulator before the answer is out. The process's end,
            // which the loop sees next, tells what that was.
            Err(MonitorError::Closed) => {}
            Err(error) => {
                instance.process.kill().await;
                self.context.sink.drained().await;
                self.context.sink.event(BoardEvent::Power { state: PowerState::Off });
                let message = "let the emulated machine run";
                return Err(DriverError::new(Cause::EmulatorStuck, message).with_source(error));
            }
        }
        self.instance = Some(Running::new(instance, false));
        Ok(())
    }

    async fn launch(&mut self, what: AtLaunch, debug: bool) -> Result<Instance, DriverError> {
        self.launches += 1;
        self.last_end = None;
        self.last_exceptions = None;
        let image = match what {
            AtLaunch::Deployed => self.image.as_ref(),
            AtLaunch::Blank => None,
        };
        let pairs = debug.then(ChannelPairs::make).transpose().map_err(|error| {
            let message = "make the debug channels' sockets";
            DriverError::new(Cause::EmulatorRefused, message).with_source(error)
        })?;
        let (context, emulation) = (&self.context, (&self.emulation, &self.part));
        let code = self.code.as_ref().filter(|_| self.watcher.is_some()).map(CodeCollector::what);
        let launched =
            Instance::launch(context, emulation, image, self.launches, pairs, code).await?;
        self.context.sink.event(BoardEvent::Power { state: PowerState::On });
        Ok(launched)
    }

    /// Gives the watcher the time to get ready while the machine stands. One that has gone, or takes
    /// too long, is not waited for; it knows then that it has missed the beginning.
    async fn show_to_watcher(&mut self, instance: &mut Instance, by: Instant) {
        let Some(watcher) = &mut self.watcher else { return };
        let Some(Ok(channels)) = instance.channels() else {
            return;
        };
        let Some(exceptions) = instance.exceptions.clone() else { return };
        let (ready, is_ready) = oneshot::channel();
        let control = instance.control.clone();
        watcher(Launched { channels, exceptions, control, ready: Ready(ready) });
        let _ = timeout_at(by, is_ready).await;
    }

    async fn launch_halted(&mut self, what: AtLaunch) -> Result<DebugChannels, DriverError> {
        self.power_off().await;
        let mut instance = self.launch(what, true).await?;
        let channels = match instance.channels() {
            Some(Ok(channels)) => channels,
            Some(Err(error)) => {
                let message = "use the debug channels";
                return Err(DriverError::new(Cause::EmulatorStuck, message).with_source(error));
            }
            None => {
                let message = "the debug channels are gone";
                return Err(DriverError::new(Cause::EmulatorExited, message));
            }
        };
        self.instance = Some(Running::new(instance, true));
        Ok(channels)
    }

    /// Says what the end was. The caller has seen a channel close, so if the process has not ended
    /// it is about to.
    async fn how_ended(&mut self) -> Option<BoardEvent> {
        if let Some(running) = &mut self.instance
            && let Ok(ending) = tokio::time::timeout(ANSWER, running.instance.process.ended()).await
        {
            self.ended(ending).await;
        }
        self.last_end.clone()
    }

    async fn power_off(&mut self) {
        let Some(mut running) = self.instance.take() else { return };
        running.instance.process.kill().await;
        self.keep_code(&running);
        self.context.sink.drained().await;
        self.context.sink.event(BoardEvent::Power { state: PowerState::Off });
    }

    /// Keeps what a launch that has ended has executed.
    fn keep_code(&self, running: &Running) {
        let Some((collector, image)) = self.code.as_ref().zip(self.image.as_ref()) else { return };
        let log = running.instance.exceptions.as_ref();
        if let Some(code) = log.and_then(ExceptionLog::executed) {
            collector.add(&image.sha256, &code);
        }
    }

    /// Resets so that no byte of the old boot can be taken for one of the new: the machine
    /// stands still while its console is drained.
    async fn reset(&mut self) -> Result<(), DriverError> {
        let Some(running) = &mut self.instance else {
            let message = "reset: the board has no power (power it on first)";
            return Err(DriverError::new(Cause::PowerFailed, message));
        };
        if running.debugged {
            let message = "reset: a debugger holds the board (reset it through the debugger)";
            return Err(DriverError::new(Cause::PowerFailed, message));
        }
        // The calls below may swallow the pulse's answer, and are a pulse themselves.
        running.pulse = None;
        match running.reset(&self.context).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let message = "reset the emulated machine";
                let failed = DriverError::new(Cause::EmulatorStuck, message);
                if let MonitorError::Closed = error {
                    // It has ended: its end must be known before a cause is reported.
                    self.monitor_failed(MonitorError::Closed).await;
                }
                Err(failed.with_source(error))
            }
        }
    }

    /// Shows that a board that is off could be switched on.
    async fn try_out(&mut self) -> (bool, String) {
        self.launches += 1;
        let what = (&self.emulation, &self.part);
        match trial(&self.context, what, self.image.as_ref(), self.launches).await {
            Ok(detail) => (true, detail),
            Err(error) => (false, chain(&error)),
        }
    }

    /// Has the core's registers or memory printed. Events that arrive meanwhile are kept.
    async fn show(&mut self, what: Shown) -> Result<Option<String>, DriverError> {
        const WHAT: &str = "look at the core of the emulated machine";
        let Some(running) = &mut self.instance else { return Ok(None) };
        if running.instance.process.is_stopped() {
            let message = format!("{WHAT}: somebody has stopped the emulator's process");
            return Err(DriverError::new(Cause::EmulatorStuck, message));
        }
        let arguments = json!({ "command-line": what.command() });
        let monitor = &mut running.instance.monitor;
        match monitor.call_with("human-monitor-command", &arguments, ANSWER).await {
            Ok(answer) => {
                running.pulse = None;
                Ok(answer.as_str().map(str::to_owned))
            }
            // Its end is told by itself.
            Err(MonitorError::Closed) => Ok(None),
            Err(error) => Err(DriverError::new(Cause::EmulatorStuck, WHAT).with_source(error)),
        }
    }

    async fn check(&mut self) -> CheckReport {
        let (ok, detail) = match &mut self.instance {
            None => self.try_out().await,
            // A question would wait until it goes on, and then be answered as if nothing had
            // been: but the target has had no time meanwhile.
            Some(running) if running.instance.process.is_stopped() => {
                (false, "somebody has stopped the emulator's process".to_owned())
            }
            Some(running) => match running.ask_status().await {
                Ok(answer) => {
                    running.pulse = None;
                    let status = answer.get("status").and_then(|s| s.as_str()).unwrap_or("unknown");
                    // A debugger stops and runs the machine as it likes; so does the fault watch, which
                    // may not have seen yet that a breakpoint was reached.
                    let at_breakpoint = running.instance.exceptions.is_some() && status == "debug";
                    let may_stand = running.debugged || running.halted || at_breakpoint;
                    (may_stand || status == "running", format!("machine is {status}"))
                }
                Err(error) => (false, error.to_string()),
            },
        };
        CheckReport { check: CHECK.to_owned(), ok, detail }
    }

    fn hear(&mut self, arrival: Arrival) {
        if let Some(running) = &mut self.instance {
            running.hear(arrival, &self.context);
        }
    }

    pub(super) async fn monitor_failed(&mut self, error: MonitorError) {
        let Some(running) = &mut self.instance else { return };
        let ending = match error {
            MonitorError::Closed => {
                tokio::time::timeout(ANSWER, running.instance.process.ended()).await.ok()
            }
            MonitorError::TimedOut { .. } | MonitorError::Refused { .. } | MonitorError::Io(_) => {
                None
            }
        };
        match ending {
            Some(ending) => self.ended(ending).await,
            None => {
                self.lose(Cause::EmulatorStuck, format!("the emulator's monitor broke: {error}"))
                    .await
            }
        }
    }

    /// The emulator ended unasked: say what that was, after all it printed is captured.
    async fn ended(&mut self, ending: Ending) {
        let Some(mut running) = self.instance.take() else { return };
        let event = {
            // Events that were sent before the end may still lie in the socket.
            running.drain_events(&self.context).await;
            let said = running.instance.said();
            classify(&EndFacts {
                ending,
                hidden_exit_kills: running.instance.process.hidden_exit_kills(),
                stderr: &said,
                shutdown: running.shutdown.as_ref(),
                program: &self.emulation.program,
                semihosting: self.emulation.semihosting,
                known_good: self.emulation.known_good.is_some(),
            })
        };
        self.keep_code(&running);
        self.last_exceptions = running.instance.exceptions.take();
        self.last_end = Some(event.clone());
        self.context.sink.drained().await;
        self.context.sink.event(event);
        self.context.sink.event(BoardEvent::Power { state: PowerState::Off });
    }

    async fn lose(&mut self, cause: Cause, detail: String) {
        let Some(mut running) = self.instance.take() else { return };
        let event = BoardEvent::Lost { cause, detail };
        self.last_end = Some(event.clone());
        self.context.sink.event(event);
        running.instance.process.kill().await;
        self.keep_code(&running);
        self.context.sink.drained().await;
        self.context.sink.event(BoardEvent::Power { state: PowerState::Off });
    }

    fn plan_poke(&mut self) {
        if let Some(running) = &mut self.instance {
            running.poke_at = Some(Instant::now() + POKE_AFTER);
        }
    }

    async fn poke(&mut self) {
        let Some(running) = &mut self.instance else { return };
        running.poke_at = None;
        // Any command wakes the machine's main loop.
        if let Err(error) = running.instance.monitor.ask("query-status", ANSWER).await {
            self.monitor_failed(error).await;
        }
    }

    /// Tells how long the machine has stood still, if it has; gives up one that stays stopped.
    async fn look(&mut self) {
        let Some(running) = &mut self.instance else { return };
        let Stillness { stopped, .. } = running.look();
        let dead = running.stopped >= STOPPED;
        if running.untold >= STILLNESS || (stopped && !running.untold.is_zero()) {
            let told = std::mem::take(&mut running.untold);
            let ms = u64::try_from(told.as_millis()).unwrap_or(u64::MAX);
            self.context.sink.event(BoardEvent::Stood { ms, stopped });
        }
        if dead {
            let detail = format!("somebody has stopped the emulator's process, {STOPPED:?} ago");
            self.lose(Cause::EmulatorStuck, detail).await;
        }
    }

    async fn feel_pulse(&mut self) {
        let Some(running) = &mut self.instance else { return };
        let Some(pulse) = &mut running.pulse else {
            match running.instance.monitor.ask("query-status", ANSWER).await {
                Ok(id) => {
                    running.pulse = Some(MonitorPulse { id, asked: Instant::now(), missed: 0 })
                }
                Err(error) => self.monitor_failed(error).await,
            }
            return;
        };
        pulse.missed += 1;
        if pulse.missed >= MISSED_BEATS {
            let silence = pulse.asked.elapsed();
            let detail =
                format!("the emulator has not answered for {:.1} s", silence.as_secs_f64());
            self.lose(Cause::EmulatorStuck, detail).await;
        }
    }
}

impl Running {
    /// Accounts for the time that the process has not had since the last look.
    pub(super) fn look(&mut self) -> Stillness {
        let seen = self.watch.look(&self.instance.process, LOOK * 2);
        // A halted machine loses all the time, whatever its threads wait for.
        if !self.halted {
            self.starved = self.starved.saturating_add(seen.most);
        }
        self.untold += seen.time;
        self.stopped = if seen.stopped { self.stopped + seen.time } else { Duration::ZERO };
        seen
    }

    async fn wake(
        &mut self,
        inbox: &mut mpsc::Receiver<EmulatorOrder>,
        pulse: &mut tokio::time::Interval,
        look: &mut tokio::time::Interval,
    ) -> EmulatorWake {
        let Self { instance, poke_at, debugged, listen_at, .. } = self;
        let arrival = async {
            if let Some(at) = *listen_at {
                sleep_until(at).await;
                *listen_at = None;
            }
            let arrival = instance.monitor.next().await;
            if *debugged {
                *listen_at = Some(Instant::now() + LISTEN_AFTER);
            }
            arrival
        };
        let poke = async {
            match *poke_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // An end that has come is told before an order could hide it, and an answer
            // that has arrived is read before it is missed. Neither can starve the orders
            // for long: an end comes once, and the monitor says little.
            biased;
            ending = instance.process.ended() => EmulatorWake::Ended(ending),
            order = inbox.recv() => EmulatorWake::Order(order),
            arrival = arrival => EmulatorWake::Monitor(arrival),
            () = instance.bell.notified() => EmulatorWake::Bell,
            () = poke => EmulatorWake::Poke,
            _ = pulse.tick() => EmulatorWake::Pulse,
            _ = look.tick() => EmulatorWake::Look,
        }
    }

    async fn reset(&mut self, context: &BindContext) -> Result<(), MonitorError> {
        self.stop().await?;
        context.sink.drained().await;
        let monitor = &mut self.instance.monitor;
        monitor.call("system_reset", ANSWER).await?;
        let by_host =
            |event: &MachineEvent| matches!(event, MachineEvent::Reset { by_guest: false, .. });
        monitor.wait_for("system_reset", ANSWER, by_host).await?;
        // What the target did before belongs to the boot before.
        for event in self.instance.monitor.take_early() {
            self.hear(Arrival::Event(event), context);
        }
        let reason = "asked for".to_owned();
        context.sink.event(BoardEvent::Reset { by_target: false, reason });
        if self.halted {
            self.runs_on();
        }
        self.go_on().await?;
        self.turns();
        Ok(())
    }

    /// Takes in what the monitor said before it closed.
    async fn drain_events(&mut self, context: &BindContext) {
        while let Ok(arrival) = self.instance.monitor.next().await {
            self.hear(arrival, context);
        }
    }

    pub(super) fn hear(&mut self, arrival: Arrival, context: &BindContext) {
        let event = match arrival {
            Arrival::Answer { id, .. } => {
                self.pulse.take_if(|pulse| pulse.id == id);
                return;
            }
            Arrival::Event(event @ MachineEvent::Shutdown { .. }) => {
                self.shutdown = Some(event);
                return;
            }
            Arrival::Event(MachineEvent::Reset { by_guest, reason }) => {
                BoardEvent::Reset { by_target: by_guest, reason }
            }
            Arrival::Event(MachineEvent::Watchdog { action }) => BoardEvent::Watchdog { action },
            Arrival::Event(MachineEvent::Panicked { detail }) => BoardEvent::GuestPanic { detail },
        };
        context.sink.event(event);
    }
}
