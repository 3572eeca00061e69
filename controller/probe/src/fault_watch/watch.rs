//! The thread that watches, and the driver that wraps an emulator with it.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, LogItem, Packets, Stop};
use jig_drivers::qemu::{
    CodeCollector, CollectedCode, ControlLock, ExceptionLog, Launched, Machine, QemuFactory,
};
use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::post_mortem::{FaultProof, FaultSighting, PostMortem};
use jig_model::profile::{Arch, BoardProfile, Deploy};
use jig_model::protocol::{
    BindContext, BoxFuture, DebugPort, DriverError, PartFactory, PostMortemRequest, Power,
    PowerState, Protocols,
};
use jig_model::rig_file::Place;
use tokio::sync::oneshot;

use super::capture::{CortexM, capture_riscv};
use super::fault_loop::{FaultShape, FaultStand, Registers, WATCHED};
use super::fault_stand::{AwaitedReturn, FaultFrame, WatchPoints, standing_in_fault};
use super::halted_core::{HaltedCore, StoppedCore};
use super::registers::{CurrentRegisters, ImageAhead, at_end, sighting, suspicion};
use super::stopped_core::{halt_story, story_of, trap_story, unseen_story};
use super::telling::{RequestSymbols, told, told_with};
use super::trap_watch::standing_in_trap;
use crate::code_map::{NoCode, around};
use crate::debug_info::{exception_name, is_fault, unwind};
use crate::post_mortem::Since;
use crate::riscv::in_interrupt;
use crate::{CoreSnapshot, MemoryRange, Symbols, Why, parse_register_dump};

/// How often the thread checks for requests while the machine runs.
const LOOK: Duration = Duration::from_millis(50);

/// How many faults of a boot are stopped at; later ones run through undisturbed.
const MOST_FAULTS: u32 = 16;

/// How many times a core is looked at that was lost, and is elsewhere now: it may have come to a fault.
const MOST_LOOKS: u32 = 2;

/// How long the first instruction of a handler may take.
const STEP: Duration = Duration::from_secs(1);

/// Offers boards as QEMU machines whose faults are explained, where the profile says how.
#[derive(Debug, Clone, Default)]
pub struct WatchedEmulator {
    /// Collects the code that a board executes, if that is wanted.
    pub code: Option<CodeCollector>,
}

impl WatchedEmulator {
    /// Tells whether the code that a board executes can be collected at a place.
    pub fn collects_code(profile: &BoardProfile, place: &Place) -> bool {
        joins(profile, place) && WatchedCore::of(profile).is_some()
    }
}

/// Tells whether a place is an emulator that is given its image when it is launched.
fn joins(profile: &BoardProfile, place: &Place) -> bool {
    place.is_emulated() && profile.deploy_at(place) != Some(Deploy::Probe)
}

impl PartFactory for WatchedEmulator {
    fn join(&self, context: &BindContext, built: Protocols) -> Result<Protocols, DriverError> {
        if !joins(&context.profile, &context.place) {
            return Ok(built);
        }
        let profile = Arc::clone(&context.profile);
        let core = WatchedCore::of(&profile);
        let code = self.code.clone();
        let (mut protocols, machine) = QemuFactory.bind_with_code(context.clone(), code)?;
        let registers = CurrentRegisters::new(machine.clone());
        // What a debugger would find is not said of every board.
        let Some(core) = core else {
            protocols.debug = Some(Box::new(registers));
            return Ok(protocols);
        };
        let Some(power) = protocols.power.take() else { return Ok(protocols) };
        let (messages, inbox) = channel();
        let latest = Arc::<LatestLaunch>::default();
        let watched_profile = Arc::clone(&profile);
        let watch = FaultWatch {
            profile: watched_profile,
            core,
            machine: machine.clone(),
            latest: Arc::clone(&latest),
        };
        let started = thread::Builder::new()
            .name("jig-fault-watch".to_owned())
            .spawn(move || watch.run(&inbox));
        started.map_err(|error| {
            DriverError::new(Cause::RigUnhealthy, "start the fault watch").with_source(error)
        })?;
        let handle =
            WatchHandle { messages: messages.clone(), registers, latest, profile, image: None };
        protocols.debug = Some(Box::new(handle));
        let watched = WatchedPower { inner: power, machine, messages: Some(messages) };
        protocols.power = Some(Box::new(watched));
        Ok(protocols)
    }
}

/// Tells the emulator of its watcher before it is launched for the first time.
struct WatchedPower {
    inner: Box<dyn Power>,
    machine: Machine,
    messages: Option<Sender<Message>>,
}

impl Power for WatchedPower {
    fn on(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        Box::pin(async {
            if let Some(messages) = self.messages.take() {
                // A watch that has ended lets the machine go by dropping the launch.
                let show =
                    move |launched| drop(messages.send(Message::Launched(Box::new(launched))));
                self.machine.watch(Box::new(show)).await?;
            }
            self.inner.on().await
        })
    }

    fn off(&mut self) -> BoxFuture<'_, Result<(), DriverError>> {
        self.inner.off()
    }

    fn status(&mut self) -> BoxFuture<'_, Result<PowerState, DriverError>> {
        self.inner.status()
    }

    fn off_timeout(&self) -> Duration {
        self.inner.off_timeout()
    }
}

type WatchAnswer = Result<Option<PostMortem>, DriverError>;

enum Message {
    Launched(Box<Launched>),
    Asked(PostMortemRequest, oneshot::Sender<WatchAnswer>),
    /// The machine, which a look has left standing, goes on.
    WatchOn(oneshot::Sender<()>),
}

struct WatchHandle {
    messages: Sender<Message>,
    registers: CurrentRegisters,
    latest: Arc<LatestLaunch>,
    profile: Arc<BoardProfile>,
    /// What is being read for the next look.
    image: Option<ImageAhead>,
}

/// What is known of the latest launch, for callers that cannot wait for the thread.
#[derive(Default)]
struct LatestLaunch(Mutex<WatchState>);

/// How a launch is watched.
#[derive(Clone, Default)]
enum WatchState {
    /// Not at all: the core is none whose exceptions are known.
    #[default]
    Unknown,
    /// All exceptions since the first instruction are reported here.
    Reported(ExceptionLog),
    /// As it should be, it is not: an exception may have been missed.
    Failed,
}

impl LatestLaunch {
    fn set(&self, state: WatchState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn get(&self) -> WatchState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DebugPort for WatchHandle {
    fn post_mortem<'a>(&'a mut self, request: &'a PostMortemRequest) -> BoxFuture<'a, WatchAnswer> {
        Box::pin(async {
            let gone = || DriverError::new(Cause::InternalError, "the fault watch has ended");
            let (reply, answer) = oneshot::channel();
            let asked = Message::Asked(request.clone(), reply);
            self.messages.send(asked).map_err(|_| gone())?;
            answer.await.map_err(|_| gone())?
        })
    }

    fn read_ahead(&mut self, image: &Path) {
        self.image = Some(ImageAhead::begin(image));
    }

    fn look_ahead(&mut self) {
        self.registers.look_ahead();
    }

    fn runs_on(&mut self) {
        self.registers.runs_on();
    }

    fn fatal_halt<'a>(
        &'a mut self,
        image: &'a Path,
    ) -> BoxFuture<'a, Result<Option<FaultSighting>, DriverError>> {
        Box::pin(async move {
            let WatchState::Reported(log) = self.latest.get() else { return Ok(None) };
            let image = ImageAhead::take(&mut self.image, image).await?;
            // A handler may have been left for a thread without a return from it.
            let open = !log.seen().open.is_empty();
            if !open && !self.registers.may_have_halted(&image, &self.profile.memory).await? {
                return Ok(None);
            }
            let name = "a fatal error".to_owned();
            Ok(Some(FaultSighting { name, proof: FaultProof::Suspected, taken: None }))
        })
    }

    fn watch_on(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (reply, gone_on) = oneshot::channel();
            if self.messages.send(Message::WatchOn(reply)).is_ok() {
                // Without an answer the watch has ended.
                drop(gone_on.await);
            }
        })
    }

    fn reset_in_fault(&mut self) -> Option<String> {
        match self.latest.get() {
            WatchState::Reported(log) => log.take_reset_in().map(exception_name),
            WatchState::Unknown | WatchState::Failed => None,
        }
    }

    fn output_since_fault(&mut self) -> Option<u64> {
        match self.latest.get() {
            WatchState::Reported(log) => log.output_since_fault(),
            WatchState::Unknown | WatchState::Failed => None,
        }
    }

    /// Asked of the emulator itself: the thread answers only between two of its waits.
    fn current_fault(&mut self) -> BoxFuture<'_, Result<Option<FaultSighting>, DriverError>> {
        Box::pin(async {
            Ok(match (self.registers.read().await?, self.latest.get()) {
                (Some(text), WatchState::Reported(log)) => suspicion(text, &log.seen()),
                (Some(text), WatchState::Unknown) => sighting(text),
                (Some(_), WatchState::Failed) => return Err(lost()),
                // The machine has ended.
                (None, WatchState::Reported(log)) => at_end(&log.seen()),
                (None, WatchState::Unknown | WatchState::Failed) => None,
            })
        })
    }
}

/// What is known of the core of a machine that is watched.
enum WatchedCore {
    CortexM(CortexM),
    /// What it is, the machine is asked.
    Arm,
    Riscv32,
}

impl WatchedCore {
    fn of(profile: &BoardProfile) -> Option<Self> {
        let emulation = profile.emulation.as_ref()?;
        match (&emulation.debug, profile.arch) {
            (Some(spec), _) => Some(Self::CortexM(CortexM::of(spec))),
            (None, Arch::Arm) => Some(Self::Arm),
            (None, Arch::Riscv32) => Some(Self::Riscv32),
            (None, _) => None,
        }
    }
}

/// The core of a launched machine.
#[derive(Debug, Clone)]
enum LaunchedCore {
    CortexM(CortexM),
    Riscv32,
}

impl LaunchedCore {
    fn capture(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
    ) -> Result<CoreSnapshot, ChannelError> {
        match self {
            Self::CortexM(core) => core.capture(channels, profile),
            Self::Riscv32 => capture_riscv(channels, profile),
        }
    }

    /// Returns the number of the exception that the core executes, where it has such numbers.
    fn exception(&self, channels: &mut DebugChannels) -> Result<u32, ChannelError> {
        match self {
            Self::CortexM(core) => core.exception(channels),
            Self::Riscv32 => Ok(0),
        }
    }
}

impl LaunchedCore {
    /// Reads the fault whose handler, at whose first instruction the machine stands, was entered.
    fn awaited_return(
        &self,
        channels: &mut DebugChannels,
        profile: &BoardProfile,
        registers: &Registers,
    ) -> Result<Option<AwaitedReturn>, ChannelError> {
        let Self::CortexM(core) = self else { return Ok(None) };
        let frame = core.frame(channels, profile, registers)?;
        let stacked = match frame {
            Some(frame) => core.stacked(channels, profile, frame)?,
            None => None,
        };
        let of_frame = |(address, (at, below))| FaultFrame { address, at, below };
        let fault = frame.zip(stacked).map(of_frame);
        Ok(Some(AwaitedReturn { fault }))
    }
}

/// What two looks at a core that is in no fault have found.
enum HaltLook {
    GoesOn,
    /// It has left its code or its stack at first, and is elsewhere now.
    WasLost,
    Halted(HaltedCore, Box<CoreSnapshot>),
}

/// The thread's own: it ends when the board's last handle is dropped.
struct FaultWatch {
    profile: Arc<BoardProfile>,
    core: WatchedCore,
    machine: Machine,
    latest: Arc<LatestLaunch>,
}

/// One launch of the machine.
struct Launch {
    core: LaunchedCore,
    /// Nothing once the machine has ended.
    channels: Option<DebugChannels>,
    exceptions: ExceptionLog,
    /// Held while the machine is stopped here.
    control: ControlLock,
    /// Where the machine is stopped.
    points: WatchPoints,
    /// The first fault since the last reset that the rig asked for.
    fault: Option<CoreSnapshot>,
    /// A look at its end has left it standing.
    stands: bool,
}

impl FaultWatch {
    fn run(self, inbox: &Receiver<Message>) {
        let mut launch = None;
        loop {
            let running = launch.as_mut().is_some_and(|launch| self.watch_a_moment(launch));
            let message = match running {
                true => inbox.try_recv(),
                false => inbox.recv().map_err(|_| TryRecvError::Disconnected),
            };
            match message {
                Ok(Message::Launched(launched)) => launch = self.begin(*launched),
                // The caller may have timed out.
                Ok(Message::Asked(request, reply)) => {
                    drop(reply.send(self.answer(launch.as_mut(), &request)));
                }
                Ok(Message::WatchOn(reply)) => {
                    self.watch_on(launch.as_mut());
                    // The caller may have timed out.
                    let _ = reply.send(());
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    /// Sets the breakpoints while the machine stands, and lets it go.
    fn begin(&self, launched: Launched) -> Option<Launch> {
        let Launched { mut channels, exceptions, control, ready } = launched;
        let prepared = self.prepare(&mut channels, exceptions.takes_code());
        let state = match &prepared {
            Ok(None) => WatchState::Unknown,
            Ok(Some(_)) => WatchState::Reported(exceptions.clone()),
            Err(error) => {
                tracing::warn!(%error, "the exceptions of this boot are not reported");
                WatchState::Failed
            }
        };
        self.latest.set(state);
        let prepared = prepared.ok().flatten();
        if !ready.start() && prepared.is_some() {
            tracing::warn!("the beginning of this boot was not watched");
            self.latest.set(WatchState::Failed);
        }
        let (core, handlers) = prepared?;
        Some(Launch {
            core,
            channels: Some(channels),
            exceptions,
            control,
            points: WatchPoints::new(handlers),
            fault: None,
            stands: false,
        })
    }

    /// Has the exceptions reported and sets the breakpoints; nothing if the core is none that is
    /// known.
    fn prepare(
        &self,
        channels: &mut DebugChannels,
        code: Option<CollectedCode>,
    ) -> Result<Option<(LaunchedCore, Vec<u32>)>, ChannelError> {
        let core = self.core_of(channels)?;
        let exceptions = core.is_some().then_some(LogItem::Exceptions);
        let code = match code {
            None => &[][..],
            Some(CollectedCode::Instructions) => &[LogItem::Code],
            Some(CollectedCode::Spans) => &[LogItem::Code, LogItem::Blocks],
        };
        let items: Vec<_> = exceptions.iter().chain(code).copied().collect();
        if !items.is_empty() {
            channels.monitor.log(&items)?;
        }
        let Some(core) = core else { return Ok(None) };
        let handlers = self.arm(&core, channels).unwrap_or_else(|error| {
            tracing::debug!(%error, "faults of this boot are not caught");
            Vec::new()
        });
        Ok(Some((core, handlers)))
    }

    /// Finds out what the core is; nothing if it is none that is known.
    fn core_of(&self, channels: &mut DebugChannels) -> Result<Option<LaunchedCore>, ChannelError> {
        Ok(match &self.core {
            WatchedCore::Riscv32 => Some(LaunchedCore::Riscv32),
            WatchedCore::CortexM(core) => Some(LaunchedCore::CortexM(core.clone())),
            WatchedCore::Arm => CortexM::ask(channels)?.map(LaunchedCore::CortexM),
        })
    }

    fn arm(
        &self,
        core: &LaunchedCore,
        channels: &mut DebugChannels,
    ) -> Result<Vec<u32>, ChannelError> {
        let LaunchedCore::CortexM(core) = core else { return Ok(Vec::new()) };
        let handlers = core.fault_handlers(channels, &self.profile)?;
        let mut packets = Packets::default();
        for &handler in &handlers {
            packets.insert_breakpoint(handler);
        }
        channels.gdb.perform(&packets)?;
        Ok(handlers)
    }

    /// Waits for a fault; tells whether the machine is still there.
    fn watch_a_moment(&self, launch: &mut Launch) -> bool {
        let Some(channels) = &mut launch.channels else { return false };
        let outcome = match channels.gdb.wait(LOOK) {
            // Another process stopped the machine, and will let it go.
            Ok(Some(Stop::Interrupted | Stop::Other)) => Ok(()),
            Ok(None) => self.forget_before_reset(launch),
            Ok(Some(Stop::Trapped)) => {
                let control = launch.control.clone();
                let held = control.hold();
                self.catch(launch, held.is_halted())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "the fault watch lost its machine");
            launch.channels = None;
        }
        launch.channels.is_some()
    }

    /// Copies what a fault left, and lets its handler run; a machine that is halted by its owner is
    /// left at the breakpoint, which it reaches again when it goes on.
    fn catch(&self, launch: &mut Launch, halted: bool) -> Result<(), ChannelError> {
        self.forget_before_reset(launch)?;
        let Some(channels) = &mut launch.channels else { return Ok(()) };
        let registers @ [.., pc, _] = channels.gdb.registers::<17>()?;
        let number = launch.core.exception(channels)?;
        let points = &mut launch.points;
        let at_handler = points.handlers.contains(&pc);
        // Vectors that are not used may lead to the reset handler, or to one of an interrupt.
        let in_fault = at_handler && is_fault(number);
        let returns_to = match (&launch.core, points.awaited_frame()) {
            (LaunchedCore::CortexM(core), Some(frame)) if !at_handler => {
                core.stacked(channels, &self.profile, frame)?.map(|(to, _)| to)
            }
            _ => None,
        };
        if !at_handler
            && !halted
            && let Some((gone, new)) = points.take_return(&registers, returns_to)
        {
            let mut packets = Packets::default();
            gone.into_iter().for_each(|place| packets.remove_breakpoint(place));
            new.into_iter().for_each(|place| packets.insert_breakpoint(place));
            return channels.gdb.resume(packets);
        }
        let unknown = in_fault && launch.fault.is_none();
        if halted && !unknown {
            return Ok(());
        }
        // What reads the registers of a core needs its breakpoints out of the way.
        channels.gdb.remove_breakpoints()?;
        let mut with = Packets::default();
        if unknown {
            launch.fault = Some(launch.core.capture(channels, &self.profile)?);
        }
        if halted {
            points.all().for_each(|place| with.insert_breakpoint(place));
            return channels.gdb.perform(&with);
        }
        points.stops += 1;
        points.caught += u32::from(in_fault);
        if in_fault {
            points.await_return(launch.core.awaited_return(channels, &self.profile, &registers)?);
        } else if at_handler {
            points.await_return(None);
        }
        channels.gdb.step(Packets::default(), STEP)?;
        if points.caught >= MOST_FAULTS || points.is_full() {
            points.handlers.clear();
        }
        points.all().for_each(|place| with.insert_breakpoint(place));
        channels.gdb.resume(with)
    }

    fn answer(&self, launch: Option<&mut Launch>, request: &PostMortemRequest) -> WatchAnswer {
        let Some(launch) = launch else { return Ok(None) };
        let broken = |error: ChannelError| {
            let message = "look into the emulated machine";
            DriverError::new(Cause::EmulatorStuck, message).with_source(error)
        };
        // A machine that has ended cannot tell of resets; what it left stays what it is.
        if self.forget_before_reset(launch).is_err() {
            launch.channels = None;
        }
        if request.why == Cause::CoreFault {
            return match launch.channels {
                Some(_) => self.standing(launch, request).map_err(broken),
                None if self.machine.how_it_ended()?.is_some() => Ok(ended_behind(launch, request)),
                None => Err(lost()),
            };
        }
        let (snapshot, why) = match (launch.fault.take(), &mut launch.channels) {
            (Some(fault), _) => {
                let since = self.since(launch, request.why);
                let image = RequestSymbols::load(request);
                let story = told_with(&image, &fault, Why::Fault, request);
                return Ok(Some(since.continue_story(story, image.symbols.as_ref())));
            }
            // Where it stands now says nothing about the boot that is over.
            (None, Some(_)) if !stands_where_it_failed(request.why) => return Ok(None),
            (None, Some(channels)) => {
                let stood = channels.gdb.stand().map_err(broken);
                let seen = stood
                    .and_then(|()| launch.core.capture(channels, &self.profile).map_err(broken))?;
                (seen, Why::Hang)
            }
            (None, None) => match self.machine.how_it_ended()? {
                Some(BoardEvent::Lockup { detail }) => match parse_register_dump(&detail) {
                    Some(seen) => (seen, Why::LockUp),
                    None => return Ok(None),
                },
                _ => return Ok(None),
            },
        };
        Ok(Some(told(&snapshot, why, request)))
    }

    /// Forgets what was caught before a reset that the rig asked for: it belongs to a boot that
    /// is over. A reset by the target itself is what a fault leads to.
    fn forget_before_reset(&self, launch: &mut Launch) -> Result<(), ChannelError> {
        let Some(channels) = &mut launch.channels else { return Ok(()) };
        if channels.monitor.resets()?.by_host {
            launch.fault = None;
        }
        Ok(())
    }

    /// Lets a machine that a look has left standing go on, with its breakpoints. One that was not
    /// looked at, or runs, is left as it is.
    fn watch_on(&self, launch: Option<&mut Launch>) {
        let Some(launch) = launch else { return };
        if !std::mem::take(&mut launch.stands) {
            return;
        }
        let Some(channels) = &mut launch.channels else { return };
        let mut packets = Packets::default();
        launch.points.all().for_each(|place| packets.insert_breakpoint(place));
        // A look that was cut off has left some.
        let resumed = channels.gdb.remove_breakpoints().and_then(|()| channels.gdb.resume(packets));
        if let Err(error) = resumed {
            tracing::debug!(%error, "the fault watch lost its machine");
            launch.channels = None;
        }
    }

    /// Finds out whether a machine on which nothing has failed is in a fault for good; nothing if it
    /// is not. It stands afterwards.
    fn standing(
        &self,
        launch: &mut Launch,
        request: &PostMortemRequest,
    ) -> Result<Option<PostMortem>, ChannelError> {
        let Some(channels) = &mut launch.channels else { return Ok(None) };
        launch.stands = true;
        let image = RequestSymbols::load(request);
        let symbols = image.symbols.as_ref();
        let log = &launch.exceptions;
        for _ in 0..MOST_LOOKS {
            let unfaulted = log.seen().faults == 0;
            match &launch.core {
                LaunchedCore::Riscv32 => {
                    let found = standing_in_trap((&mut *channels, log), &self.profile, symbols)?;
                    if let Some(found) = found {
                        let last = log.seen().fault;
                        return Ok(Some(trap_story(&found, last.as_ref(), &image, request)));
                    }
                }
                LaunchedCore::CortexM(core) if never_faulted(core, channels, log)? => {}
                LaunchedCore::CortexM(core) => {
                    let machine = (&mut *channels, log, &*self.profile);
                    let found = standing_in_fault(core, machine, &launch.points, symbols)?;
                    if let Some(FaultStand { shape, snapshot }) = found {
                        // Of several faults, the first may be one that the firmware got over.
                        let caught = launch.fault.take().filter(|_| launch.points.caught == 1);
                        let caught = caught.as_ref();
                        return Ok(Some(story_of(shape, &snapshot, caught, &image, request)));
                    }
                }
            }
            match self.halted((&launch.core, channels, log), symbols)? {
                // It may have taken its first fault while it was looked at.
                HaltLook::GoesOn if unfaulted && log.seen().faults > 0 => {}
                HaltLook::GoesOn => return Ok(None),
                HaltLook::Halted(halted, snapshot) => {
                    return Ok(Some(halt_story(&halted, &snapshot, &image, request)));
                }
                HaltLook::WasLost => {}
            }
        }
        Ok(None)
    }

    /// Finds out whether a machine that is in no fault has halted for good: two looks find its core in
    /// the same state. It stands afterwards.
    fn halted(
        &self,
        (core, channels, log): (&LaunchedCore, &mut DebugChannels, &ExceptionLog),
        symbols: Option<&Symbols>,
    ) -> Result<HaltLook, ChannelError> {
        channels.gdb.stand()?;
        let look = |channels: &mut DebugChannels| -> Result<_, ChannelError> {
            let snapshot = core.capture(channels, &self.profile)?;
            let unwound = unwind(&snapshot, symbols);
            let memory = &self.profile.memory;
            let stopped = StoppedCore { core: &snapshot, unwound: &unwound, symbols, memory };
            let no_code = self.no_code(channels, &stopped)?;
            let seen = log.seen();
            let traps = seen.traps;
            let in_trap = || {
                let interrupt = in_interrupt(&snapshot, symbols, &unwound)?;
                Some(HaltedCore::InTrap { interrupt, traps })
            };
            let halted = HaltedCore::of(&stopped, no_code, seen).or_else(in_trap);
            tracing::trace!(?halted, frames = ?unwound.frames, "looked at the stopped core");
            Ok(halted.map(|halted| (halted, snapshot)))
        };
        let Some((first, _)) = look(channels)? else { return Ok(HaltLook::GoesOn) };
        channels.gdb.resume(Packets::default())?;
        if channels.gdb.wait_while_it_runs(WATCHED)?.is_none() {
            channels.gdb.interrupt()?;
        }
        let second = look(channels)?;
        // It may have got lost between the two.
        let lost = first.is_lost() || second.as_ref().is_some_and(|(now, _)| now.is_lost());
        let halted = second.and_then(|(now, snapshot)| Some((now.since(&first)?, snapshot)));
        Ok(match halted {
            Some((halted, snapshot)) => HaltLook::Halted(halted, Box::new(snapshot)),
            None if lost => HaltLook::WasLost,
            None => HaltLook::GoesOn,
        })
    }

    /// Tells what the core of a machine that stands executes, or goes on with behind an interrupt, if that is
    /// no code of its image.
    fn no_code(
        &self,
        channels: &mut DebugChannels,
        stopped: &StoppedCore<'_>,
    ) -> Result<Option<(u32, NoCode)>, ChannelError> {
        let memory = &self.profile.memory;
        let Some(code) = stopped.symbols.map(Symbols::code_map) else { return Ok(None) };
        for (pc, stack) in stopped.places() {
            let Some(around) = around(pc, memory) else { continue };
            let mut bytes = vec![0; around.len()];
            channels.gdb.read_memory(around.start, &mut bytes)?;
            let around = MemoryRange { start: around.start.into(), bytes };
            if let Some(found) = code.no_code(pc, stack, memory, &around) {
                return Ok(Some((pc, found)));
            }
        }
        Ok(None)
    }

    /// Looks what became of the machine after its fault was caught; it stands afterwards.
    fn since(&self, launch: &mut Launch, why: Cause) -> Since {
        if let Some(channels) = &mut launch.channels {
            if !stands_where_it_failed(why) {
                return Since::Standing;
            }
            let stood = channels.gdb.stand();
            if let Ok(now) = stood.and_then(|()| launch.core.capture(channels, &self.profile)) {
                return Since::of(&now);
            }
            launch.channels = None;
        }
        match self.machine.how_it_ended() {
            Ok(Some(BoardEvent::Lockup { detail })) => {
                let at = parse_register_dump(&detail).and_then(|seen| seen.register("pc"));
                Since::LockedUp(at.and_then(|at| u32::try_from(at).ok()))
            }
            _ => Since::Standing,
        }
    }
}

/// Tells of the last fault of a machine that has ended behind it, if it was seen that its handler has returned
/// elsewhere and nothing was printed since; its end is told by itself.
fn ended_behind(launch: &mut Launch, request: &PostMortemRequest) -> Option<PostMortem> {
    let seen = launch.exceptions.seen();
    // What is certain, as an end from within the handler, needs no more.
    at_end(&seen).filter(|fault| fault.proof == FaultProof::Suspected)?;
    let image = RequestSymbols::load(request);
    match launch.points.left(&seen, image.symbols.as_ref())? {
        FaultShape::LeftUnseen => Some(unseen_story()),
        shape => {
            let fault = launch.fault.take()?;
            Some(story_of(shape, &fault, None, &image, request))
        }
    }
}

/// Tells whether a Cortex-M has taken no fault in this boot, and executes no exception. It stands afterwards,
/// without breakpoints.
fn never_faulted(
    core: &CortexM,
    channels: &mut DebugChannels,
    log: &ExceptionLog,
) -> Result<bool, ChannelError> {
    channels.gdb.stand()?;
    channels.gdb.remove_breakpoints()?;
    Ok(log.seen().faults == 0 && core.exception(channels)? == 0)
}

/// The machine runs, and what its core does is not known.
fn lost() -> DriverError {
    DriverError::new(Cause::EmulatorStuck, "the fault watch has lost the emulated machine")
}

/// Tells whether a target that failed for this reason is still where it did.
pub(crate) fn stands_where_it_failed(why: Cause) -> bool {
    !matches!(
        why,
        Cause::UnexpectedReset | Cause::WatchdogReset | Cause::BootLoop | Cause::GuestExit
    )
}
