//! An emulated board that lives in this process: for the time of one command, or while it is held.

use std::sync::{Arc, Mutex, PoisonError};

use jig_drivers::qemu::{Machine, QemuFactory};
use jig_model::image::Segment;
use jig_model::profile::{BoardProfile, ConsoleKind};
use jig_model::protocol::{BindContext, NoLedger, Protocols, SharedSink};
use jig_model::{PlaceName, chain};
use jig_probe::{MemoryRange, ProbeSource, VirtualBoard};
use jig_rig::store::{FlashFile, PlaceLock};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use super::ProbeCommandError;
use super::target::CommandTarget;
use crate::BindError;

/// An emulated board that lives in this process; its flash outlives it.
pub(super) struct LocalBoard {
    pub(super) board: VirtualBoard,
    pub(super) lock: PlaceLock,
    place: PlaceName,
    profile: Arc<BoardProfile>,
    machine: Machine,
    flash: FlashFile,
    /// The owner of the emulator ends when these are dropped. Used by one task at a time; behind
    /// a lock because the drivers of a board are not shared between threads.
    protocols: Mutex<Protocols>,
    _evidence: TempDir,
}

impl LocalBoard {
    /// Launches the board as it was left: its core stands, its flash is what it was. Calls by
    /// semihosting are left to a debugger.
    pub(super) async fn start(
        target: &CommandTarget<'_>,
        lock: PlaceLock,
        sink: SharedSink,
    ) -> Result<Self, ProbeCommandError> {
        let profile = Arc::new(for_debuggers(&target.profile));
        Self::launch(target, profile, lock, sink).await
    }

    /// As [`LocalBoard::start`], but the emulator answers calls by semihosting, as in a run.
    pub(super) async fn start_whole(
        target: &CommandTarget<'_>,
        lock: PlaceLock,
        sink: SharedSink,
    ) -> Result<Self, ProbeCommandError> {
        Self::launch(target, Arc::clone(&target.profile), lock, sink).await
    }

    async fn launch(
        target: &CommandTarget<'_>,
        profile: Arc<BoardProfile>,
        lock: PlaceLock,
        sink: SharedSink,
    ) -> Result<Self, ProbeCommandError> {
        let evidence = tempfile::tempdir().map_err(ProbeCommandError::Folder)?;
        let CommandTarget { catalogue, place, .. } = target;
        let context = BindContext {
            profile: Arc::clone(&profile),
            place: Arc::new(place.clone()),
            sink,
            evidence: evidence.path().to_owned(),
            images: catalogue.images_dir(),
            ledger: Arc::new(NoLedger),
        };
        let (protocols, machine) =
            QemuFactory.bind_with_machine(context).map_err(BindError::from)?;
        let (about, launched) = (Arc::clone(&profile), machine.clone());
        let board = spawn_blocking(move || VirtualBoard::start(launched, &about)).await??;
        let flash = catalogue.places().flash(&place.name);
        let kept = flash.load(&profile.id).map_err(|error| ProbeCommandError::FlashFile {
            place: place.name.clone(),
            reading: true,
            error,
        })?;
        if let Some(kept) = kept {
            let ranges = kept.into_iter();
            let ranges =
                ranges.map(|Segment { start, bytes }| MemoryRange { start, bytes }).collect();
            set_flash(&board, ranges).await?;
        }
        Ok(Self {
            board,
            lock,
            place: place.name.clone(),
            profile,
            machine,
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
        self.flash.save(&self.lock, &self.profile.id, &segments).map_err(|error| {
            ProbeCommandError::FlashFile { place: self.place.clone(), reading: false, error }
        })
    }

    /// Takes the power, and gives it back: the core stands, the flash is what it was. Sessions with
    /// the board are over.
    pub(super) async fn cycle(&mut self) -> Result<(), ProbeCommandError> {
        self.off().await;
        let (about, machine) = (Arc::clone(&self.profile), self.machine.clone());
        let board = spawn_blocking(move || VirtualBoard::start(machine, &about)).await??;
        let before = std::mem::replace(&mut self.board, board);
        // What was written last, also by the program itself; a board that was lost early has none.
        if let Ok(image) = spawn_blocking(move || before.flash_image()).await? {
            set_flash(&self.board, image).await?;
        }
        Ok(())
    }

    /// Takes the power, and waits until nothing of the board is left; the place is given up with
    /// what is returned.
    pub(super) async fn release(mut self: Box<Self>) -> PlaceLock {
        self.off().await;
        self.lock
    }

    /// Takes the power, and waits until nothing of the board is left.
    pub(super) async fn off(&mut self) {
        let board = self.board.clone();
        let _ = spawn_blocking(move || board.power_off()).await;
        let protocols = self.protocols.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(power) = &mut protocols.power
            && let Err(error) = power.off().await
        {
            tracing::warn!(error = chain(&error), "the emulated board was not switched off");
        }
    }
}

async fn set_flash(board: &VirtualBoard, image: Vec<MemoryRange>) -> Result<(), ProbeCommandError> {
    let board = board.clone();
    Ok(spawn_blocking(move || board.set_flash_image(&image)).await??)
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
