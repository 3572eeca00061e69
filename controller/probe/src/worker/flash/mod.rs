//! Brings a chip's memory to hold a payload: compare, erase, program, load, verify.
//!
//! # Design
//! *probe-rs' own loader erases and programs*, on every probe. What is here decides what it is
//! given: only blocks that hold something else, in batches, because a run of the loader cannot
//! be stopped. A request to stop is heeded between two batches, where no block is half done.
//!
//! *Where an algorithm compares or reads by itself it is asked*, by the library's verify; its
//! flash may not be in the address space. All other flash, and RAM, is read by the debug port,
//! as the library's verify would: so a difference has an address, and the hash in the report is
//! that of bytes that were read.

mod cancel;
mod erase;
mod loader;
mod memory_map;
mod phases;
mod plan;
#[cfg(test)]
mod tests;

use jig_model::image::Segment;
use probe_rs::{Core, MemoryInterface};
use sha2::{Digest, Sha256};

pub use self::cancel::Cancel;
pub(crate) use self::cancel::{FlashStop, Interest};
pub(crate) use self::erase::erase;
use self::loader::Written;
pub(crate) use self::memory_map::algorithm;
use self::memory_map::{AreaKind, FlashMap};
use self::phases::Phases;
pub(crate) use self::phases::ProgressSink;
use self::plan::{Block, FlashPlan, batches, plan};
use super::attach::{built_in, target_named};
use super::open_session::{OpenSession, WorkerPulse};
use super::translate;
use crate::{FlashLeft, FlashPhase, FlashReport, FlashRequest, Payload, ProbeError, ResetInto};

/// How much is read between two reports of progress.
const STEP: usize = 4 * 1024;

/// Checks that a payload can be written to a chip, as far as the built-in description of the chip
/// tells; without a look at any hardware.
///
/// # Errors
/// The chip is not known, has no memory there, or no flash algorithm for it.
pub fn check_flashable(chip: &str, payload: &Payload) -> Result<(), ProbeError> {
    let target = target_named(built_in(), chip)?;
    plan(payload, &[], &FlashMap::of(&target)).map(drop)
}

/// Flashes.
pub(crate) fn flash(
    open_session: &mut OpenSession,
    request: &FlashRequest,
    sink: ProgressSink,
    stop: &FlashStop,
    pulse: &WorkerPulse,
) -> Result<FlashReport, ProbeError> {
    let memory = FlashMap::of(open_session.session().target());
    let FlashPlan { flash, ram } = plan(&request.payload, &request.preserve, &memory)?;
    let phases = Phases::new(sink, stop, pulse, memory.slowest());
    let mut work = Work { open_session, memory: &memory, phases };
    let (equal, mut changed) =
        if request.skip_equal { work.compare(flash)? } else { (Vec::new(), flash) };
    work.read_kept(&mut changed)?;
    let mut written = work.program(&changed)?;
    if request.verify {
        // Algorithms take the place of what is loaded into RAM, so they come before it.
        work.ask_algorithms(&request.payload, &[equal.as_slice(), &changed].concat())?;
    }
    written.bytes += work.load(&ram)?;
    work.phases.check_stop()?;
    let read_back = if request.verify { Some(work.verify(&request.payload)?) } else { None };
    Ok(FlashReport {
        bytes: request.payload.len(),
        written: written.bytes,
        sectors_erased: written.sectors,
        sectors_equal: equal.iter().map(|block| block.sectors).sum(),
        verified: request.verify,
        read_back_sha256: read_back,
        phases: work.phases.durations(),
    })
}

/// One flash operation under way.
struct Work<'a> {
    open_session: &'a mut OpenSession,
    memory: &'a FlashMap,
    phases: Phases<'a>,
}

impl Work<'_> {
    /// Separates the blocks that hold their payload already from the others.
    fn compare(&mut self, blocks: Vec<Block>) -> Result<(Vec<Block>, Vec<Block>), ProbeError> {
        if blocks.is_empty() {
            return Ok((blocks, Vec::new()));
        }
        self.phases.enter(FlashPhase::Compare, blocks.iter().map(Block::payload).sum());
        let mut equal = Vec::with_capacity(blocks.len());
        for batch in batches(&blocks) {
            self.phases.check_stop()?;
            match batch {
                [first, ..] if first.checks_itself => {
                    let holds =
                        loader::holds(self.open_session.session(), batch, &mut self.phases)?;
                    equal.resize(equal.len() + batch.len(), holds);
                }
                _ => self.compare_by_reading(batch, &mut equal)?,
            }
        }
        self.phases.leave();
        let mut equal = equal.into_iter();
        Ok(blocks.into_iter().partition(|_| equal.next().unwrap_or(false)))
    }

    fn compare_by_reading(
        &mut self,
        batch: &[Block],
        equal: &mut Vec<bool>,
    ) -> Result<(), ProbeError> {
        let Some(first) = batch.first() else { return Ok(()) };
        let mut core = reach(self.open_session, first.core)?;
        for block in batch {
            let phases = &mut self.phases;
            let end = phases.done() + block.payload();
            let mut holds = |piece: &Segment| same(&mut core, piece.start, &piece.bytes, phases);
            equal.push(match block.pieces.iter().try_for_each(&mut holds) {
                Ok(()) => true,
                // Erased flash of some chips cannot be read.
                Err(ProbeError::VerifyFailed { .. } | ProbeError::BusFault { .. }) => false,
                Err(error) => return Err(error),
            });
            phases.advance(end - phases.done());
        }
        Ok(())
    }

    /// Adds what is to be kept to what blocks shall hold, where it can be read.
    fn read_kept(&mut self, blocks: &mut [Block]) -> Result<(), ProbeError> {
        for block in blocks.iter_mut().filter(|block| !block.checks_itself) {
            for range in std::mem::take(&mut block.kept) {
                self.phases.check_stop()?;
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                let mut bytes = vec![0; len];
                read_at(&mut reach(self.open_session, block.core)?, range.start, &mut bytes)?;
                self.phases.beat();
                block.pieces.push(Segment { start: range.start, bytes });
            }
        }
        Ok(())
    }

    /// Erases and programs blocks.
    fn program(&mut self, blocks: &[Block]) -> Result<Written, ProbeError> {
        let total = blocks.iter().map(Block::len).sum();
        let mut all = Written::default();
        for batch in batches(blocks) {
            self.phases.check_stop()?;
            self.phases.left = FlashLeft::Partial;
            let written =
                loader::program(self.open_session.session(), batch, total, &mut self.phases)?;
            all.bytes += written.bytes;
            all.sectors += written.sectors;
        }
        if !blocks.is_empty() {
            self.phases.left = FlashLeft::Unverified;
        }
        Ok(all)
    }

    /// Writes what belongs in RAM. The core is halted for it: what it executes may be there.
    fn load(&mut self, ram: &[Segment]) -> Result<u64, ProbeError> {
        if ram.is_empty() {
            return Ok(0);
        }
        self.phases.check_stop()?;
        let total = ram.iter().map(|piece| piece.bytes.len() as u64).sum();
        self.phases.enter(FlashPhase::Load, total);
        match self.open_session.halt() {
            // A core that is locked up cannot be halted, only reset.
            Err(ProbeError::CoreTimeout { .. }) => self.open_session.reset(ResetInto::Halt)?,
            halted => drop(halted?),
        }
        for piece in ram {
            self.phases.check_stop()?;
            self.phases.left = FlashLeft::Partial;
            loader::load(self.open_session.session(), piece)?;
            self.phases.advance(piece.bytes.len() as u64);
        }
        self.phases.left = FlashLeft::Unverified;
        self.phases.leave();
        Ok(total)
    }

    /// Lets algorithms that look into their flash compare the blocks that are theirs.
    fn ask_algorithms(&mut self, payload: &Payload, blocks: &[Block]) -> Result<(), ProbeError> {
        let theirs = |batch: &&[Block]| batch.iter().any(|block| block.checks_itself);
        for batch in batches(blocks).into_iter().filter(theirs) {
            self.phases.check_stop()?;
            self.phases.enter(FlashPhase::Verify, payload.len());
            if !loader::holds(self.open_session.session(), batch, &mut self.phases)? {
                return Err(self.differs(batch));
            }
        }
        self.phases.leave();
        Ok(())
    }

    /// Compares with the payload what no algorithm has compared, and returns the hash of what
    /// the chip holds.
    fn verify(&mut self, payload: &Payload) -> Result<String, ProbeError> {
        self.phases.enter(FlashPhase::Verify, payload.len());
        let mut hash = Sha256::new();
        for segment in &payload.segments {
            let (mut here, mut rest) = (segment.start, segment.bytes.as_slice());
            while !rest.is_empty() {
                let area = self.memory.area_at(here);
                let left = area.map_or(u64::MAX, |area| area.range.end - here);
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let (expected, behind) = rest.split_at(count);
                let checked = area.is_some_and(
                    |area| matches!(&area.kind, AreaKind::Flash(flash) if flash.checks_itself),
                );
                if !checked {
                    let mut core = reach(self.open_session, area.map_or(0, |area| area.core))?;
                    same(&mut core, here, expected, &mut self.phases)?;
                }
                hash.update(expected);
                here += count as u64;
                rest = behind;
            }
        }
        self.phases.leave();
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Finds the block that the algorithm says is different; it names no address itself.
    fn differs(&mut self, batch: &[Block]) -> ProbeError {
        for block in batch.chunks(1) {
            match loader::holds(self.open_session.session(), block, &mut self.phases) {
                Ok(true) => {}
                Ok(false) => return unlike(block),
                Err(error) => return error,
            }
        }
        unlike(batch)
    }
}

/// Says that the flash of some blocks does not hold the payload.
fn unlike(blocks: &[Block]) -> ProbeError {
    let start = blocks.first().map_or(0, |block| block.range.start);
    let end = blocks.last().map_or(start, |block| block.range.end);
    let what = format!("verified at {start:#x}..{end:#x}");
    translate::flash(what, probe_rs::flashing::FlashError::Verify)
}

fn reach(open_session: &mut OpenSession, core: usize) -> Result<Core<'_>, ProbeError> {
    let core = open_session.session().core(core);
    core.map_err(|error| translate::failed("reaching the core", error))
}

fn read_at(core: &mut Core<'_>, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
    let read = core.read(address, bytes);
    read.map_err(|error| translate::access("read", address, error))
}

/// Reads memory and compares it.
fn same(
    core: &mut Core<'_>,
    start: u64,
    expected: &[u8],
    phases: &mut Phases<'_>,
) -> Result<(), ProbeError> {
    let mut here = start;
    for expected in expected.chunks(STEP) {
        phases.check_stop()?;
        let mut found = vec![0; expected.len()];
        read_at(core, here, &mut found)?;
        let mut both = expected.iter().zip(&found).zip(here..);
        if let Some(((expected, found), address)) = both.find(|((one, other), _)| one != other) {
            let (expected, found) = (*expected, *found);
            return Err(ProbeError::VerifyFailed { address, expected, found });
        }
        here += found.len() as u64;
        phases.advance(found.len() as u64);
    }
    Ok(())
}
