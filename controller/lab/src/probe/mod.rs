//! Commands behind a debug probe: each opens the board's debug port, does one thing and lets go.
//! What flashes or resets a board without one is in [`parts`].
//!
//! Owns the lock of the place meanwhile, and how the core is left: as the command says, else as it
//! was. An emulated board lives as long as the command, unless another process serves it.

mod board;
mod core;
mod error;
mod flash;
mod gdb;
mod held;
mod listing;
mod local;
mod memory;
mod parts;
mod plain;
mod port;
mod registers;
mod rtt;
mod serve;
mod sink;
mod snapshot;
mod target;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jig_model::command::{
    BoardResetCommand, Command, DebugAction, DebugCommand, EventSink, FlashBy, FlashImageCommand,
    HoldCommand, ProbeAccess, Reply, ResetBy,
};
use jig_model::image::Segment;
use jig_model::profile::{Deploy, Emulation, MemoryKind, MemoryRegion};
use jig_model::protocol::SharedSink;
use jig_model::rig_file::Place;
use jig_probe::Symbols;
use jig_rig::workflow::CancelToken;
use tokio::sync::mpsc;

pub use self::error::ProbeCommandError;
pub(crate) use self::held::{BoardEnd, HeldPlace};
pub use self::listing::{ServedPlace, served_places};

use self::board::Lasting;
use self::port::{Port, PortDone, PortWish, image_of, symbols_of};
use self::target::CommandTarget;
use crate::Lab;
use crate::beside::BoundPlace;

impl Lab {
    /// Carries out a command that flashes, resets or debugs a board.
    ///
    /// # Errors
    /// It was not carried out; [`ProbeCommandError::NotBound`] where it is another command.
    pub(crate) async fn board_command(
        &self,
        command: Command,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        match command {
            Command::Flash(flash) => self.flash(flash, events, cancel).await,
            Command::Erase(erase) => self.erase(erase, events, cancel).await,
            Command::Reset(reset) => self.reset(reset, events, cancel).await,
            Command::Debug(debug) => self.debug(debug, input, events, cancel).await,
            Command::ServeProbe(serve) => self.serve_probe(serve, events, cancel).await,
            other => Err(ProbeCommandError::NotBound(other.place().clone())),
        }
    }

    /// Refuses an image for a run that a probe cannot write to the chip of a place, before the
    /// place is taken. What else may be wrong with an image is told by the run.
    pub(crate) fn check_image(
        &self,
        here: &BoundPlace,
        image: &Path,
    ) -> Result<(), ProbeCommandError> {
        if here.place.is_emulated() || here.profile.deploy_at(&here.place) != Some(Deploy::Probe) {
            return Ok(());
        }
        let target = CommandTarget {
            catalogue: &self.catalogue,
            place: Place::clone(&here.place),
            profile: Arc::clone(&here.profile),
            access: ProbeAccess::default(),
        };
        match image_of(image, &here.profile) {
            Ok((_, payload)) => target.check_flashable(&payload),
            Err(_) => Ok(()),
        }
    }

    /// Takes a place to hold its board.
    pub(crate) async fn take_place(
        &self,
        command: &HoldCommand,
        (sink, ended): (SharedSink, BoardEnd),
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<HeldPlace, ProbeCommandError> {
        let access = ProbeAccess { wait_ms: command.wait_ms, ..ProbeAccess::default() };
        let target = CommandTarget::of(&self.catalogue, &command.place, access)?;
        // An image that does not fit is found before anything is waited for.
        if let Some(image) = &command.image {
            image_of(image, &target.profile)?;
        }
        let loads =
            |emulation: &Emulation| emulation.debug.is_none() && emulation.image_set.is_none();
        if command.image.is_none() && target.profile.emulation.as_ref().is_some_and(loads) {
            return Err(ProbeCommandError::NothingToBoot(command.place.clone()));
        }
        if !target.place.is_emulated() {
            let locks = match self.switch_of(&target.place) {
                // Those that lose their power together with it are not used meanwhile.
                Ok(switch) => {
                    let wait = Duration::from_millis(command.wait_ms);
                    self.hold_switched(&switch, wait, false, events).await?
                }
                Err(_) => vec![target.lock(events, cancel).await?],
            };
            return Ok(HeldPlace::real(&target, locks, ended));
        }
        let lock = target.lock(events, cancel).await?;
        HeldPlace::start(&target, lock, sink, ended).await
    }

    /// Boots the board that this process holds, with an image if there is one. A real board without
    /// one runs on.
    pub(crate) async fn boot_held(
        &self,
        command: HoldCommand,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<(), ProbeCommandError> {
        let HoldCommand { place, image, .. } = command;
        let probe = ProbeAccess::default();
        match image {
            Some(image) => {
                let flash = FlashImageCommand { place, probe, image, by: FlashBy::Usual };
                self.flash(flash, events, cancel).await?;
            }
            None if !self.catalogue.place(&place)?.0.is_emulated() => {}
            None => {
                let by = ResetBy::Usual;
                self.reset(BoardResetCommand { place, probe, by }, events, cancel).await?;
            }
        }
        Ok(())
    }

    /// Debugs a board through its debug port.
    pub(crate) async fn debug(
        &self,
        command: DebugCommand,
        input: mpsc::Receiver<Vec<u8>>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Reply, ProbeCommandError> {
        let DebugCommand { place, probe, action } = command;
        let target = CommandTarget::of(&self.catalogue, &place, probe)?;
        // The image of a backtrace and sizes are checked before the board is touched.
        let symbols = match &action {
            DebugAction::Backtrace { image } => image.as_deref().map(symbols_of).transpose()?,
            DebugAction::ReadMemory { address, length, .. }
                if length.get() > memory::MOST || address.checked_add(length.get()).is_none() =>
            {
                return Err(ProbeCommandError::TooMuch);
            }
            DebugAction::Dump { memory, .. } if too_much(memory) => {
                return Err(ProbeCommandError::TooMuch);
            }
            DebugAction::Gdb { listen, allow_remote: false, .. } if !listen.ip().is_loopback() => {
                return Err(ProbeCommandError::Exposed(*listen));
            }
            _ => None,
        };
        let lasting = lasting(&action, &target);
        let wish = PortWish { verb: action.verb(), lasting, starts: false, stays: stays(&action) };
        let port = self.open_port(&target, wish, events, cancel).await?;
        let done = async {
            port.ready().await?;
            carry_out(&port, action, symbols, input).await
        };
        let done = done.await;
        port.close(done).await
    }
}

/// Tells whether an action lasts, so that other commands of a shared board go on beside it.
fn stays(action: &DebugAction) -> bool {
    matches!(
        action,
        DebugAction::Rtt { .. } | DebugAction::Gdb { .. } | DebugAction::Breakpoint { .. }
    )
}

/// Tells whether ranges hold more bytes than one command reads.
fn too_much(ranges: &[Range<u64>]) -> bool {
    let lengths = ranges.iter().map(|range| range.end.saturating_sub(range.start));
    lengths.fold(0, u64::saturating_add) > memory::MOST
}

/// Says what must outlive an action for it to make sense.
fn lasting(action: &DebugAction, target: &CommandTarget<'_>) -> Lasting {
    match action {
        DebugAction::ReadMemory { address, length, .. } => {
            match is_kept(*address..address.saturating_add(length.get()), target) {
                true => Lasting::Flash,
                false => Lasting::Board,
            }
        }
        DebugAction::Halt
        | DebugAction::Resume
        | DebugAction::Step { .. }
        | DebugAction::Registers { .. }
        | DebugAction::WriteMemory { .. }
        | DebugAction::Backtrace { .. }
        | DebugAction::Dump { .. } => Lasting::Board,
        DebugAction::Breakpoint { .. } | DebugAction::Rtt { .. } | DebugAction::Gdb { .. } => {
            Lasting::Flash
        }
    }
}

/// Tells whether addresses lie in a memory that an emulated board keeps between commands: its flash,
/// or the memory that its kept image is in. Other memory of a board that is booted for the command
/// tells nothing.
fn is_kept(range: Range<u64>, target: &CommandTarget<'_>) -> bool {
    let CommandTarget { catalogue, place, profile, .. } = target;
    let holds = |region: &MemoryRegion, start: u64, end: u64| {
        region.start <= start && end <= region.start.saturating_add(region.size)
    };
    let mut regions = profile.memory.iter();
    let Some(region) = regions.find(|region| holds(region, range.start, range.end)) else {
        return false;
    };
    // A file that cannot be read is reported when the board is booted from it.
    let kept = || catalogue.places().flash(&place.name).load(&profile.id).ok().flatten();
    let in_region = |kept: Segment| holds(region, kept.start, kept.start);
    region.kind == MemoryKind::Flash || kept().into_iter().flatten().any(in_region)
}

async fn carry_out(
    port: &Port,
    action: DebugAction,
    symbols: Option<Symbols>,
    input: mpsc::Receiver<Vec<u8>>,
) -> PortDone {
    match action {
        DebugAction::Halt => core::halt(port).await,
        DebugAction::Resume => core::resume(port).await,
        DebugAction::Step { count } => core::step(port, count).await,
        DebugAction::Breakpoint { at, reset, timeout_ms } => {
            core::breakpoint(port, at, reset, timeout_ms).await
        }
        DebugAction::Registers { set, read } => registers::registers(port, set, &read).await,
        DebugAction::ReadMemory { address, length, width, output } => {
            memory::read(port, address..address.saturating_add(length.get()), width, output).await
        }
        DebugAction::WriteMemory { address, bytes, width } => {
            memory::write(port, address, bytes, width).await
        }
        DebugAction::Backtrace { .. } => snapshot::backtrace(port, symbols).await,
        DebugAction::Dump { output, memory } => snapshot::dump(port, output, memory).await,
        DebugAction::Rtt { image, channel, reset, timeout_ms } => {
            let wish = rtt::RttWish { image, channel, reset, timeout_ms };
            rtt::rtt(port, wish, input).await
        }
        DebugAction::Gdb { listen, reset, .. } => gdb::gdb(port, listen, reset).await,
    }
}
