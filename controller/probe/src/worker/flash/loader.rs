//! probe-rs' own flash loader, run for one batch of blocks.
//!
//! Everything that writes or erases flash goes through here and [`erase`](super::erase): the
//! algorithms, the order of their calls and the buffering of pages are the library's. A run
//! cannot be stopped; its caller checks between two runs whether to go on.

use jig_model::image::Segment;
use probe_rs::Session;
use probe_rs::flashing::{
    self, DownloadOptions, FlashError, FlashLoader, ProgressEvent, ProgressOperation,
};

use super::phases::Phases;
use super::plan::Block;
use crate::worker::translate;
use crate::{FlashPhase, ProbeError};

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    pub(crate) sectors: u32,
}

/// Erases and programs a batch. `total` is how much flash all batches are.
pub(crate) fn program(
    session: &mut Session,
    batch: &[Block],
    total: u64,
    phases: &mut Phases<'_>,
) -> Result<Written, ProbeError> {
    let loader = loaded(session, batch)?;
    let share: u64 = batch.iter().map(Block::len).sum();
    let mut written = Written::default();
    // The library counts pages as it transfers them; progress is told in bytes of flash.
    let mut pages = 0;
    let mut options = DownloadOptions::new();
    options.keep_unwritten_bytes = batch.iter().any(Block::keeps_rest);
    options.progress = flashing::FlashProgress::new(|event| match event {
        ProgressEvent::AddProgressBar { operation: ProgressOperation::Program, total } => {
            pages += total.unwrap_or_default();
        }
        ProgressEvent::Started(ProgressOperation::Erase) => phases.enter(FlashPhase::Erase, total),
        ProgressEvent::Started(ProgressOperation::Program) => {
            phases.enter(FlashPhase::Program, total);
        }
        ProgressEvent::Progress { operation: ProgressOperation::Erase, size, .. } => {
            written.sectors += 1;
            phases.advance(size);
        }
        ProgressEvent::Progress { operation: ProgressOperation::Program, size, .. } => {
            let of_share = |bytes: u64| (share * bytes).checked_div(pages).unwrap_or_default();
            phases.advance(of_share(written.bytes + size) - of_share(written.bytes));
            written.bytes += size;
        }
        _ => phases.beat(),
    });
    let done = loader.commit(session, options);
    phases.leave();
    done.map(|()| written).map_err(failed)
}

/// Compares a batch with what the flash holds, by the algorithm's own function.
pub(crate) fn holds(
    session: &mut Session,
    batch: &[Block],
    phases: &mut Phases<'_>,
) -> Result<bool, ProbeError> {
    let loader = loaded(session, batch)?;
    let verified = loader.verify(session, &mut flashing::FlashProgress::new(|_| phases.beat()));
    phases.advance(batch.iter().map(Block::payload).sum());
    match verified {
        Ok(()) => Ok(true),
        Err(FlashError::Verify) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Writes a piece of RAM.
pub(crate) fn load(session: &mut Session, piece: &Segment) -> Result<(), ProbeError> {
    let mut loader = session.target().flash_loader();
    loader.add_data(piece.start, &piece.bytes).map_err(failed)?;
    loader.commit(session, DownloadOptions::new()).map_err(|error| match error {
        FlashError::Core(error) => translate::access("write", piece.start, error),
        other => failed(other),
    })
}

fn loaded(session: &Session, batch: &[Block]) -> Result<FlashLoader, ProbeError> {
    let mut loader = session.target().flash_loader();
    for piece in batch.iter().flat_map(|block| &block.pieces) {
        loader.add_data(piece.start, &piece.bytes).map_err(failed)?;
    }
    Ok(loader)
}

/// Translates what the loader says.
pub(crate) fn failed(error: FlashError) -> ProbeError {
    let what = match &error {
        FlashError::EraseFailed { sector_address, .. } => format!("erased at {sector_address:#x}"),
        FlashError::PageWrite { page_address, .. } => format!("programmed at {page_address:#x}"),
        FlashError::ChipEraseFailed { .. } => "erased".to_owned(),
        FlashError::FlashReadFailed { .. } => "read".to_owned(),
        _ => "written".to_owned(),
    };
    translate::flash(what, error)
}
