//! Getting hold of a place for a verb: a probe of its own, one that another process serves,
//! or an emulated board that lives as long as the verb.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jig_drivers::qemu::QemuFactory;
use jig_lab::Catalogue;
use jig_model::image::Segment;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::{BindContext, NoLedger, Protocols};
use jig_model::rig_file::{Needed, Place, ProbePart};
use jig_model::{BoardId, Fault, PlaceName};
use jig_probe::{AttachOptions, ChipDescription, MemoryRange, ProbeSource, VirtualBoard};
use jig_rig::store::{FlashFile, PlaceLock, PlaceLockError, Places};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::port::Lasting;
use super::tap::Tap;
use crate::failure::{Failure, chain};
use crate::render::Screen;

/// A place that this process may use, until it is released.
pub(super) struct Held {
    bound: ProbePart,
    described: Option<ChipDescription>,
    how: How,
}

enum How {
    /// Behind a selector: a real probe, or an emulated board that another process serves.
    Selector { selector: String, _lock: Option<PlaceLock> },
    /// An emulated board of this process.
    Local(Box<LocalBoard>),
}

/// What somebody wants of a place.
pub(super) struct Wish {
    /// A probe other than the place's own.
    pub(super) selector: Option<String>,
    /// How long to wait for somebody else who has it.
    pub(super) wait: Duration,
    /// What must outlive the verb.
    pub(super) lasting: Lasting,
    /// The verb, for messages.
    pub(super) verb: String,
}

/// Gets hold of a place.
pub(super) async fn hold(
    catalogue: &Catalogue,
    screen: &Screen,
    place: &Place,
    profile: &Arc<BoardProfile>,
    wish: Wish,
) -> Result<Held, Failure> {
    let Wish { selector: wanted, wait, lasting, verb } = wish;
    let places = catalogue.places();
    let described = ChipDescription::of(profile);
    let served = |selector| Held {
        bound: ProbePart::default(),
        described: described.clone(),
        how: How::Selector { selector, _lock: None },
    };
    match (wanted, &place.probe) {
        (Some(selector), None) if place.is_emulated() => Ok(served(selector)),
        (Some(selector), None) => {
            let lock = lock(&places, &place.name, wait, screen).await?;
            let how = How::Selector { selector, _lock: Some(lock) };
            Ok(Held { bound: ProbePart::default(), described, how })
        }
        (wanted, Some(bound)) => {
            let lock = lock(&places, &place.name, wait, screen).await?;
            let selector = wanted.unwrap_or_else(|| bound.selector.clone());
            let how = How::Selector { selector, _lock: Some(lock) };
            let described = ChipDescription::at_place(profile, bound);
            Ok(Held { bound: bound.clone(), described, how })
        }
        (None, None) => {
            place.needs(Needed::Probe, profile, &verb).map_err(Failure::missing)?;
            if let Some(selector) = selector_of(&places, &place.name)? {
                return Ok(served(selector));
            }
            if lasting == Lasting::Board {
                let words = format!("{} is emulated, and nobody keeps it running", place.name);
                return Err(Failure::new(Fault::Usage, words)
                    .help(format!("in another terminal: jig probe serve -b {}", place.name)));
            }
            let lock = lock(&places, &place.name, wait, screen).await?;
            if lasting == Lasting::Nothing {
                // Also where what was kept cannot be read any more.
                let flash = places.flash(&place.name);
                flash.reset(&lock).map_err(|error| Failure::of(error.fault(), &error))?;
            }
            let board = LocalBoard::start(catalogue, place, profile, lock, Tap::new(false)).await?;
            let bound = ProbePart::default();
            Ok(Held { bound, described: None, how: How::Local(Box::new(board)) })
        }
    }
}

impl Held {
    /// Returns what a session is attached to.
    pub(super) fn source(&self) -> Result<ProbeSource, Failure> {
        match &self.how {
            How::Selector { selector, .. } => Ok(ProbeSource::Selector(selector.clone())),
            How::Local(board) => board.source(),
        }
    }

    /// Tells whether the board got its power for this verb.
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.how, How::Local(_))
    }

    /// Fills in what the place says where nobody wished otherwise.
    pub(super) fn complete(&self, options: &mut AttachOptions, profile: &BoardProfile) {
        options.speed_khz = options.speed_khz.or(self.bound.speed_khz);
        options.protocol =
            options.protocol.or(self.bound.protocol.map(|protocol| match protocol {
                jig_model::rig_file::WireProtocol::Swd => jig_probe::Protocol::Swd,
                jig_model::rig_file::WireProtocol::Jtag => jig_probe::Protocol::Jtag,
            }));
        if self.bound.under_reset {
            options.mode = jig_probe::AttachMode::UnderReset;
        }
        if options.chip.is_some() || matches!(self.how, How::Local(_)) {
            return;
        }
        match &self.described {
            Some(described) => {
                options.chip = Some(described.chip.clone());
                options.chip_description = Some(described.text.clone());
            }
            None => options.chip = self.bound.chip.clone().or_else(|| profile.chip.clone()),
        }
    }

    /// Keeps what an emulated board's flash holds, before its program may end the board.
    pub(super) async fn keep(&self) -> Result<(), Failure> {
        match &self.how {
            How::Selector { .. } => Ok(()),
            How::Local(board) => board.keep().await,
        }
    }

    /// Lets go; an emulated board of this process loses its power.
    pub(super) async fn release(self) {
        match self.how {
            How::Selector { .. } => {}
            How::Local(board) => drop(board.release().await),
        }
    }
}

/// An emulated board that lives in this process; its flash outlives it.
pub(super) struct LocalBoard {
    pub(super) board: VirtualBoard,
    pub(super) lock: PlaceLock,
    profile: BoardId,
    flash: FlashFile,
    /// The owner of the emulator ends when nobody holds these.
    protocols: Protocols,
    _evidence: TempDir,
}

impl LocalBoard {
    /// Launches the board as it was left: its core stands, its flash is what it was.
    pub(super) async fn start(
        catalogue: &Catalogue,
        place: &Place,
        profile: &Arc<BoardProfile>,
        lock: PlaceLock,
        tap: Tap,
    ) -> Result<Self, Failure> {
        let evidence = tempfile::tempdir().map_err(|error| {
            Failure::new(Fault::Lab, format!("could not make a folder for the board: {error}"))
        })?;
        let profile = &Arc::new(for_debuggers(profile));
        let context = BindContext {
            profile: Arc::clone(profile),
            place: Arc::new(place.clone()),
            sink: Arc::new(tap),
            evidence: evidence.path().to_owned(),
            images: catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        let (protocols, machine) = QemuFactory
            .bind_with_machine(context)
            .map_err(|error| Failure::of(error.cause.fault().unwrap_or(Fault::Lab), &error))?;
        let about = Arc::clone(profile);
        let board =
            blocking(move || VirtualBoard::start(machine, &about)).await?.map_err(
                |e| match &e {
                    jig_probe::VirtualBoardError::NotDescribed { .. } => {
                        Failure::of(Fault::Profile, &e)
                            .help("no debug port is emulated for it; `jig run` loads its images")
                    }
                    _ => Failure::of(Fault::Lab, &e),
                },
            )?;
        let flash = catalogue.places().flash(&place.name);
        let kept = flash.load(&profile.id).map_err(|error| {
            Failure::of(error.fault(), &error)
                .help(format!("blank it: jig erase -b {}", place.name))
        })?;
        if let Some(kept) = kept {
            let set = board.clone();
            let ranges: Vec<MemoryRange> = kept
                .into_iter()
                .map(|Segment { start, bytes }| MemoryRange { start, bytes })
                .collect();
            blocking(move || set.set_flash_image(&ranges))
                .await?
                .map_err(|error| Failure::of(Fault::Lab, &error))?;
        }
        Ok(Self { board, lock, profile: profile.id.clone(), flash, protocols, _evidence: evidence })
    }

    /// Returns what a session in this process is attached to.
    pub(super) fn source(&self) -> Result<ProbeSource, Failure> {
        self.board.source().map_err(|error| Failure::of(Fault::Profile, &error))
    }

    /// Writes down what the flash holds.
    pub(super) async fn keep(&self) -> Result<(), Failure> {
        let board = self.board.clone();
        let image = blocking(move || board.flash_image())
            .await?
            .map_err(|error| Failure::of(Fault::Lab, &error))?;
        let segments: Vec<Segment> = image
            .into_iter()
            .map(|MemoryRange { start, bytes }| Segment { start, bytes })
            .collect();
        self.flash
            .save(&self.lock, &self.profile, &segments)
            .map_err(|error| Failure::of(error.fault(), &error))
    }

    /// Takes the power, and waits until nothing of the board is left; the place is given up with
    /// what is returned.
    pub(super) async fn release(mut self: Box<Self>) -> PlaceLock {
        let board = self.board.clone();
        let _ = spawn_blocking(move || board.power_off()).await;
        if let Some(power) = &mut self.protocols.power
            && let Err(error) = power.off().await
        {
            tracing::warn!(error = chain(&error), "the emulated board was not switched off");
        }
        self.lock
    }
}

async fn blocking<T: Send + 'static>(
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(job).await.map_err(|error| Failure::of(Fault::Bug, &error))
}

/// Returns a board whose semihosting is left to whoever debugs it, as on a chip: the emulator
/// would answer the calls itself, and nobody would see them.
fn for_debuggers(profile: &BoardProfile) -> BoardProfile {
    let mut profile = profile.clone();
    profile.consoles.retain(|console| console.kind != ConsoleKind::Semihosting);
    if let Some(emulation) = &mut profile.emulation {
        emulation.semihosting = false;
    }
    profile
}

/// Takes a place for a verb.
pub(super) async fn lock(
    places: &Places,
    place: &PlaceName,
    wait: Duration,
    screen: &Screen,
) -> Result<PlaceLock, Failure> {
    jig_lab::hold(places, place, wait, screen).await.map_err(|error| {
        let held = matches!(error, PlaceLockError::Held { .. });
        let failure = Failure::from(error);
        if held { failure.help("wait for it with --wait 30s") } else { failure }
    })
}

/// Returns by which selector a place is served, if it is.
fn selector_of(places: &Places, place: &PlaceName) -> Result<Option<String>, Failure> {
    let holder = places.holder(place).map_err(|error| Failure::of(error.fault(), &error))?;
    Ok(holder.flatten().and_then(|holder| holder.selector))
}

/// Lists the places that are served: place, selector, who serves it.
pub(in crate::commands) fn served_places(
    catalogue: &Catalogue,
) -> Result<Vec<(PlaceName, String, String)>, Failure> {
    let places = catalogue.places();
    let mut served = Vec::new();
    for place in &catalogue.rig.places {
        let holder = places.holder(&place.name);
        let holder = holder.map_err(|error| Failure::of(error.fault(), &error))?.flatten();
        let Some(holder) = holder else { continue };
        if let Some(selector) = &holder.selector {
            served.push((place.name.clone(), selector.clone(), format!("pid {}", holder.pid)));
        }
    }
    Ok(served)
}

/// Chooses a socket for a served place.
pub(super) fn socket_of(places: &Places, place: &PlaceName) -> PathBuf {
    places.root().join(format!("{place}.probe"))
}
