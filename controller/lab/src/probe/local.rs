//! An emulated board that lives in this process for the time of one command.

use std::sync::{Arc, Mutex, PoisonError};

use jig_drivers::qemu::QemuFactory;
use jig_model::image::Segment;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::{BindContext, NoLedger, Protocols};
use jig_model::{BoardId, PlaceName, chain};
use jig_probe::{MemoryRange, ProbeSource, VirtualBoard};
use jig_rig::store::{FlashFile, PlaceLock};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::ProbeCommandError;
use super::sink::ConsoleSink;
use super::target::CommandTarget;
use crate::BindError;

/// An emulated board that lives in this process; its flash outlives it.
pub(super) struct LocalBoard {
    pub(super) board: VirtualBoard,
    pub(super) lock: PlaceLock,
    place: PlaceName,
    profile: BoardId,
    flash: FlashFile,
    /// The owner of the emulator ends when these are dropped. Used by one task at a time; behind
    /// a lock because the drivers of a board are not shared between threads.
    protocols: Mutex<Protocols>,
    _evidence: TempDir,
}

impl LocalBoard {
    /// Launches the board as it was left: its core stands, its flash is what it was.
    pub(super) async fn start(
        target: &CommandTarget<'_>,
        lock: PlaceLock,
        sink: ConsoleSink,
    ) -> Result<Self, ProbeCommandError> {
        let evidence = tempfile::tempdir().map_err(ProbeCommandError::Folder)?;
        let CommandTarget { catalogue, place, profile, .. } = target;
        let profile = &Arc::new(for_debuggers(profile));
        let context = BindContext {
            profile: Arc::clone(profile),
            place: Arc::new(place.clone()),
            sink: Arc::new(sink),
            evidence: evidence.path().to_owned(),
            images: catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        let (protocols, machine) =
            QemuFactory.bind_with_machine(context).map_err(BindError::from)?;
        let about = Arc::clone(profile);
        let board = spawn_blocking(move || VirtualBoard::start(machine, &about)).await??;
        let flash = catalogue.places().flash(&place.name);
        let kept = flash.load(&profile.id).map_err(|error| ProbeCommandError::FlashFile {
            place: place.name.clone(),
            reading: true,
            error,
        })?;
        if let Some(kept) = kept {
            let set = board.clone();
            let ranges: Vec<MemoryRange> = kept
                .into_iter()
                .map(|Segment { start, bytes }| MemoryRange { start, bytes })
                .collect();
            spawn_blocking(move || set.set_flash_image(&ranges)).await??;
        }
        Ok(Self {
            board,
            lock,
            place: place.name.clone(),
            profile: profile.id.clone(),
            flash,
            protocols: Mutex::new(protocols),
            _evidence: evidence,
        })
    }

    /// Returns what a session in this process is attached to.
    pub(super) fn source(&self) -> Result<ProbeSource, ProbeCommandError> {
        Ok(self.board.source()?)
    }

    /// Writes down what the flash holds.
    pub(super) async fn keep(&self) -> Result<(), ProbeCommandError> {
        let board = self.board.clone();
        let image = spawn_blocking(move || board.flash_image()).await??;
        let segments: Vec<Segment> = image
            .into_iter()
            .map(|MemoryRange { start, bytes }| Segment { start, bytes })
            .collect();
        self.flash.save(&self.lock, &self.profile, &segments).map_err(|error| {
            ProbeCommandError::FlashFile { place: self.place.clone(), reading: false, error }
        })
    }

    /// Takes the power, and waits until nothing of the board is left; the place is given up with
    /// what is returned.
    pub(super) async fn release(self: Box<Self>) -> PlaceLock {
        let board = self.board.clone();
        let _ = spawn_blocking(move || board.power_off()).await;
        let mut protocols = self.protocols.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(power) = &mut protocols.power
            && let Err(error) = power.off().await
        {
            tracing::warn!(error = chain(&error), "the emulated board was not switched off");
        }
        self.lock
    }
}

/// Returns a board whose semihosting is left to the debugger, as on a chip: the emulator would
/// answer the calls itself, unseen.
fn for_debuggers(profile: &BoardProfile) -> BoardProfile {
    let mut profile = profile.clone();
    profile.consoles.retain(|console| console.kind != ConsoleKind::Semihosting);
    if let Some(emulation) = &mut profile.emulation {
        emulation.semihosting = false;
    }
    profile
}
