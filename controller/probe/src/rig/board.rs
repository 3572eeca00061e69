//! The owner of one board behind a probe.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jig_model::event::BoardEvent;
use jig_model::image::{DeployReport, Image};
use jig_model::post_mortem::{FaultProof, FaultSighting, PostMortem};
use jig_model::protocol::{DriverError, PostMortemRequest, PowerState, SharedSink};
use jig_model::{Cause, chain};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::SOON;
use super::backing::{Backing, failed};
use super::consoles::ProbeConsoles;
use super::deployed::{Deployed, without};
use super::handle::{BoardOrder, OrderReply};
use super::look::{
    HARD_FAULT, active_exception, catch_faults, identify, is_cortex_m, look, shows_fault,
    stands_at_fault,
};
use super::open_fault::OpenFault;
use super::probed_core::ProbedCore;
use super::progress::DeployProgress;
use crate::debug_info::{exception_name, is_fault};
use crate::fault_watch::suspicion_name;
use crate::fault_watch::{ended_in_handler, standing_fault, stands_where_it_failed, told};
use crate::post_mortem::Since;
use crate::{
    Attached, Cancel, CoreKind, CoreSnapshot, CoreState, FlashRequest, Payload, ProbeError,
    ProbeHandle, ResetInto, RttBlock, RttError, Why,
};

/// How often a running core is looked at: a fault has to be noticed within the 50 ms for
/// which boards are watched after their report, and a look costs one read.
const LOOK: Duration = Duration::from_millis(25);

/// How much of each memory is cleared, and searched for rings whose address is unknown:
/// data lies at its start, and megabytes of a slow probe would take seconds.
const SEARCHED: u64 = 256 << 10;

/// How many faults of a boot the core is stopped at; later ones run through undisturbed.
const MOST_FAULTS: u32 = 3;

pub(super) struct BoardOwner {
    backing: Backing,
    sink: SharedSink,
    consoles: ProbeConsoles,
    image: Option<Deployed>,
    open_fault: Arc<OpenFault>,
    live: Option<Live>,
    /// A session whose core stands, until the board is switched on or off.
    standing: Option<(ProbeHandle, Attached)>,
}

/// A board that has power.
struct Live {
    handle: ProbeHandle,
    attached: Attached,
    cortex_m: bool,
    /// When to look at the core again; never once nothing more is to be learned.
    look_at: Option<Instant>,
    /// How long the core is left alone after the next look.
    rest: Duration,
    /// The first fault of this boot, copied where it happened.
    fault: Option<CoreSnapshot>,
    faults: u32,
    lock_up_told: bool,
    /// The fault in whose handler the target has ended itself; the core stands there.
    ended_in: Option<u32>,
    /// The probe or the board has gone.
    gone: bool,
}

enum OwnerWake {
    Order(Option<BoardOrder>),
    Pump,
    Look,
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

impl BoardOwner {
    pub(super) fn new(
        backing: Backing,
        sink: SharedSink,
        consoles: ProbeConsoles,
        open_fault: Arc<OpenFault>,
    ) -> Self {
        let (image, live, standing) = (None, None, None);
        Self { backing, sink, consoles, image, open_fault, live, standing }
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<BoardOrder>) {
        let bell = self.consoles.bell();
        loop {
            let wake = match self.live.as_ref().filter(|live| !live.gone) {
                None => OwnerWake::Order(inbox.recv().await),
                Some(live) => {
                    let (look_at, due) = (live.look_at, self.consoles.due());
                    tokio::select! {
                        // Nothing below takes long, so nothing above can starve it.
                        biased;
                        order = inbox.recv() => OwnerWake::Order(order),
                        () = at(look_at) => OwnerWake::Look,
                        () = at(due) => OwnerWake::Pump,
                        () = bell.notified(), if due.is_some() => OwnerWake::Pump,
                    }
                }
            };
            let done = match wake {
                OwnerWake::Order(Some(order)) => {
                    self.obey(order).await;
                    Ok(())
                }
                OwnerWake::Order(None) => break,
                OwnerWake::Pump => self.pump().await,
                OwnerWake::Look => self.look().await,
            };
            if let Err(error) = done {
                self.lose(error).await;
            }
        }
        self.off().await;
    }

    async fn obey(&mut self, order: BoardOrder) {
        // A caller that has gone away needs no answer, so failed replies are nothing.
        match order {
            BoardOrder::Quiesce(reply) => drop(reply.send(self.quiesce().await)),
            BoardOrder::On(reply) => drop(reply.send(self.on().await)),
            BoardOrder::Off(reply) => {
                self.off().await;
                drop(reply.send(Ok(())));
            }
            BoardOrder::Status(reply) => drop(reply.send(Ok(self.state()))),
            BoardOrder::Reset(reply) => drop(reply.send(self.reset().await)),
            BoardOrder::Deploy(image, mut reply) => {
                let done = self.deploy(&image, &mut reply).await;
                drop(reply.send(done));
            }
            BoardOrder::Deployed(image, reply) => {
                drop(reply.send(self.learn(&image).await.map(drop)))
            }
            BoardOrder::ReadBack(reply) => drop(reply.send(Ok(self.read_back().await))),
            BoardOrder::Check(reply) => drop(reply.send(self.check().await)),
            BoardOrder::Explain(request, reply) => drop(reply.send(self.explain(request).await)),
            BoardOrder::CurrentFault(reply) => drop(reply.send(self.current_fault().await)),
        }
    }

    fn state(&self) -> PowerState {
        let on = self.live.is_some() && !self.backing.ended();
        if on { PowerState::On } else { PowerState::Off }
    }

    /// Halts the core of a real board, which may run something since before; an emulated one
    /// runs nothing until it is switched on.
    async fn quiesce(&mut self) -> Result<(), DriverError> {
        let is_real = matches!(self.backing, Backing::Real(_));
        if !is_real || self.state() == PowerState::On || self.standing.is_some() {
            return Ok(());
        }
        self.off().await;
        let (handle, attached) = self.backing.open(&self.sink).await?;
        let stopped = stop(&handle).await;
        self.standing = Some((handle, attached));
        stopped.map_err(|error| failed(error, Cause::PowerFailed, "halt the core"))
    }

    async fn on(&mut self) -> Result<(), DriverError> {
        if self.state() == PowerState::On {
            return Ok(());
        }
        let standing = self.standing.take();
        self.off().await;
        if !self.backing.has_program() {
            let message = "the board has no image to boot: deploy one first";
            return Err(DriverError::new(Cause::PowerFailed, message));
        }
        let (handle, attached) = match standing {
            Some(both) => both,
            None => self.backing.open(&self.sink).await?,
        };
        match self.boot(&handle, &attached).await {
            Ok(()) => {
                self.open_fault.take();
                self.live = Some(Live::new(handle, attached));
                Ok(())
            }
            Err(error) => {
                self.consoles.end();
                self.backing.cut(handle, attached, &self.sink).await;
                Err(error)
            }
        }
    }

    /// Resets the board, tells that it has power, and lets it run.
    async fn boot(&mut self, handle: &ProbeHandle, attached: &Attached) -> Result<(), DriverError> {
        let told = |error| failed(error, Cause::PowerFailed, "let the board run");
        let mut blank = self.backing.forgets();
        if !blank {
            stop(handle).await.map_err(told)?;
            // A program in RAM that this run did not deploy is left alone.
            if self.image.is_some() {
                clear(handle, self.data_memory(attached)).await.map_err(told)?;
                blank = true;
            }
        }
        self.ready(handle, attached, blank).await.map_err(told)?;
        self.consoles.attach(&self.sink);
        self.backing.show_on(&self.sink);
        handle.run().await.map_err(told)
    }

    /// Brings the core to its first instruction, with no ring of an earlier boot in RAM.
    async fn ready(
        &mut self,
        handle: &ProbeHandle,
        attached: &Attached,
        blank: bool,
    ) -> Result<(), ProbeError> {
        let ram = self.data_memory(attached);
        let known = self.image.as_ref().and_then(|image| image.control_block);
        if !blank {
            wipe(handle, known, ram.clone()).await?;
        }
        handle.reset(ResetInto::Halt).await?;
        if is_cortex_m(attached) {
            catch_faults(handle, true).await?;
        }
        // What is read clears what the debugger's own reset and halt have left.
        handle.state().await?;
        self.consoles.begin(known, ram);
        Ok(())
    }

    /// Lists the memory that a boot may have left something in, up to the limit for each.
    fn data_memory(&self, attached: &Attached) -> Vec<Range<u64>> {
        let mut ram = without(&self.backing.ram(attached), self.image.as_ref());
        for range in &mut ram {
            range.end = range.end.min(range.start.saturating_add(SEARCHED));
        }
        ram
    }

    async fn off(&mut self) {
        if let Some((handle, attached)) = self.standing.take() {
            self.backing.cut(handle, attached, &self.sink).await;
        }
        let Some(mut live) = self.live.take() else { return };
        if !live.gone && !self.backing.ended() {
            // What happened since the last look belongs to the run.
            let last = async {
                self.look_at(&mut live).await?;
                stop(&live.handle).await?;
                self.consoles.arrived().await;
                self.consoles.empty(&live.handle).await
            };
            if let Err(error) = last.await {
                tracing::debug!(%error, "the board was not stopped in order");
            }
        }
        self.consoles.end();
        self.sink.drained().await;
        if live.gone && !matches!(self.backing, Backing::Emulated(_)) {
            // A session that is broken is not kept, and there is nothing to wait for.
            return;
        }
        self.backing.cut(live.handle, live.attached, &self.sink).await;
    }

    /// Resets so that no byte of the old boot can be taken for one of the new: the core
    /// stands still while its rings and consoles are emptied.
    async fn reset(&mut self) -> Result<(), DriverError> {
        let ended = self.backing.ended();
        let Some(mut live) = self.live.take_if(|_| !ended) else {
            let message = "reset: the board has no power (power it on first)";
            return Err(DriverError::new(Cause::PowerFailed, message));
        };
        let done = async {
            if live.gone {
                return Err(ProbeError::Gone);
            }
            stop(&live.handle).await?;
            self.consoles.arrived().await;
            self.consoles.empty(&live.handle).await?;
            self.sink.drained().await;
            self.ready(&live.handle, &live.attached, false).await?;
            let reason = "asked for".to_owned();
            self.sink.event(BoardEvent::Reset { by_target: false, reason });
            live.begin();
            self.open_fault.take();
            live.handle.run().await
        };
        let done = done.await;
        self.live = Some(live);
        let Err(error) = done else { return Ok(()) };
        let cause = error.cause_during(Cause::PowerFailed);
        let words = chain(&error);
        self.lose(error).await;
        Err(DriverError::new(cause, format!("reset the board: {words}")))
    }

    /// Takes in what an image says of itself; returns what it loads.
    async fn learn(&mut self, image: &Image) -> Result<Payload, DriverError> {
        let image = Deployed::read(image).await?;
        self.consoles.speaks(&image);
        let payload = image.payload.clone();
        self.image = Some(image);
        Ok(payload)
    }

    /// Flashes a board; it stays without power.
    async fn deploy(
        &mut self,
        image: &Image,
        reply: &mut OrderReply<DeployReport>,
    ) -> Result<DeployReport, DriverError> {
        let began = Instant::now();
        self.off().await;
        let payload = self.learn(image).await?;
        let (handle, attached) = self.backing.open(&self.sink).await?;
        let request =
            FlashRequest { payload, verify: true, preserve: Vec::new(), skip_equal: true };
        let cancel = Cancel::default();
        let mut progress = DeployProgress::new(Arc::clone(&self.sink));
        let flashed = async {
            stop(&handle).await?;
            let mut flashing =
                std::pin::pin!(handle.flash(request, move |at| progress.show(at), cancel.clone()));
            tokio::select! {
                biased;
                done = &mut flashing => return done,
                // The caller has gone: stop between two sectors.
                () = reply.closed() => cancel.cancel(),
            }
            flashing.await
        };
        let flashed = flashed.await;
        let kept = match &flashed {
            Ok(_) => self.backing.keep().await,
            Err(_) => Ok(()),
        };
        // A program in flash must not begin before the board is powered.
        let stood = handle.reset(ResetInto::Halt).await;
        if let Err(error) = stood {
            tracing::debug!(%error, "the core was not reset after the deployment");
        }
        self.backing.cut(handle, attached, &self.sink).await;
        let report =
            flashed.map_err(|error| failed(error, Cause::DeployFailed, "flash the board"))?;
        kept?;
        Ok(DeployReport {
            method: "probe".to_owned(),
            image: image.name.clone(),
            sha256: image.sha256.clone(),
            build_id: image.build_id.clone(),
            bytes: report.bytes,
            verified: report.verified,
            read_back_sha256: report.read_back_sha256,
            skipped_sectors: report.sectors_equal,
            duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Reads what the board holds where the deployed image belongs. A chip that cannot be read has a
    /// reason that the next step tells: here it proves nothing.
    async fn read_back(&mut self) -> Option<String> {
        let payload = self.image.as_ref()?.payload.clone();
        self.off().await;
        let opened = self.backing.open(&self.sink).await;
        let unread = |error: &dyn std::error::Error| {
            tracing::warn!(error = chain(error), "the flash was not read back");
        };
        let (handle, attached) = opened.inspect_err(|error| unread(error)).ok()?;
        let read = async {
            stop(&handle).await?;
            let mut held = payload;
            for segment in &mut held.segments {
                segment.bytes = handle.read(segment.start, segment.bytes.len()).await?;
            }
            Ok::<_, ProbeError>(held.sha256())
        };
        let read = read.await;
        self.backing.cut(handle, attached, &self.sink).await;
        read.inspect_err(|error| unread(error)).ok()
    }

    async fn check(&mut self) -> Result<String, DriverError> {
        if let Some((handle, attached)) = &self.standing {
            let identified = identify(handle, is_cortex_m(attached)).await;
            return identified
                .map_err(|error| failed(error, Cause::ProbeLost, "ask the core what it is"));
        }
        let Some(live) = self.live.as_ref().filter(|_| !self.backing.ended()) else {
            return self.backing.try_out().await;
        };
        let identified = identify(&live.handle, live.cortex_m).await;
        identified.map_err(|error| failed(error, Cause::ProbeLost, "ask the core what it is"))
    }

    async fn pump(&mut self) -> Result<(), ProbeError> {
        match &self.live {
            Some(live) => self.consoles.pump(&live.handle).await,
            None => Ok(()),
        }
    }

    async fn look(&mut self) -> Result<(), ProbeError> {
        let Some(mut live) = self.live.take() else { return Ok(()) };
        let looked = self.look_at(&mut live).await;
        live.look_at = live.look_at.map(|_| Instant::now() + live.rest);
        live.rest = (live.rest * 2).min(LOOK);
        self.live = Some(live);
        looked
    }

    async fn look_at(&mut self, live: &mut Live) -> Result<(), ProbeError> {
        if live.look_at.is_none() {
            return Ok(());
        }
        // Read in front of the look, which tells whether the core was reset meanwhile.
        let open = live.cortex_m && self.open_fault.may_be_left();
        let left = open
            && match active_exception(&live.handle).await {
                Ok(number) => number == 0,
                // A core that is locked up refuses.
                Err(ProbeError::BusFault { .. }) => false,
                Err(error) => return Err(error),
            };
        let seen = look(&live.handle, live.cortex_m).await?;
        match (seen.was_reset, left) {
            (true, _) => self.open_fault.reset(),
            (false, true) => self.open_fault.left(),
            (false, false) => {}
        }
        if seen.was_reset && !self.backing.resets_are_told() {
            let reason = "the core was reset (S_RESET_ST)".to_owned();
            self.sink.event(BoardEvent::Reset { by_target: true, reason });
            self.consoles.begin_again();
        }
        if seen.locked_up && !std::mem::replace(&mut live.lock_up_told, true) {
            // An emulator that has ended over it was heard already.
            if !self.backing.ended() {
                let detail = "the core is locked up (S_LOCKUP)".to_owned();
                self.sink.event(BoardEvent::Lockup { detail });
            }
        } else if seen.halted && !seen.locked_up {
            self.halted(live).await?;
        }
        Ok(())
    }

    /// The core halted by itself: at a call of its host, a fault, or a breakpoint of its program.
    async fn halted(&mut self, live: &mut Live) -> Result<(), ProbeError> {
        if live.cortex_m && self.serve_calls(live).await? {
            return Ok(());
        }
        if !stands_at_fault(&live.handle).await? {
            tracing::warn!("the core stands at a breakpoint of its program");
            live.look_at = None;
            return Ok(());
        }
        if live.fault.is_none() {
            live.fault =
                Some(live.handle.snapshot_of_stacks(&self.backing.ram(&live.attached)).await?);
        }
        live.faults += 1;
        self.open_fault.entered(exception_name(HARD_FAULT));
        // Soon enough to see the core outside of a handler that it leaves.
        live.rest = SOON;
        if live.faults >= MOST_FAULTS && live.cortex_m {
            catch_faults(&live.handle, false).await?;
        }
        live.handle.run().await
    }

    /// Answers a program that calls its host; tells whether that is why the core stood.
    async fn serve_calls(&mut self, live: &mut Live) -> Result<bool, ProbeError> {
        match self.consoles.hosts() {
            None => return Ok(false),
            Some(true) => {}
            Some(false) => {
                live.rest = SOON;
                return Ok(true);
            }
        }
        let hosted = live.handle.semihost().await?;
        self.consoles.hosted(&hosted.text);
        live.rest = SOON;
        if let Some(code) = hosted.exit {
            live.look_at = None;
            live.ended_in =
                Some(active_exception(&live.handle).await?).filter(|&number| is_fault(number));
            self.consoles.arrived().await;
            self.consoles.empty(&live.handle).await?;
            self.sink.drained().await;
            self.sink.event(BoardEvent::TargetExit { code });
        }
        Ok(hosted.calls > 0)
    }

    /// The probe failed: say so, unless the board has ended and that was told.
    async fn lose(&mut self, error: ProbeError) {
        let Some(live) = &mut self.live else { return };
        if std::mem::replace(&mut live.gone, true) {
            return;
        }
        if self.backing.has_ended().await {
            self.consoles.end();
            return;
        }
        let cause = error.cause_during(Cause::ProbeLost);
        self.sink.event(BoardEvent::Lost { cause, detail: chain(&error) });
    }

    /// Tells whether the core may be in a fault: it executes an exception, or has taken a fault in
    /// this boot; it goes on meanwhile. A core that was followed tells for sure, which the post-mortem
    /// does.
    async fn current_fault(&mut self) -> Result<Option<FaultSighting>, DriverError> {
        if self.backing.ended() {
            return self.backing.fault_at_end().await;
        }
        let Some(live) = self.live.as_ref().filter(|live| live.cortex_m && !live.gone) else {
            return Ok(None);
        };
        if let Some(fault) = live.ended_in {
            let (name, taken) = (ended_in_handler(fault), Some(live.faults));
            return Ok(Some(FaultSighting { name, proof: FaultProof::InHandler, taken }));
        }
        let read = async {
            let number = active_exception(&live.handle).await?;
            let suspected = number != 0
                || live.faults > 0
                || shows_fault(&live.handle, kind_of(&live.attached)).await?;
            Ok((number, suspected))
        };
        let (number, suspected) = read.await.map_err(|error: ProbeError| {
            failed(error, Cause::ProbeLost, "read which exception is active")
        })?;
        let name = suspicion_name(number);
        let taken = Some(live.faults);
        Ok(suspected.then_some(FaultSighting { name, proof: FaultProof::Suspected, taken }))
    }

    /// Finds out whether the core is in a fault for good; it stands afterwards.
    async fn standing(
        &mut self,
        request: PostMortemRequest,
    ) -> Result<Option<PostMortem>, DriverError> {
        let Some(live) = self.live.as_mut().filter(|live| live.cortex_m) else { return Ok(None) };
        let caught = live.fault.take().filter(|_| live.faults == 1);
        let (kind, ram) = (kind_of(&live.attached), self.backing.ram(&live.attached));
        let hosts = self.consoles.hosts() == Some(true);
        let stopped = async {
            // It stops at the handlers by breakpoints, and would stop there twice.
            catch_faults(&live.handle, false).await?;
            let core = ProbedCore::stop(&live.handle, kind, ram, hosts).await?;
            let handlers = core.handlers().await?;
            Ok((core, handlers))
        };
        let told = |error: ProbeError| failed(error, Cause::ProbeLost, "look into the board");
        let (mut core, handlers) = stopped.await.map_err(told)?;
        let followed = blocking(move || {
            let found = standing_fault(&mut core, handlers, caught.as_ref(), &request);
            (core, found)
        });
        let (mut core, found) = followed.await?;
        self.consoles.hosted(&core.printed);
        core.release().await.map_err(told)?;
        found.map_err(told)
    }

    async fn explain(
        &mut self,
        request: PostMortemRequest,
    ) -> Result<Option<PostMortem>, DriverError> {
        let Some(live) = &mut self.live else { return Ok(None) };
        live.look_at = None;
        // A core that has ended in a handler must not go on: it would leave its own end.
        let goes_on = !live.gone && live.ended_in.is_none() && !self.backing.ended();
        if request.why == Cause::CoreFault && goes_on {
            return self.standing(request).await;
        }
        let mut since = Since::Standing;
        let (snapshot, why) = match live.fault.take() {
            Some(fault) => {
                since = if self.backing.ended() && request.why == Cause::Lockup {
                    Since::LockedUp(None)
                } else if live.gone || self.backing.ended() || !stands_where_it_failed(request.why)
                {
                    Since::Standing
                } else {
                    let now = since_fault(&live.handle).await;
                    now.map_err(|error| failed(error, Cause::ProbeLost, "look into the board"))?
                };
                (fault, Why::Fault)
            }
            None if live.gone || !stands_where_it_failed(request.why) => return Ok(None),
            None => {
                let ram = self.backing.ram(&live.attached);
                let stands = async {
                    let locked_up = live.handle.state().await? == CoreState::LockedUp;
                    live.handle.halt().await?;
                    let why = if locked_up { Why::LockUp } else { Why::Hang };
                    Ok((live.handle.snapshot_of_stacks(&ram).await?, why))
                };
                let stands = stands.await;
                stands.map_err(|error: ProbeError| {
                    failed(error, Cause::ProbeLost, "look into the board")
                })?
            }
        };
        let told = blocking(move || told(&snapshot, why, &request)).await?;
        Ok(Some(since.continue_story(told, None)))
    }
}

impl Live {
    fn new(handle: ProbeHandle, attached: Attached) -> Self {
        let cortex_m = is_cortex_m(&attached);
        let look_at = Some(Instant::now() + LOOK);
        Self {
            handle,
            attached,
            cortex_m,
            look_at,
            rest: LOOK,
            fault: None,
            faults: 0,
            lock_up_told: false,
            ended_in: None,
            gone: false,
        }
    }

    /// A new boot begins.
    fn begin(&mut self) {
        self.look_at = Some(Instant::now() + LOOK);
        self.fault = None;
        self.faults = 0;
        self.lock_up_told = false;
        self.ended_in = None;
    }
}

/// Reads an image's debug information, which takes a while and blocks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DriverError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        DriverError::new(Cause::InternalError, "explain the fault").with_source(error)
    })
}

/// Returns the kind of a Cortex-M.
fn kind_of(attached: &Attached) -> CoreKind {
    attached.core.unwrap_or(CoreKind::Armv7m)
}

/// Looks what became of a core after its fault was caught; it stands afterwards.
async fn since_fault(handle: &ProbeHandle) -> Result<Since, ProbeError> {
    if handle.state().await? == CoreState::LockedUp {
        return Ok(Since::LockedUp(None));
    }
    match handle.halt().await {
        Ok(_) => Ok(Since::of(&handle.snapshot(Vec::new()).await?)),
        // A core that does not stop, asleep or held, tells no more than was caught.
        Err(ProbeError::CoreTimeout { .. }) => Ok(Since::Standing),
        Err(error) => Err(error),
    }
}

/// Stops a core; one that does not stop is reset next, so that is no failure yet.
async fn stop(handle: &ProbeHandle) -> Result<(), ProbeError> {
    match handle.halt().await {
        Err(ProbeError::CoreTimeout { .. }) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Bytes that are looked at for a control block whose address is known: more than its head.
const BLOCK_ID: u64 = 32;

/// Clears memory as a power cut does. A probe only resets, and RAM survives a reset: what a program
/// keeps there across resets would differ from one attempt to the next.
pub(super) async fn clear(handle: &ProbeHandle, ram: Vec<Range<u64>>) -> Result<(), ProbeError> {
    for range in ram {
        let len = usize::try_from(range.end - range.start).unwrap_or(0);
        match handle.write(range.start, vec![0; len]).await {
            Err(ProbeError::BusFault { address, .. }) => {
                tracing::debug!(address, "RAM cannot be cleared");
            }
            done => done?,
        }
    }
    Ok(())
}

/// Wipes control blocks of an earlier boot: where one is known to be, else wherever one is.
async fn wipe(
    handle: &ProbeHandle,
    known: Option<u64>,
    ram: Vec<Range<u64>>,
) -> Result<(), ProbeError> {
    let places: Vec<_> = match known {
        // Nowhere, if the image loads it there.
        Some(address) => {
            let there = ram.into_iter().filter(|range| range.contains(&address));
            there.map(|_| address..address.saturating_add(BLOCK_ID)).collect()
        }
        None => ram,
    };
    match handle.rtt(move |memory| RttBlock::wipe(memory, &places)).await {
        Err(RttError::Memory(ProbeError::BusFault { address, .. })) => {
            tracing::debug!(address, "RAM cannot be looked through");
            Ok(())
        }
        Err(RttError::Memory(error)) => Err(error),
        Ok(_) | Err(RttError::Corrupted { .. } | RttError::NoChannel { .. }) => Ok(()),
    }
}
