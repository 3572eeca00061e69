//! A copy of the memory that keeps its content without power.

use jig_model::profile::{DebugSpec, FlashModel, MemoryRegion};

/// What erased flash reads as.
const ERASED: u8 = 0xff;

/// Most of a region that is kept: more than any microcontroller has.
const MOST: usize = 64 << 20;

/// What the program memory holds, as it was last seen.
#[derive(Debug)]
pub(super) struct ProgramMemory {
    pub(super) model: FlashModel,
    pub(super) regions: Vec<(u32, Vec<u8>)>,
}

impl ProgramMemory {
    /// Makes blank memory.
    pub(super) fn new(spec: &DebugSpec) -> Self {
        let blank = match spec.flash {
            FlashModel::Modelled | FlashModel::Plain => ERASED,
            FlashModel::Ram => 0,
        };
        let bounds = |region: &MemoryRegion| {
            let len = usize::try_from(region.size).ok()?.min(MOST);
            Some((u32::try_from(region.start).ok()?, vec![blank; len]))
        };
        Self { model: spec.flash, regions: spec.program.iter().filter_map(bounds).collect() }
    }

    /// Takes over what was written, where it is program memory.
    pub(super) fn overwrite(&mut self, start: u32, bytes: &[u8]) {
        for (first, region) in &mut self.regions {
            let (first, start) = (u64::from(*first), u64::from(start));
            let from = first.max(start);
            let to = (first + region.len() as u64).min(start + bytes.len() as u64);
            if from < to {
                let source = &bytes[(from - start) as usize..(to - start) as usize];
                region[(from - first) as usize..(to - first) as usize].copy_from_slice(source);
            }
        }
    }

    /// Tells whether all of some addresses are program memory.
    pub(super) fn holds(&self, start: u32, len: usize) -> bool {
        let start = u64::from(start);
        self.regions.iter().any(|(first, region)| {
            let first = u64::from(*first);
            first <= start && start + len as u64 <= first + region.len() as u64
        })
    }
}
