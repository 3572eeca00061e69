//! Which memory of a chip can be written, taken from its probe-rs description.
//!
//! Owns the geometry of flash: sectors, pages, and what an algorithm can do. Knows no payload.

#[cfg(test)]
pub(crate) mod tests;

use std::ops::Range;
use std::time::Duration;

use probe_rs::Target;
use probe_rs::config::{MemoryRegion, NvmRegion, RawFlashAlgorithm};

use crate::ProbeError;

/// The memory of a chip.
#[derive(Debug, Clone)]
pub(crate) struct FlashMap {
    pub(crate) chip: String,
    pub(crate) areas: Vec<Area>,
}

/// A part of a chip's memory.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    pub(crate) range: Range<u64>,
    /// The core that reaches it.
    pub(crate) core: usize,
    pub(crate) kind: AreaKind,
    /// It shows, at other addresses, what another area holds.
    pub(crate) is_alias: bool,
}

/// How a part of memory is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AreaKind {
    /// Directly.
    Ram,
    /// By a flash algorithm.
    Flash(Flash),
    /// Not at all: flash for which the description has no algorithm, or several and no default.
    NoAlgorithm,
}

/// A flash and what its algorithm can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flash {
    /// Where the algorithm counts sectors and pages from.
    pub(crate) base: u64,
    /// How much is programmed at once.
    pub(crate) page: u64,
    /// Groups of sectors: offset of the first one, size of each.
    pub(crate) sectors: Vec<(u64, u64)>,
    /// The algorithm reads or compares by itself, so the flash need not be in the address space.
    pub(crate) checks_itself: bool,
    /// The algorithm can erase the whole chip with one call.
    pub(crate) erases_chip: bool,
    /// How long a call of the algorithm may take.
    pub(crate) slowest: Duration,
}

impl FlashMap {
    /// Reads a chip's description.
    pub(crate) fn of(target: &Target) -> Self {
        let core = |names: &[String]| {
            names.first().and_then(|name| target.core_index_by_name(name)).unwrap_or_default()
        };
        let areas = target.memory_map.iter().filter_map(|region| match region {
            MemoryRegion::Ram(ram) => Some(Area {
                range: ram.range.clone(),
                core: core(&ram.cores),
                kind: AreaKind::Ram,
                is_alias: false,
            }),
            MemoryRegion::Nvm(flash) => Some(Area {
                range: flash.range.clone(),
                core: core(&flash.cores),
                kind: algorithm(flash, &target.flash_algorithms)
                    .map_or(AreaKind::NoAlgorithm, |raw| AreaKind::Flash(Flash::of(raw))),
                is_alias: flash.is_alias,
            }),
            MemoryRegion::Generic(_) => None,
        });
        Self { chip: target.name.clone(), areas: areas.collect() }
    }

    /// Finds the area that holds an address.
    pub(crate) fn area_at(&self, address: u64) -> Option<&Area> {
        self.areas.iter().find(|area| area.range.contains(&address))
    }

    /// Returns how long a call of any of the chip's algorithms may take.
    pub(crate) fn slowest(&self) -> Duration {
        let flashes = self.areas.iter().filter_map(|area| match &area.kind {
            AreaKind::Flash(flash) => Some(flash.slowest),
            AreaKind::Ram | AreaKind::NoAlgorithm => None,
        });
        flashes.max().unwrap_or_default()
    }

    /// Says that a range is not in memory that can be written.
    pub(crate) fn does_not_fit(&self, range: Range<u64>) -> ProbeError {
        let words = self.areas.iter().map(|area| {
            let kind = match area.kind {
                AreaKind::Ram => "RAM",
                AreaKind::Flash(_) | AreaKind::NoAlgorithm => "flash",
            };
            format!("{kind} {:#x}..{:#x}", area.range.start, area.range.end)
        });
        let words: Vec<String> = words.collect();
        let memory = if words.is_empty() { "not described".to_owned() } else { words.join(", ") };
        ProbeError::DoesNotFit {
            start: range.start,
            end: range.end,
            chip: self.chip.clone(),
            memory,
        }
    }

    /// Says that an area's flash has no algorithm.
    pub(crate) fn no_algorithm(&self, area: &Area) -> ProbeError {
        ProbeError::NoFlashAlgorithm {
            chip: self.chip.clone(),
            start: area.range.start,
            end: area.range.end,
        }
    }
}

impl Flash {
    fn of(raw: &RawFlashAlgorithm) -> Self {
        let properties = &raw.flash_properties;
        let slowest = properties.erase_sector_timeout.max(properties.program_page_timeout);
        Self {
            base: properties.address_range.start,
            page: u64::from(properties.page_size).max(1),
            sectors: properties.sectors.iter().map(|one| (one.address, one.size)).collect(),
            checks_itself: raw.pc_verify.is_some() || raw.pc_read.is_some(),
            erases_chip: raw.pc_erase_all.is_some(),
            slowest: Duration::from_millis(slowest.into()),
        }
    }

    /// Finds the sector at an address.
    pub(crate) fn sector_at(&self, address: u64) -> Option<Range<u64>> {
        let offset = address.checked_sub(self.base)?;
        let (first, size) = *self.sectors.iter().rfind(|(first, _)| *first <= offset)?;
        let nth = (offset - first).checked_div(size)?;
        let start = self.base + first + nth * size;
        Some(start..start.checked_add(size)?)
    }

    /// Tells whether a page begins at an address.
    pub(crate) fn is_page_border(&self, address: u64) -> bool {
        address.saturating_sub(self.base).is_multiple_of(self.page)
    }

    /// Returns where the page ends that holds the byte before an address.
    pub(crate) fn page_end(&self, end: u64) -> Option<u64> {
        end.checked_sub(self.base)?.checked_next_multiple_of(self.page)?.checked_add(self.base)
    }
}

impl Area {
    /// Finds the sectors of flash that touch a range and lie in the area.
    pub(crate) fn sectors_in(&self, wanted: &Range<u64>) -> Vec<Range<u64>> {
        let AreaKind::Flash(flash) = &self.kind else { return Vec::new() };
        let mut sectors = Vec::new();
        let mut here = wanted.start.max(self.range.start);
        while here < wanted.end.min(self.range.end)
            && let Some(sector) = flash.sector_at(here)
        {
            here = sector.end;
            if self.range.start <= sector.start && sector.end <= self.range.end {
                sectors.push(sector);
            }
        }
        sectors
    }
}

/// Chooses among the algorithms of a region as probe-rs does: the only one, or the default.
pub(crate) fn algorithm<'a>(
    region: &NvmRegion,
    algorithms: &'a [RawFlashAlgorithm],
) -> Option<&'a RawFlashAlgorithm> {
    let core = region.cores.first()?;
    let serves = |algorithm: &&RawFlashAlgorithm| {
        let range = &algorithm.flash_properties.address_range;
        range.start <= region.range.start
            && region.range.end <= range.end
            && (algorithm.cores.is_empty() || algorithm.cores.contains(core))
    };
    let all: Vec<&RawFlashAlgorithm> = algorithms.iter().filter(serves).collect();
    match all.as_slice() {
        [only] => Some(only),
        several => {
            let mut defaults = several.iter().filter(|algorithm| algorithm.default);
            defaults.next().copied().filter(|_| defaults.next().is_none())
        }
    }
}
