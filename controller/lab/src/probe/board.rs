//! Getting hold of a place for a command: a probe of its own, one that another process serves, a
//! board that this process holds, or an emulated board that lives as long as the command.

use std::sync::Arc;

use jig_model::PlaceName;
use jig_model::command::EventSink;
use jig_model::rig_file::{Needed, ProbePart};
use jig_probe::{AttachOptions, ChipDescription, ProbeSource, VirtualBoardError};
use jig_rig::store::{PlaceLock, Places};
use jig_rig::workflow::CancelToken;

use super::ProbeCommandError;
use super::held::HeldPlace;
use super::local::LocalBoard;
use super::sink::ConsoleSink;
use super::target::CommandTarget;

/// What must outlive a command for it to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lasting {
    /// Nothing: what is in the flash goes.
    Nothing,
    /// What is in the flash.
    Flash,
    /// The board itself: its core stands or runs on afterwards.
    Board,
}

/// A place that this process may use, until it is released.
pub(super) struct HeldBoard {
    bound: ProbePart,
    described: Option<ChipDescription>,
    how: How,
}

enum How {
    /// Behind a selector: a real probe, or an emulated board that another process serves.
    Selector { selector: String, _lock: Option<PlaceLock> },
    /// An emulated board of this process.
    Local(Box<LocalBoard>),
    /// A board that this process holds for several commands.
    Shared(Arc<HeldPlace>),
}

impl HeldBoard {
    /// Uses a board that this process holds.
    pub(super) fn shared(held: Arc<HeldPlace>) -> Self {
        Self { bound: ProbePart::default(), described: None, how: How::Shared(held) }
    }

    /// Gets hold of the board of a place.
    pub(super) async fn hold(
        target: &CommandTarget<'_>,
        verb: &str,
        lasting: Lasting,
        events: &dyn EventSink,
        cancel: &CancelToken,
    ) -> Result<Self, ProbeCommandError> {
        let CommandTarget { place, profile, access, .. } = target;
        let places = target.catalogue.places();
        let described = ChipDescription::of(profile);
        let served = |selector| Self {
            bound: ProbePart::default(),
            described: described.clone(),
            how: How::Selector { selector, _lock: None },
        };
        match (access.selector.clone(), &place.probe) {
            (Some(selector), None) if place.is_emulated() => Ok(served(selector)),
            (Some(selector), None) => {
                let lock = target.lock(events, cancel).await?;
                let how = How::Selector { selector, _lock: Some(lock) };
                Ok(Self { bound: ProbePart::default(), described, how })
            }
            (wanted, Some(bound)) => {
                let lock = target.lock(events, cancel).await?;
                let selector = wanted.unwrap_or_else(|| bound.selector.clone());
                let how = How::Selector { selector, _lock: Some(lock) };
                let described = ChipDescription::at_place(profile, bound);
                Ok(Self { bound: bound.clone(), described, how })
            }
            (None, None) => {
                place.needs(Needed::Probe, profile, &format!("`{verb}`"))?;
                if let Some(selector) = selector_of(&places, &place.name)? {
                    return Ok(served(selector));
                }
                if profile.emulation.as_ref().is_none_or(|emulation| emulation.debug.is_none()) {
                    let board = profile.id.to_string();
                    return Err(VirtualBoardError::NotDescribed { board }.into());
                }
                if lasting == Lasting::Board {
                    return Err(ProbeCommandError::NotKept {
                        verb: verb.to_owned(),
                        place: place.name.clone(),
                    });
                }
                let lock = target.lock(events, cancel).await?;
                if lasting == Lasting::Nothing {
                    // Also where what was kept cannot be read any more.
                    places.flash(&place.name).reset(&lock).map_err(|error| {
                        let (place, reading) = (place.name.clone(), false);
                        ProbeCommandError::FlashFile { place, reading, error }
                    })?;
                }
                let sink = Arc::new(ConsoleSink::new(None));
                let board = LocalBoard::start(target, lock, sink).await?;
                let bound = ProbePart::default();
                Ok(Self { bound, described: None, how: How::Local(Box::new(board)) })
            }
        }
    }

    /// Returns what a session is attached to.
    pub(super) fn source(&self) -> Result<ProbeSource, ProbeCommandError> {
        match &self.how {
            How::Selector { selector, .. } => Ok(ProbeSource::Selector(selector.clone())),
            How::Local(board) => board.source(),
            // Its session is open.
            How::Shared(held) => Err(ProbeCommandError::NotBound(held.place().clone())),
        }
    }

    /// Tells whether the board got its power for this command, and stands since.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.how, How::Local(_))
    }

    /// Returns how to attach: as the caller says, else as the place does.
    pub(super) fn options(&self, target: &CommandTarget<'_>) -> AttachOptions {
        // A board of this process tells its own chip.
        if self.is_fresh() {
            let chip = target.access.chip.clone();
            return AttachOptions { chip, ..target.options(&self.bound, None) };
        }
        target.options(&self.bound, self.described.as_ref())
    }

    /// Tells whether other commands use the board at the same time.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.how, How::Shared(_))
    }

    /// Says that a shared board has no power any more, if so.
    pub(super) fn is_off(&self) -> Option<ProbeCommandError> {
        match &self.how {
            How::Shared(held) => held.is_off(),
            How::Selector { .. } | How::Local(_) => None,
        }
    }

    /// Keeps what an emulated board's flash holds, before its program may end the board.
    pub(super) async fn keep(&self) -> Result<(), ProbeCommandError> {
        match &self.how {
            How::Selector { .. } => Ok(()),
            How::Local(board) => board.keep().await,
            How::Shared(held) => held.keep().await,
        }
    }

    /// Lets go; an emulated board of this process loses its power.
    pub(super) async fn release(self) {
        match self.how {
            How::Selector { .. } | How::Shared(_) => {}
            How::Local(board) => drop(board.release().await),
        }
    }
}

/// Returns by which selector a place is served, if it is.
fn selector_of(places: &Places, place: &PlaceName) -> Result<Option<String>, ProbeCommandError> {
    Ok(places.holder(place)?.flatten().and_then(|holder| holder.selector))
}
