//! The hardware behind a board: a real probe, or an emulator with a virtual probe.

use std::ops::Range;
use std::sync::Arc;

use jig_drivers::qemu::Machine;
use jig_model::Cause;
use jig_model::event::BoardEvent;
use jig_model::post_mortem::FaultSighting;
use jig_model::profile::{BoardProfile, MemoryKind as ProfileMemory};
use jig_model::protocol::{DriverError, Power, PowerState, SharedSink};
use tokio::task::spawn_blocking;

use super::look::{identify, is_cortex_m};
use super::parked::{self, Parked};
use super::sink::EmulatorSink;
use crate::fault_watch::at_end;
use crate::{
    AttachOptions, Attached, ChipMemoryKind, CoreState, Leave, MemoryRange, ProbeError,
    ProbeHandle, ProbeSource, VirtualBoard, VirtualBoardError,
};

/// The hardware behind a board.
pub(super) enum Backing {
    Real(RealBacking),
    Emulated(Box<EmulatedBacking>),
}

/// A probe of this lab.
pub(super) struct RealBacking {
    pub(super) selector: String,
    /// Names the probe anew for each session.
    pub(super) source: Box<dyn Fn() -> ProbeSource + Send + Sync>,
    pub(super) options: AttachOptions,
    /// Where a program has its data, where the chip's description tells it worse.
    pub(super) ram: Option<Vec<Range<u64>>>,
    /// Whether another program needs the probe while the board is off.
    pub(super) lets_go: bool,
    /// Whether a program offers the probe: such a one is cut off without letting the core run.
    pub(super) is_served: bool,
}

/// An emulator with a virtual probe.
pub(super) struct EmulatedBacking {
    pub(super) machine: Machine,
    /// The emulator's own power: it waits for the end of the process.
    pub(super) power: Box<dyn Power>,
    pub(super) profile: Arc<BoardProfile>,
    pub(super) seen: Arc<EmulatorSink>,
    /// What the flash holds while there is no emulator.
    pub(super) kept: Option<Vec<MemoryRange>>,
    pub(super) board: Option<VirtualBoard>,
}

/// Makes a driver's error of a probe's.
pub(super) fn failed(error: ProbeError, tried: Cause, what: &str) -> DriverError {
    DriverError::new(error.cause_during(tried), what).with_source(error)
}

impl Backing {
    /// Opens a session with a board that has power; the core may run.
    /// The rig is told of attempts to attach that failed before one worked.
    pub(super) async fn open(
        &mut self,
        sink: &SharedSink,
    ) -> Result<(ProbeHandle, Attached), DriverError> {
        match self {
            Self::Real(backing) => backing.open(sink).await,
            Self::Emulated(backing) => {
                let (handle, attached) = backing.open().await?;
                tell_retries(&attached, sink);
                Ok((handle, attached))
            }
        }
    }

    /// Takes the power, or what comes nearest to it; the core stands.
    pub(super) async fn cut(&mut self, handle: ProbeHandle, attached: Attached, sink: &SharedSink) {
        match self {
            Self::Real(backing) => {
                backing.cut(handle, attached).await;
                sink.event(BoardEvent::Power { state: PowerState::Off });
            }
            Self::Emulated(backing) => backing.cut(Some(handle)).await,
        }
    }

    /// Keeps what was deployed for the time without power.
    pub(super) async fn keep(&mut self) -> Result<(), DriverError> {
        match self {
            Self::Real(_) => Ok(()),
            Self::Emulated(backing) => backing.keep().await,
        }
    }

    /// Asks a board that is off what its core is. The probe is free again afterwards.
    pub(super) async fn try_out(&mut self) -> Result<String, DriverError> {
        match self {
            Self::Real(backing) => backing.try_out().await,
            // Its emulator has a check of its own.
            Self::Emulated(_) => Ok("off".to_owned()),
        }
    }

    /// Tells whether there may be a program to boot; a real board is assumed to have one.
    pub(super) fn has_program(&self) -> bool {
        match self {
            Self::Real(_) => true,
            Self::Emulated(backing) => backing.kept.is_some(),
        }
    }

    /// Tells the rig that the board has power.
    pub(super) fn show_on(&self, sink: &SharedSink) {
        match self {
            Self::Real(_) => sink.event(BoardEvent::Power { state: PowerState::On }),
            Self::Emulated(backing) => backing.seen.show_on(),
        }
    }

    /// Tells whether the board has ended by itself, and the rig was told how.
    pub(super) fn ended(&self) -> bool {
        match self {
            Self::Real(_) => false,
            Self::Emulated(backing) => backing.seen.ended(),
        }
    }

    /// Finds out whether the board has ended by itself, after its probe failed.
    pub(super) async fn has_ended(&mut self) -> bool {
        let Self::Emulated(backing) = self else { return false };
        let machine = backing.machine.clone();
        // The rig is told by the emulator's owner.
        let _ = spawn_blocking(move || machine.how_it_ended()).await;
        backing.seen.ended()
    }

    /// Tells of the fault in whose handler the program has ended its emulator.
    pub(super) async fn fault_at_end(&mut self) -> Result<Option<FaultSighting>, DriverError> {
        let Self::Emulated(backing) = self else { return Ok(None) };
        let seen = backing.machine.last_exceptions().await?;
        Ok(seen.as_ref().and_then(at_end))
    }

    /// Tells whether the emulator reports resets of the target.
    pub(super) fn resets_are_told(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    /// Tells whether RAM is blank when the power comes.
    pub(super) fn forgets(&self) -> bool {
        matches!(self, Self::Emulated(_))
    }

    /// Lists where a program has its data.
    pub(super) fn ram(&self, attached: &Attached) -> Vec<Range<u64>> {
        match self {
            Self::Real(RealBacking { ram: Some(ram), .. }) => ram.clone(),
            Self::Real(_) => {
                let ram =
                    attached.memory.iter().filter(|region| region.kind == ChipMemoryKind::Ram);
                ram.map(|region| region.start..region.end).collect()
            }
            Self::Emulated(backing) => data_memory(&backing.profile),
        }
    }
}

/// Lists where a program of an emulated board has its data. Its chip description has RAM
/// where the program lives, too.
pub(super) fn data_memory(profile: &BoardProfile) -> Vec<Range<u64>> {
    let spec = profile.emulation.as_ref().and_then(|emulation| emulation.debug.as_ref());
    let program = spec.map_or(&[][..], |spec| &spec.program);
    let ram = profile.memory.iter().filter(|region| {
        region.kind == ProfileMemory::Ram
            && !program.iter().any(|other| other.start == region.start)
    });
    ram.map(|region| region.start..region.start.saturating_add(region.size)).collect()
}

/// Tells of attempts that failed, where there were any.
fn tell_retries(attached: &Attached, sink: &SharedSink) {
    if attached.attempts > 1 {
        sink.event(BoardEvent::Attached {
            attempts: attached.attempts,
            method: attached.method.words().to_owned(),
            failures: attached.failures.clone(),
        });
    }
}

impl RealBacking {
    async fn open(&self, sink: &SharedSink) -> Result<(ProbeHandle, Attached), DriverError> {
        if let Some(parked) = parked::take(&self.selector, &self.options) {
            if parked.handle.state().await.is_ok() {
                return Ok((parked.handle, parked.attached));
            }
            tracing::warn!(probe = self.selector, "the session is broken; attaching anew");
            // What is broken says no good-bye that could be waited for.
            let _ = parked.handle.close(Leave::Running).await;
        }
        let attached = ProbeHandle::attach((self.source)(), self.options.clone()).await;
        let (handle, attached) = attached
            .map_err(|error| failed(error, Cause::TargetUnresponsive, "attach to the board"))?;
        tell_retries(&attached, sink);
        Ok((handle, attached))
    }

    /// Attaches, asks, and lets go. The next run may be another process's, so the probe is not
    /// kept; a core that stood goes on standing only where that does not keep the probe.
    async fn try_out(&self) -> Result<String, DriverError> {
        let asked = |error| failed(error, Cause::ProbeLost, "ask the core what it is");
        if let Some(parked) = parked::take(&self.selector, &self.options) {
            let said = identify(&parked.handle, is_cortex_m(&parked.attached)).await;
            match said {
                Ok(said) => {
                    parked::park(parked);
                    return Ok(format!("off; {said}"));
                }
                // What is broken says no good-bye that could be waited for.
                Err(_) => drop(parked.handle.close(Leave::Running).await),
            }
        }
        let attached = ProbeHandle::attach((self.source)(), self.options.clone()).await;
        let (handle, attached) = attached
            .map_err(|error| failed(error, Cause::TargetUnresponsive, "attach to the board"))?;
        let stood = matches!(handle.state().await, Ok(CoreState::Halted { .. }));
        let said = identify(&handle, is_cortex_m(&attached)).await;
        let leave = if stood && self.is_served { Leave::Halted } else { Leave::Running };
        if let Err(error) = handle.close(leave).await {
            tracing::warn!(%error, "the probe was not let go in order");
        }
        said.map(|said| format!("off; {said}")).map_err(asked)
    }

    async fn cut(&self, handle: ProbeHandle, attached: Attached) {
        if self.lets_go {
            if let Err(error) = handle.close(Leave::Running).await {
                tracing::warn!(%error, "the probe was not let go in order");
            }
        } else {
            let (selector, options) = (self.selector.clone(), self.options.clone());
            parked::park(Parked { selector, options, handle, attached });
        }
    }
}

impl EmulatedBacking {
    async fn open(&mut self) -> Result<(ProbeHandle, Attached), DriverError> {
        self.seen.launches();
        let opened = self.launch().await;
        if opened.is_err() {
            self.cut(None).await;
        }
        opened
    }

    async fn launch(&mut self) -> Result<(ProbeHandle, Attached), DriverError> {
        let (machine, profile) = (self.machine.clone(), Arc::clone(&self.profile));
        let board = blocking(move || VirtualBoard::start(machine, &profile)).await?;
        let board = self.board.insert(board.map_err(refused)?);
        if let Some(kept) = self.kept.clone() {
            let board = board.clone();
            blocking(move || board.set_flash_image(&kept)).await?.map_err(refused)?;
        }
        let source = board.source().map_err(refused)?;
        let attached = ProbeHandle::attach(source, AttachOptions::default()).await;
        attached.map_err(|error| failed(error, Cause::EmulatorStuck, "attach to the board"))
    }

    async fn keep(&mut self) -> Result<(), DriverError> {
        let Some(board) = self.board.clone() else { return Ok(()) };
        let image = blocking(move || board.flash_image()).await?.map_err(refused)?;
        self.kept = Some(image);
        Ok(())
    }

    async fn cut(&mut self, handle: Option<ProbeHandle>) {
        if let Some(board) = self.board.take() {
            let was_kept = self.kept.is_some();
            // First the power: a session that is closed lets the core run.
            let image = blocking(move || {
                board.power_off();
                board.flash_image().ok().filter(|_| was_kept)
            });
            if let Ok(Some(image)) = image.await {
                self.kept = Some(image);
            }
        }
        if let Some(handle) = handle {
            // The board has gone, so this cannot go well; it ends the session's thread.
            let _ = handle.close(Leave::Running).await;
        }
        // The board's last owner has asked for this too, without waiting. It is waited for now, or
        // a late order would hit the next launch.
        if let Err(error) = self.power.off().await {
            tracing::warn!(%error, "the emulated board was not switched off");
        }
    }
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DriverError> {
    spawn_blocking(job).await.map_err(|error| {
        DriverError::new(Cause::InternalError, "use the emulated board").with_source(error)
    })
}

fn refused(error: VirtualBoardError) -> DriverError {
    match error {
        VirtualBoardError::Launch(error) => error,
        other => DriverError::new(Cause::EmulatorRefused, "put a probe before the emulated board")
            .with_source(other),
    }
}
