//! A chip description, as the planner wants it.

use std::ops::Range;

use probe_rs::Target;
use probe_rs::config::{MemoryRegion, NvmRegion, RawFlashAlgorithm};
use probe_rs::flashing::{FlashAlgorithm, FlashError};

use super::algorithm::Runner;
use super::plan::{Area, AreaKind, Geometry};
use crate::ProbeError;
use crate::worker::translate;

/// What of a chip can be written, and how.
pub(crate) struct Survey {
    pub(crate) chip: String,
    pub(crate) areas: Vec<Area>,
    pub(crate) geometries: Vec<Geometry>,
    algorithms: Vec<Assembled>,
}

/// An algorithm, and the core that runs it.
struct Assembled {
    name: String,
    core: usize,
    algorithm: Result<FlashAlgorithm, String>,
}

/// Surveys a chip. A region that no algorithm serves is no area.
pub(crate) fn survey(target: &Target) -> Result<Survey, ProbeError> {
    let mut survey = Survey {
        chip: target.name.clone(),
        areas: Vec::new(),
        geometries: Vec::new(),
        algorithms: Vec::new(),
    };
    for region in &target.memory_map {
        match region {
            MemoryRegion::Ram(ram) => {
                survey.areas.push(Area { range: ram.range.clone(), kind: AreaKind::Ram });
            }
            MemoryRegion::Nvm(flash) => {
                if let Some(number) = survey.serve(flash, target) {
                    let kind = AreaKind::Flash(number);
                    survey.areas.push(Area { range: flash.range.clone(), kind });
                }
            }
            MemoryRegion::Generic(_) => {}
        }
    }
    Ok(survey)
}

impl Survey {
    /// Finds the algorithm for a region, and takes it in.
    fn serve(&mut self, region: &NvmRegion, target: &Target) -> Option<usize> {
        let core_name = region.cores.first()?;
        let core = target.core_index_by_name(core_name)?;
        let raw = choose(region, core_name, target)?;
        let known = self.algorithms.iter().position(|one| one.name == raw.name && one.core == core);
        if known.is_some() {
            return known;
        }
        let properties = &raw.flash_properties;
        self.geometries.push(Geometry {
            range: properties.address_range.clone(),
            page: properties.page_size.into(),
            erased: properties.erased_byte_value,
            sectors: properties.sectors.iter().map(|one| (one.address, one.size)).collect(),
        });
        let algorithm = FlashAlgorithm::assemble_from_raw_with_core(raw, core_name, target);
        self.algorithms.push(Assembled {
            name: raw.name.clone(),
            core,
            algorithm: algorithm.map_err(|error| error.to_string()),
        });
        Some(self.algorithms.len() - 1)
    }

    /// Returns an algorithm, and what it runs on.
    pub(crate) fn runner(&self, number: usize) -> Result<Runner<'_>, ProbeError> {
        let unusable = |what: String| {
            translate::flash(what, FlashError::NoRamDefined { name: self.chip.clone() })
        };
        let one = self.algorithms.get(number).ok_or_else(|| unusable("prepared".to_owned()))?;
        match &one.algorithm {
            Ok(algorithm) => {
                let room = self.room_beside(algorithm).unwrap_or_default();
                Ok(Runner { core: one.core, algorithm, room })
            }
            Err(why) => Err(unusable(format!("prepared: {why}"))),
        }
    }

    /// Finds RAM behind all that an algorithm occupies: its code, its buffers, its stack.
    fn room_beside(&self, algorithm: &FlashAlgorithm) -> Option<Range<u64>> {
        let ram = |area: &&Area| {
            area.kind == AreaKind::Ram && area.range.contains(&algorithm.load_address)
        };
        let ram = &self.areas.iter().find(ram)?.range;
        let page = u64::from(algorithm.flash_properties.page_size);
        let code = algorithm.load_address + 4 * algorithm.instructions.len() as u64;
        let buffers = algorithm.page_buffers.iter().map(|buffer| buffer + page);
        let ends = buffers.chain([code, algorithm.stack_top]);
        let start = ends.filter(|end| (ram.start..=ram.end).contains(end)).max()?;
        Some(start..ram.end)
    }

    /// Tells whether an algorithm takes pages as they are.
    pub(crate) fn takes_plain_pages(algorithm: &FlashAlgorithm) -> bool {
        // Plain is what descriptions mean that say nothing.
        algorithm.transfer_encoding == Default::default()
    }

    /// Lists the flashes: number of the algorithm, and where.
    pub(crate) fn flashes(&self) -> impl Iterator<Item = (usize, &Range<u64>)> {
        self.areas.iter().filter_map(|area| match area.kind {
            AreaKind::Flash(number) => Some((number, &area.range)),
            AreaKind::Ram => None,
        })
    }

    /// Returns the algorithm that serves an address.
    pub(crate) fn flash_at(&self, address: u64) -> Option<usize> {
        self.flashes().find(|(_, range)| range.contains(&address)).map(|(number, _)| number)
    }

    /// Tells whether all of a range is RAM.
    pub(crate) fn is_ram(&self, range: &Range<u64>) -> bool {
        let mut here = range.start;
        while here < range.end {
            let area = self.areas.iter().find(|area| area.range.contains(&here));
            match area {
                Some(area) if area.kind == AreaKind::Ram => here = area.range.end,
                _ => return false,
            }
        }
        true
    }
}

/// Chooses among the algorithms of a region as probe-rs does: the only one, or the default.
fn choose<'a>(
    region: &NvmRegion,
    core: &String,
    target: &'a Target,
) -> Option<&'a RawFlashAlgorithm> {
    let serves = |algorithm: &&RawFlashAlgorithm| {
        let range = &algorithm.flash_properties.address_range;
        range.start <= region.range.start
            && region.range.end <= range.end
            && (algorithm.cores.is_empty() || algorithm.cores.contains(core))
    };
    let all: Vec<&RawFlashAlgorithm> = target.flash_algorithms.iter().filter(serves).collect();
    match all.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|algorithm| algorithm.default).copied(),
    }
}
