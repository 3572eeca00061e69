//! The thread that watches, and the driver that wraps an emulator with it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jig_drivers::qemu::debug::{ChannelError, DebugChannels, Packets, Stop};
use jig_drivers::qemu::{ExceptionLog, Exceptions, Launched, Machine, QemuFactory};
use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::post_mortem::{FaultSighting, PostMortem};
use jig_model::profile::{Arch, BoardProfile, Deploy};
use jig_model::protocol::{
    BindContext, BoxFuture, DebugPort, DriverError, PartFactory, PostMortemRequest, Power,
    PowerState, Protocols,
};
use tokio::sync::oneshot;

use super::capture::{CortexM, capture_riscv};
use super::fault_stand::{FaultStand, standing_in_fault};
use super::registers::{CurrentRegisters, sighting, suspicion};
use super::stopped_core::{story_of, trap_story};
use super::telling::{RequestSymbols, told};
use super::trap_watch::standing_in_trap;
use crate::post_mortem::Since;
use crate::{CoreSnapshot, Why, parse_register_dump};

/// How often the thread checks for requests while the machine runs.
const LOOK: Duration = Duration::from_millis(50);

/// How many faults of a boot are stopped at; later ones run through undisturbed.
const MOST_FAULTS: u32 = 3;

/// How long the first instruction of a handler may take.
const STEP: Duration = Duration::from_secs(1);

/// Offers boards as QEMU machines whose faults are explained, where the profile says how.
pub struct WatchedEmulator;

impl PartFactory for WatchedEmulator {
    fn join(&self, context: &BindContext, built: Protocols) -> Result<Protocols, DriverError> {
        let by_probe = context.profile.deploy_at(&context.place) == Some(Deploy::Probe);
        if !context.place.is_emulated() || by_probe {
            return Ok(built);
        }
        let profile = Arc::clone(&context.profile);
        let core = WatchedCore::of(&profile);
        let (mut protocols, machine) = QemuFactory.bind_with_machine(context.clone())?;
        let registers = CurrentRegisters::new(machine.clone());
        // What a debugger would find is not said of every board.
        let Some(core) = core else {
            protocols.debug = Some(Box::new(registers));
            return Ok(protocols);
        };
        let Some(power) = protocols.power.take() else { return Ok(protocols) };
        let (messages, inbox) = channel();
        let seen = Arc::<Seen>::default();
        let watch = FaultWatch { profile, core, machine: machine.clone(), seen: Arc::clone(&seen) };
        let started = thread::Builder::new()
            .name("jig-fault-watch".to_owned())
            .spawn(move || watch.run(&inbox));
        protocols.power = match started {
            Ok(_) => {
                let handle = WatchHandle { messages: messages.clone(), registers, seen };
                protocols.debug = Some(Box::new(handle));
                Some(Box::new(WatchedPower { inner: power, machine, messages: Some(messages) }))
            }
            // The board is driven all the same; its faults stay unexplained.
            Err(error) => {
                tracing::warn!(%error, "faults of this board will not be explained");
                Some(power)
            }
        };
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
    seen: Arc<Seen>,
}

/// What the emulator reports of the core's exceptions while the thread is connected to the machine,
/// for callers that cannot wait for it.
#[derive(Default)]
struct Seen(Mutex<Option<ExceptionLog>>);

impl Seen {
    fn set(&self, log: Option<ExceptionLog>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = log;
    }

    fn exceptions(&self) -> Option<Exceptions> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        log.map(|log| log.seen())
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

    fn watch_on(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let (reply, gone_on) = oneshot::channel();
            if self.messages.send(Message::WatchOn(reply)).is_ok() {
                // Without an answer the watch has ended.
                drop(gone_on.await);
            }
        })
    }

    /// Asked of the emulator itself: the thread answers only between two of its waits.
    fn current_fault(&mut self) -> BoxFuture<'_, Option<FaultSighting>> {
        Box::pin(async {
            let text = self.registers.read().await?;
            match self.seen.exceptions() {
                Some(seen) => suspicion(&text, &seen),
                None => sighting(&text),
            }
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
}

/// The thread's own: it ends when the board's last handle is dropped.
struct FaultWatch {
    profile: Arc<BoardProfile>,
    core: WatchedCore,
    machine: Machine,
    seen: Arc<Seen>,
}

/// One launch of the machine.
struct Launch {
    core: LaunchedCore,
    /// Nothing once the machine has ended.
    channels: Option<DebugChannels>,
    exceptions: ExceptionLog,
    /// Set while the machine is held.
    copying: Arc<AtomicBool>,
    /// First addresses of the fault handlers at which the machine is stopped.
    handlers: Vec<u32>,
    /// The first fault since the last reset that the rig asked for.
    fault: Option<CoreSnapshot>,
    stops: u32,
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
        let Launched { mut channels, exceptions, copying, ready } = launched;
        let core = self.core_of(&mut channels);
        if core.is_some()
            && let Err(error) = channels.monitor.log_exceptions()
        {
            tracing::warn!(%error, "the exceptions of this boot are not reported");
        }
        self.seen.set(core.is_some().then(|| exceptions.clone()));
        let handlers = core.as_ref().map_or_else(Vec::new, |core| {
            let armed = self.arm(core, &mut channels);
            armed.unwrap_or_else(|error| {
                tracing::debug!(%error, "faults of this boot are not caught");
                Vec::new()
            })
        });
        ready.start();
        Some(Launch {
            core: core?,
            channels: Some(channels),
            exceptions,
            copying,
            handlers,
            fault: None,
            stops: 0,
            stands: false,
        })
    }

    /// Finds out what the core is; nothing if it is none that is known.
    fn core_of(&self, channels: &mut DebugChannels) -> Option<LaunchedCore> {
        match &self.core {
            WatchedCore::Riscv32 => Some(LaunchedCore::Riscv32),
            WatchedCore::CortexM(core) => Some(LaunchedCore::CortexM(core.clone())),
            WatchedCore::Arm => CortexM::ask(channels).ok().flatten().map(LaunchedCore::CortexM),
        }
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
                launch.copying.store(true, Ordering::Release);
                let caught = self.catch(launch);
                launch.copying.store(false, Ordering::Release);
                caught
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "the fault watch lost its machine");
            launch.channels = None;
            self.seen.set(None);
        }
        launch.channels.is_some()
    }

    /// Copies what a fault left, and lets its handler run.
    fn catch(&self, launch: &mut Launch) -> Result<(), ChannelError> {
        self.forget_before_reset(launch)?;
        let Some(channels) = &mut launch.channels else { return Ok(()) };
        let [.., pc, _] = channels.gdb.registers::<17>()?;
        if !launch.handlers.contains(&pc) {
            return channels.gdb.resume(Packets::default());
        }
        if launch.fault.is_none() {
            launch.fault = Some(launch.core.capture(channels, &self.profile)?);
        }
        launch.stops += 1;
        let mut before = Packets::default();
        before.remove_breakpoint(pc);
        channels.gdb.step(before, STEP)?;
        let mut after = Packets::default();
        if launch.stops < MOST_FAULTS {
            after.insert_breakpoint(pc);
        } else {
            for &other in launch.handlers.iter().filter(|handler| **handler != pc) {
                after.remove_breakpoint(other);
            }
            launch.handlers.clear();
        }
        channels.gdb.resume(after)
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
            return self.standing(launch, request).map_err(broken);
        }
        let (snapshot, why) = match (launch.fault.take(), &mut launch.channels) {
            (Some(fault), _) => {
                let since = self.since(launch, request.why);
                return Ok(Some(since.continue_story(told(&fault, Why::Fault, request))));
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
        for &handler in &launch.handlers {
            packets.insert_breakpoint(handler);
        }
        if let Err(error) = channels.gdb.resume(packets) {
            tracing::debug!(%error, "the fault watch lost its machine");
            launch.channels = None;
            self.seen.set(None);
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
        let core = match &launch.core {
            LaunchedCore::Riscv32 => {
                let log = &launch.exceptions;
                let found = standing_in_trap((channels, log), &self.profile, symbols)?;
                return Ok(found.map(|found| trap_story(&found, &image, request)));
            }
            LaunchedCore::CortexM(core) => core,
        };
        let log = &launch.exceptions;
        let machine = (channels, log, &*self.profile);
        let found = standing_in_fault(core, machine, &launch.handlers, symbols)?;
        let Some(FaultStand { shape, snapshot }) = found else { return Ok(None) };
        // Of several faults, the first may be one that the firmware got over.
        let caught = launch.fault.take().filter(|_| launch.stops == 1);
        Ok(Some(story_of(shape, &snapshot, caught.as_ref(), &image, request)))
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
            Ok(Some(BoardEvent::Lockup { .. })) => Since::LockedUp,
            _ => Since::Standing,
        }
    }
}

/// Tells whether a target that failed for this reason is still where it did.
pub(crate) fn stands_where_it_failed(why: Cause) -> bool {
    !matches!(
        why,
        Cause::UnexpectedReset | Cause::WatchdogReset | Cause::BootLoop | Cause::GuestExit
    )
}
