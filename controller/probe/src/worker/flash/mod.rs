//! Brings a chip's memory to hold a payload: compare, erase, program, load, verify.
//!
//! Only sectors that hold something else are touched. Requests to stop are heeded between
//! phases and between sectors.

mod algorithm;
mod call_queue;
mod cancel;
mod phases;
mod plan;
mod survey;

use std::ops::Range;
use std::time::Instant;

use probe_rs::MemoryInterface;
use sha2::{Digest, Sha256};

use self::algorithm::{Loaded, Purpose};
#[cfg(test)]
pub(crate) use self::call_queue::DISPATCHER;
pub use self::cancel::Cancel;
pub(crate) use self::cancel::{Interest, Stop};
use self::phases::Phases;
use self::plan::{Block, Plan, plan};
use self::survey::{Survey, survey};
use super::bench::{Bench, Pulse};
use super::core::CHUNK;
use super::handle::MemoryWidth;
use super::translate;
use crate::{
    EraseReport, EraseScope, FlashPhase, FlashProgress, FlashReport, FlashRequest, Payload,
    ProbeError, ResetInto,
};

/// Takes what is told about a flash operation's progress.
pub(crate) type Sink = Box<dyn FnMut(FlashProgress) + Send>;

/// How much is read between two reports of progress.
const STEP: usize = 4 * 1024;

/// By what means blocks are erased and programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// The best that chip and algorithm allow; it may be one of the others.
    Best,
    /// By an algorithm whose functions are called by halting.
    Halting,
    /// By probe-rs' own loader.
    Loader,
}

/// Flashes.
pub(crate) fn flash(
    bench: &mut Bench,
    request: &FlashRequest,
    means: Means,
    sink: Sink,
    stop: &Stop,
    pulse: &Pulse,
) -> Result<FlashReport, ProbeError> {
    let survey = survey(bench.session().target())?;
    let payload = &request.payload;
    let plan = plan(payload, &request.preserve, &survey.areas, &survey.geometries, &survey.chip)?;
    let phases = Phases::new(sink, pulse);
    let mut work = Work { bench, survey: &survey, means, stop, pulse, phases };
    let sectors = |blocks: &[Block]| blocks.iter().map(|block| block.sectors.len()).sum::<usize>();
    let all: usize = plan.flash.values().map(|blocks| sectors(blocks)).sum();

    let Plan { mut flash, ram } = plan;
    let keeps = flash.values().flatten().any(|block| !block.kept.is_empty());
    if request.skip_equal || keeps {
        work.compare(&mut flash, request.skip_equal)?;
    }
    let changed: usize = flash.values().map(|blocks| sectors(blocks)).sum();
    let mut written = 0;
    for (algorithm, blocks) in &flash {
        if !blocks.is_empty() {
            written += work.erase_and_program(*algorithm, blocks)?;
        }
    }
    if !ram.is_empty() {
        written += work.load(&ram)?;
    }
    work.check_stop()?;
    let read_back = if request.verify { Some(work.verify(payload)?) } else { None };
    Ok(FlashReport {
        bytes: payload.len(),
        written,
        sectors_erased: count(changed),
        sectors_equal: count(all - changed),
        verified: request.verify,
        read_back_sha256: read_back,
        phases: work.phases.durations(),
    })
}

/// Erases.
pub(crate) fn erase(
    bench: &mut Bench,
    scope: &EraseScope,
    stop: &Stop,
    pulse: &Pulse,
) -> Result<EraseReport, ProbeError> {
    let started = Instant::now();
    let survey = survey(bench.session().target())?;
    let wanted = |range: &Range<u64>| match scope {
        EraseScope::All => Some(range.clone()),
        EraseScope::Range(part) => {
            let both = range.start.max(part.start)..range.end.min(part.end);
            (both.start < both.end).then_some(both)
        }
    };
    let mut jobs: Vec<(usize, Vec<Range<u64>>)> = Vec::new();
    for (algorithm, area) in survey.flashes() {
        let Some(geometry) = survey.geometries.get(algorithm) else { continue };
        let Some(range) = wanted(area) else { continue };
        let mut sectors = geometry.sectors_in(&range);
        match jobs.iter_mut().find(|job| job.0 == algorithm) {
            Some(job) => job.1.append(&mut sectors),
            None => jobs.push((algorithm, sectors)),
        }
    }
    if jobs.iter().all(|job| job.1.is_empty()) {
        let range = match scope {
            EraseScope::All => 0..0,
            EraseScope::Range(range) => range.clone(),
        };
        return Err(ProbeError::DoesNotFit {
            start: range.start,
            end: range.end,
            chip: survey.chip.clone(),
            memory: plan::in_words(&survey.areas),
        });
    }
    let mut bytes = 0;
    for (number, sectors) in &jobs {
        let mut loaded = Loaded::load(bench.session(), survey.runner(*number)?, pulse)?;
        loaded.init(Purpose::Erase)?;
        let at_once = *scope == EraseScope::All && loaded.can_erase_all();
        let mut stopped = stop.is_wanted();
        if at_once && !stopped {
            loaded.erase_all()?;
            bytes += sectors.iter().map(|sector| sector.end - sector.start).sum::<u64>();
        }
        if !at_once {
            stopped = !loaded.erase_sectors(sectors, &mut |erased| {
                bytes += erased;
                pulse.beat();
                !stop.is_wanted()
            })?;
        }
        loaded.uninit(Purpose::Erase)?;
        if stopped {
            return Err(ProbeError::Cancelled);
        }
    }
    Ok(EraseReport { bytes, took: started.elapsed() })
}

/// Loads a payload into RAM and starts it.
pub(crate) fn boot_ram(bench: &mut Bench, payload: &Payload) -> Result<(), ProbeError> {
    let survey = survey(bench.session().target())?;
    for segment in &payload.segments {
        let end = segment.start.saturating_add(segment.bytes.len() as u64);
        if !survey.is_ram(&(segment.start..end)) {
            return Err(ProbeError::DoesNotFit {
                start: segment.start,
                end,
                chip: survey.chip.clone(),
                memory: plan::in_words(&survey.areas),
            });
        }
    }
    let vectors = payload.segments.first().map_or(0, |segment| segment.start);
    bench.reset(ResetInto::Halt)?;
    let pulse = Pulse::new();
    for segment in &payload.segments {
        bench.write(MemoryWidth::Any, segment.start, &segment.bytes, &pulse)?;
        let read = bench.read(MemoryWidth::Any, segment.start, segment.bytes.len(), &pulse)?;
        same(segment.start, &segment.bytes, &read)?;
    }
    bench
        .session()
        .prepare_running_on_ram(vectors, 0)
        .map_err(|error| translate::failed("preparing to run from RAM", error))?;
    bench.run()
}

/// One flash operation under way.
struct Work<'a> {
    bench: &'a mut Bench,
    survey: &'a Survey,
    means: Means,
    stop: &'a Stop,
    pulse: &'a Pulse,
    phases: Phases<'a>,
}

/// Blocks by the number of their algorithm.
type Blocks = std::collections::BTreeMap<usize, Vec<Block>>;

impl Work<'_> {
    fn check_stop(&self) -> Result<(), ProbeError> {
        if self.stop.is_wanted() { Err(ProbeError::Cancelled) } else { Ok(()) }
    }

    /// Reads what blocks hold: fills in what is kept, and drops those that hold their payload
    /// already, if they may be dropped.
    fn compare(&mut self, flash: &mut Blocks, skip_equal: bool) -> Result<(), ProbeError> {
        self.check_stop()?;
        let total = flash.values().flatten().map(|block| block.span().len() as u64).sum();
        self.phases.begin(FlashPhase::Compare, total);
        for (number, blocks) in flash.iter_mut() {
            let mut different = Vec::with_capacity(blocks.len());
            let (stop, phases) = (self.stop, &mut self.phases);
            let mut examine = |block: &mut Block, read: &mut ReadMemory<'_>| {
                if stop.is_wanted() {
                    return Err(ProbeError::Cancelled);
                }
                let equal = examine(block, read, phases)?;
                different.push(!(equal && skip_equal));
                Ok(())
            };
            let runner = self.survey.runner(*number)?;
            if runner.algorithm.pc_read.is_some() {
                let mut loaded = Loaded::load(self.bench.session(), runner, self.pulse)?;
                loaded.init(Purpose::Verify)?;
                for block in blocks.iter_mut() {
                    examine(block, &mut |at, bytes| loaded.read(at, bytes))?;
                }
                loaded.uninit(Purpose::Verify)?;
            } else {
                let mut core = self.bench.core()?;
                for block in blocks.iter_mut() {
                    examine(block, &mut |at, bytes| {
                        let read = core.read(at, bytes);
                        read.map_err(|error| translate::access("read", at, error))
                    })?;
                }
            }
            let mut different = different.into_iter();
            blocks.retain(|_| different.next().unwrap_or(true));
        }
        self.phases.end();
        Ok(())
    }

    /// Erases blocks, then programs them. Returns how many bytes were programmed.
    fn erase_and_program(&mut self, number: usize, blocks: &[Block]) -> Result<u64, ProbeError> {
        self.check_stop()?;
        let mut runner = self.survey.runner(number)?;
        let algorithm = runner.algorithm;
        if self.means == Means::Halting {
            runner.room = 0..0;
        }
        if self.means == Means::Loader || !Survey::takes_plain_pages(algorithm) {
            return self.hand_over(blocks);
        }
        let mut loaded = Loaded::load(self.bench.session(), runner, self.pulse)?;

        let sectors = || blocks.iter().flat_map(|block| &block.sectors);
        self.phases.begin(FlashPhase::Erase, sectors().map(|one| one.end - one.start).sum());
        loaded.init(Purpose::Erase)?;
        let (stop, phases) = (self.stop, &mut self.phases);
        let all: Vec<Range<u64>> = sectors().cloned().collect();
        let mut stopped = !loaded.erase_sectors(&all, &mut |erased| {
            phases.advance(erased);
            !stop.is_wanted()
        })?;
        loaded.uninit(Purpose::Erase)?;
        self.phases.end();
        if stopped || self.stop.is_wanted() {
            return Err(ProbeError::Cancelled);
        }

        let page = algorithm.flash_properties.page_size as usize;
        let erased = algorithm.flash_properties.erased_byte_value;
        let pages = |block: &Block| -> u64 {
            block.pages(page, erased).map(|(_, bytes)| bytes.len() as u64).sum()
        };
        self.phases.begin(FlashPhase::Program, blocks.iter().map(pages).sum());
        loaded.init(Purpose::Program)?;
        let mut written = 0;
        for block in blocks {
            stopped = self.stop.is_wanted();
            if stopped {
                break;
            }
            let pages: Vec<(u64, &[u8])> = block.pages(page, erased).collect();
            let phases = &mut self.phases;
            loaded.program_pages(&pages, &mut |bytes| {
                written += bytes;
                phases.advance(bytes);
            })?;
        }
        loaded.uninit(Purpose::Program)?;
        self.phases.end();
        if stopped { Err(ProbeError::Cancelled) } else { Ok(written) }
    }

    /// Lets probe-rs' own loader do the work, where the algorithm wants pages in an encoding
    /// that only probe-rs makes. It cannot be stopped, and erases and programs as one.
    fn hand_over(&mut self, blocks: &[Block]) -> Result<u64, ProbeError> {
        let failed = |error| translate::flash("programmed".to_owned(), error);
        let mut loader = self.bench.session().target().flash_loader();
        let mut written = 0;
        for block in blocks {
            for range in block.payload.iter().chain(&block.kept) {
                let bytes = block.image.get(range.clone()).unwrap_or_default();
                loader.add_data(block.start + range.start as u64, bytes).map_err(failed)?;
                written += bytes.len() as u64;
            }
        }
        self.phases.begin(FlashPhase::Program, written);
        let mut options = probe_rs::flashing::DownloadOptions::new();
        let pulse = self.pulse;
        options.progress = probe_rs::flashing::FlashProgress::new(move |_| pulse.beat());
        loader.commit(self.bench.session(), options).map_err(failed)?;
        self.phases.advance(written);
        self.phases.end();
        Ok(written)
    }

    /// Writes what belongs in RAM. The core is halted for it: what it executes may be there.
    fn load(&mut self, ram: &[(u64, Vec<u8>)]) -> Result<u64, ProbeError> {
        self.check_stop()?;
        let total = ram.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        self.phases.begin(FlashPhase::Load, total);
        match self.bench.halt() {
            // A core that is locked up cannot be halted, only reset.
            Err(ProbeError::CoreTimeout { .. }) => self.bench.reset(ResetInto::Halt)?,
            halted => drop(halted?),
        }
        for (start, bytes) in ram {
            let mut here = *start;
            for chunk in bytes.chunks(STEP) {
                self.check_stop()?;
                self.bench.write(MemoryWidth::Any, here, chunk, self.pulse)?;
                here += chunk.len() as u64;
                self.phases.advance(chunk.len() as u64);
            }
        }
        self.phases.end();
        Ok(total)
    }

    /// Reads all of the payload back, compares it, and returns the hash of what was read.
    fn verify(&mut self, payload: &Payload) -> Result<String, ProbeError> {
        self.phases.begin(FlashPhase::Verify, payload.len());
        let mut hash = Sha256::new();
        for segment in &payload.segments {
            let mut here = segment.start;
            let mut rest = segment.bytes.as_slice();
            while !rest.is_empty() {
                self.check_stop()?;
                let count = self.survey.same_memory(here, rest.len());
                let (expected, behind) = rest.split_at(count);
                let mut read = vec![0; count];
                self.read_back(here, &mut read)?;
                same(here, expected, &read)?;
                hash.update(&read);
                here += count as u64;
                rest = behind;
            }
        }
        self.phases.end();
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Reads memory that lies in one region.
    fn read_back(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ProbeError> {
        let served = self.survey.flash_at(address).map(|number| self.survey.runner(number));
        if let Some(runner) = served.transpose()?
            && runner.algorithm.pc_read.is_some()
        {
            let mut loaded = Loaded::load(self.bench.session(), runner, self.pulse)?;
            loaded.init(Purpose::Verify)?;
            let mut here = address;
            for part in bytes.chunks_mut(STEP) {
                loaded.read(here, part)?;
                here += part.len() as u64;
                self.phases.advance(part.len() as u64);
            }
            return loaded.uninit(Purpose::Verify);
        }
        let mut core = self.bench.core()?;
        let mut here = address;
        for part in bytes.chunks_mut(STEP) {
            core.read(here, part).map_err(|error| translate::access("read", here, error))?;
            here += part.len() as u64;
            self.phases.advance(part.len() as u64);
        }
        Ok(())
    }
}

/// Reads memory.
type ReadMemory<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), ProbeError> + 'a;

/// Reads a block, as far as needed to know whether it holds its payload, and takes over what
/// is kept.
fn examine(
    block: &mut Block,
    read: &mut ReadMemory<'_>,
    phases: &mut Phases<'_>,
) -> Result<bool, ProbeError> {
    let span = block.span();
    let mut equal = true;
    let mut offset = span.start;
    while offset < span.end {
        let mut bytes = vec![0; STEP.min(span.end - offset)];
        match read(block.start + offset as u64, &mut bytes) {
            Ok(()) => equal = equal && block.holds(offset, &bytes),
            // Erased flash of some chips cannot be read. It does not hold the payload.
            Err(ProbeError::BusFault { .. }) if block.kept.is_empty() => equal = false,
            Err(error) => return Err(error),
        }
        block.keep(offset, &bytes);
        phases.advance(bytes.len() as u64);
        offset += bytes.len();
        if !equal && block.kept.is_empty() {
            phases.advance((span.end - offset) as u64);
            break;
        }
    }
    Ok(equal)
}

/// Compares what was read with what was written.
fn same(start: u64, expected: &[u8], found: &[u8]) -> Result<(), ProbeError> {
    let different = expected.iter().zip(found).enumerate().find(|(_, (one, other))| one != other);
    match different {
        None => Ok(()),
        Some((nth, (expected, found))) => Err(ProbeError::VerifyFailed {
            address: start + nth as u64,
            expected: *expected,
            found: *found,
        }),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Survey {
    /// Returns how many bytes from an address on are read in one go: those of one region.
    fn same_memory(&self, address: u64, len: usize) -> usize {
        let left = self.areas.iter().find(|area| area.range.contains(&address));
        let left = left.map_or(u64::MAX, |area| area.range.end - address);
        // An external flash is read by an algorithm that has to be loaded for it.
        let most = if self.flash_at(address).is_some() { usize::MAX } else { CHUNK };
        len.min(usize::try_from(left).unwrap_or(usize::MAX)).min(most).max(1)
    }
}
