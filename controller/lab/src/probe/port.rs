//! A board whose debug port is held for the time of one command.

use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use jig_model::command::{CommandEvent, CoreReply, EventSink, Reply};
use jig_model::debug::CoreState;
use jig_model::image::{Image, ImageSource, Payload};
use jig_model::profile::BoardProfile;
use jig_model::rig_file::Needed;
use jig_model::{BoardId, Fault, PlaceName};
use jig_probe::{
    Attached, Cancel, ChipMemoryKind, Leave, ProbeError, ProbeHandle, ResetInto, Symbols,
};
use jig_rig::workflow::CancelToken;
use tokio::sync::OwnedMutexGuard;

use super::ProbeCommandError;
use super::board::{HeldBoard, Lasting};
use super::held::{HeldPlace, ProbeSession};
use super::target::{CommandTarget, MAX_SYMBOLS, read};
use crate::Lab;

/// An attached board.
pub(super) struct Port {
    pub(super) handle: ProbeHandle,
    pub(super) attached: Attached,
    pub(super) place: PlaceName,
    pub(super) board: BoardId,
    pub(super) held: HeldBoard,
    pub(super) events: Arc<dyn EventSink>,
    pub(super) cancel: CancelToken,
    /// Keeps other commands from stopping the core of a board that is shared.
    _turn: Option<OwnedMutexGuard<()>>,
}

/// What a command wants of a debug port.
pub(super) struct PortWish<'v> {
    /// The verb, for messages.
    pub(super) verb: &'v str,
    /// What must outlive the command.
    pub(super) lasting: Lasting,
    /// Whether it starts a held board that has no power any more.
    pub(super) starts: bool,
    /// Whether it stays while other commands use the board, too.
    pub(super) stays: bool,
}

/// What a command answers, and how it leaves the core.
pub(super) type PortDone = Result<(Reply, Leave), ProbeCommandError>;

impl Lab {
    /// Opens a board's debug port. [`Port::close`] lets go of it.
    pub(super) async fn open_port(
        &self,
        target: &CommandTarget<'_>,
        wish: PortWish<'_>,
        events: Arc<dyn EventSink>,
        cancel: CancelToken,
    ) -> Result<Port, ProbeCommandError> {
        if let Some(held) = self.held_place(target) {
            return shared(held, target, &wish, events, cancel).await;
        }
        let PortWish { verb, lasting, .. } = wish;
        let held = HeldBoard::hold(target, verb, lasting, &*events, &cancel).await?;
        let options = held.options(target);
        let source = match held.source() {
            Ok(source) => source,
            Err(error) => {
                held.release().await;
                return Err(error);
            }
        };
        let (handle, attached) = match ProbeHandle::attach(source, options).await {
            Ok(both) => both,
            Err(error) => {
                held.release().await;
                return Err(self.not_attached(error, target).await);
            }
        };
        events.event(CommandEvent::Attached {
            chip: attached.chip.clone(),
            attempts: attached.attempts,
            method: attached.method,
            failures: attached.failures.clone(),
        });
        let (place, board) = (target.place.name.clone(), target.profile.id.clone());
        if held.is_fresh() {
            events.event(CommandEvent::BootedForCommand { place: place.clone() });
        }
        Ok(Port { handle, attached, place, board, held, events, cancel, _turn: None })
    }

    /// Returns the board that this process holds, if a command is about it.
    pub(super) fn held_place(&self, target: &CommandTarget<'_>) -> Option<&Arc<HeldPlace>> {
        let held = self.held.as_ref().filter(|held| *held.place() == target.place.name)?;
        target.access.selector.is_none().then_some(held)
    }

    /// Says why a board's debug port was not attached to. One without power is not the probe's
    /// fault; only then is its outlet asked, for it may take seconds to answer.
    async fn not_attached(
        &self,
        error: ProbeError,
        target: &CommandTarget<'_>,
    ) -> ProbeCommandError {
        let place = target.place.name.clone();
        if error.fault() != Fault::Lab {
            return ProbeCommandError::Probe { place, error };
        }
        match self.outlet_that_is_off(&target.place).await {
            None => ProbeCommandError::Probe { place, error },
            Some(outlet) => ProbeCommandError::Unpowered { place, outlet, error },
        }
    }
}

/// Opens the debug port of a board that this process holds.
async fn shared(
    held: &Arc<HeldPlace>,
    target: &CommandTarget<'_>,
    wish: &PortWish<'_>,
    events: Arc<dyn EventSink>,
    cancel: CancelToken,
) -> Result<Port, ProbeCommandError> {
    let (place, board) = (target.place.name.clone(), target.profile.id.clone());
    let turn = match wish.stays {
        true => None,
        false => tokio::select! {
            biased;
            turn = held.turn() => Some(turn),
            () = cancel.cancelled() => return Err(ProbeCommandError::Cancelled(place)),
        },
    };
    target.place.needs(Needed::Probe, &target.profile, &format!("`{}`", wish.verb))?;
    let session =
        if wish.starts { held.start_again(target).await } else { held.session(target).await };
    let ProbeSession { handle, attached } = session?;
    let held = HeldBoard::shared(Arc::clone(held));
    Ok(Port { handle, attached, place, board, held, events, cancel, _turn: turn })
}

impl Port {
    /// Makes a board ready that was just made: a real one takes its vectors from the flash at a
    /// reset.
    pub(super) async fn ready(&self) -> Result<(), ProbeCommandError> {
        if self.held.is_fresh() {
            self.done(self.handle.reset(ResetInto::Halt).await)?;
        }
        Ok(())
    }

    /// Lets go of the board, as the command says or as it is.
    pub(super) async fn close(self, done: PortDone) -> Result<Reply, ProbeCommandError> {
        if self.held.is_shared() {
            // The session is left open for others.
            let (reply, leave) = done?;
            let left = match leave {
                Leave::Running => self.handle.run().await,
                Leave::Halted => self.handle.halt().await.map(drop),
            };
            // A board that its program has ended meanwhile is left like this.
            return match self.done(left) {
                Err(error) if self.held.is_off().is_none() => Err(error),
                Ok(()) | Err(_) => Ok(reply),
            };
        }
        let leave = match &done {
            Ok((_, leave)) => *leave,
            Err(_) => match self.handle.state().await {
                Ok(CoreState::Halted { .. }) => Leave::Halted,
                Ok(_) | Err(_) => Leave::Running,
            },
        };
        let Self { handle, place, held, .. } = self;
        // What the command found out comes first; a board that cannot be let go comes after.
        let closed = handle.close(leave).await;
        held.release().await;
        let (reply, _) = done?;
        closed.map_err(|error| ProbeCommandError::Probe { place, error })?;
        Ok(reply)
    }

    /// Names the place in what a probe says.
    pub(super) fn done<T>(&self, done: Result<T, ProbeError>) -> Result<T, ProbeCommandError> {
        done.map_err(|error| match self.held.is_off() {
            Some(off) => off,
            None => ProbeCommandError::Probe { place: self.place.clone(), error },
        })
    }

    /// Tells the state of the core.
    pub(super) async fn state(&self) -> Result<CoreState, ProbeCommandError> {
        self.done(self.handle.state().await)
    }

    /// Answers with the state of the core.
    pub(super) async fn core(&self) -> Result<Reply, ProbeCommandError> {
        let core = self.state().await?;
        let (place, chip) = (self.place.clone(), self.attached.chip.clone());
        Ok(Reply::Core(CoreReply { place, chip, core }))
    }

    /// Returns the chip's RAM.
    pub(super) fn ram(&self) -> Vec<Range<u64>> {
        let ram = self.attached.memory.iter().filter(|region| region.kind == ChipMemoryKind::Ram);
        ram.map(|region| region.start..region.end).collect()
    }

    /// Waits for a flash operation, which the caller may cancel.
    pub(super) async fn flashing<T>(
        &self,
        work: impl Future<Output = Result<T, ProbeError>>,
        cancel: &Cancel,
    ) -> Result<T, ProbeCommandError> {
        let cancelled = async {
            self.cancel.cancelled().await;
            cancel.cancel();
            std::future::pending::<Infallible>().await
        };
        tokio::select! {
            biased;
            done = work => self.done(done),
            never = cancelled => match never {},
        }
    }
}

/// Reads an image and checks that it fits a board; returns what it loads, too.
pub(super) fn image_of(
    named: &Path,
    profile: &BoardProfile,
) -> Result<(Image, Payload), ProbeCommandError> {
    let wrong = |source| ProbeCommandError::Image { image: named.to_owned(), source };
    let source = ImageSource::of(named, Path::exists).map_err(wrong)?;
    let bytes = read(&source.path, profile.image_file_limit())?;
    let image = Image::parse_from(&source, &bytes, profile).map_err(wrong)?;
    let payload = Payload::read(image.format, &bytes).map_err(wrong)?;
    Ok((image, payload))
}

/// Reads the names and lines of an image.
pub(super) fn symbols_of(image: &Path) -> Result<Symbols, ProbeCommandError> {
    Symbols::load(&read(image, MAX_SYMBOLS)?)
        .map_err(|source| ProbeCommandError::NoNames { image: image.to_owned(), source })
}
