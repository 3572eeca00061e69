//! The chips that probe-rs describes, as facts.
//!
//! Owns the look-up and the search by names. Refuses to touch a probe: all of it is known before
//! hardware is.

use jig_model::ChipName;
use jig_model::chip::{ChipCore, ChipFacts, ChipMemory, ChipSource, UnknownChip};
use jig_model::profile::{Arch, MemoryKind, MemoryRegion};
use probe_rs::config::{
    Chip, ChipFamily, CoreType, MemoryRegion as Region, RawFlashAlgorithm, RegistryError,
};

use crate::worker::{self, built_in, nearest};

/// How many names are offered where one stands for several chips.
const OFFERED: usize = 5;

/// The chips that probe-rs describes.
#[derive(Debug, Clone, Copy, Default)]
pub struct DescribedChips;

impl ChipSource for DescribedChips {
    fn chip(&self, name: &ChipName) -> Result<ChipFacts, UnknownChip> {
        let unknown = |nearest, several| UnknownChip { name: name.to_string(), nearest, several };
        let target = built_in().get_target_by_name(name.as_str()).map_err(|error| match error {
            RegistryError::ChipNotUnique(_, among) => {
                unknown(among.split(", ").take(OFFERED).map(str::to_owned).collect(), true)
            }
            _ => unknown(nearest(built_in(), name.as_str()), false),
        })?;
        let named = |chip: &&Chip| chip.package_variants().any(|known| *known == target.name);
        let found = built_in().families().iter().find_map(|family| {
            let chip = family.variants.iter().find(named)?;
            facts(family, chip)
        });
        // A description without a core is no chip that anything can be done with.
        let facts = found.ok_or_else(|| unknown(Vec::new(), false))?;
        Ok(ChipFacts { name: target.name, ..facts })
    }
}

impl DescribedChips {
    /// Lists the chips for which each word of a pattern is part of their name, of the name of a
    /// package or family, or of a core's architecture; upper and lower case are the same. All chips
    /// for an empty pattern. Sorted by name.
    pub fn search(self, pattern: &str) -> Vec<ChipFacts> {
        let words: Vec<String> = pattern.split_whitespace().map(str::to_ascii_lowercase).collect();
        let families = built_in().families().iter();
        let all =
            families.flat_map(|family| family.variants.iter().map(move |chip| (family, chip)));
        let mut found: Vec<ChipFacts> = all
            .filter(|(family, chip)| words.iter().all(|word| has(family, chip, word)))
            .filter_map(|(family, chip)| facts(family, chip))
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }
}

fn has(family: &ChipFamily, chip: &Chip, word: &str) -> bool {
    let holds = |text: &str| text.to_ascii_lowercase().contains(word);
    chip.package_variants().any(|name| holds(name))
        || holds(&family.name)
        || chip.cores.iter().any(|core| holds(architecture(core.core_type)))
}

/// Reads a description; nothing if it has no core.
fn facts(family: &ChipFamily, chip: &Chip) -> Option<ChipFacts> {
    let cores = chip.cores.iter().map(|core| ChipCore {
        name: core.name.clone(),
        architecture: architecture(core.core_type),
    });
    Some(ChipFacts {
        name: chip.name.clone(),
        family: family.name.clone(),
        arch: arch(chip.cores.first()?.core_type),
        packages: chip.package_variants.clone(),
        cores: cores.collect(),
        memory: memory(family, chip),
    })
}

fn architecture(core: CoreType) -> &'static str {
    match core {
        CoreType::Armv6m => "Armv6-M",
        CoreType::Armv7a => "Armv7-A",
        CoreType::Armv7r => "Armv7-R",
        CoreType::Armv7m => "Armv7-M",
        CoreType::Armv7em => "Armv7E-M",
        CoreType::Armv8a => "Armv8-A",
        CoreType::Armv8m => "Armv8-M",
        CoreType::Riscv => "RV32",
        CoreType::Riscv64 => "RV64",
        CoreType::Xtensa => "Xtensa",
    }
}

fn arch(core: CoreType) -> Arch {
    match core {
        CoreType::Armv6m
        | CoreType::Armv7a
        | CoreType::Armv7r
        | CoreType::Armv7m
        | CoreType::Armv7em
        | CoreType::Armv8m => Arch::Arm,
        CoreType::Armv8a => Arch::Aarch64,
        CoreType::Riscv => Arch::Riscv32,
        CoreType::Riscv64 => Arch::Riscv64,
        CoreType::Xtensa => Arch::Xtensa,
    }
}

/// Lists a chip's memory as a profile wants it: in order, without aliases of flash, and without what
/// lies within a region that comes before it, as where two cores see the same memory.
fn memory(family: &ChipFamily, chip: &Chip) -> Vec<ChipMemory> {
    let own = chip.flash_algorithms.iter();
    let algorithms: Vec<RawFlashAlgorithm> =
        own.filter_map(|name| family.get_algorithm_for_chip(name, chip)).collect();
    let regions = chip.memory_map.iter().filter_map(|region| match region {
        Region::Nvm(flash) if !flash.is_alias => {
            let writable = worker::algorithm(flash, &algorithms).is_some();
            let name = flash.name.as_deref();
            Some((flash.range.clone(), MemoryKind::Flash, name, writable, false))
        }
        // An alias of RAM may be the address that programs are linked for.
        Region::Ram(ram) => {
            let name = ram.name.as_deref();
            Some((ram.range.clone(), MemoryKind::Ram, name, true, ram.is_alias))
        }
        Region::Nvm(_) | Region::Generic(_) => None,
    });
    let mut regions: Vec<_> = regions.filter(|(range, ..)| !range.is_empty()).collect();
    // Of two that begin at one address the larger comes first.
    regions.sort_by_key(|(range, ..)| (range.start, std::cmp::Reverse(range.end)));
    let mut memory: Vec<ChipMemory> = Vec::new();
    for (range, kind, name, writable, alias) in regions {
        let reach = memory.last().map_or(0, |last| last.region.start + last.region.size);
        let start = range.start.max(reach);
        if start >= range.end {
            continue;
        }
        let size = range.end - start;
        match memory.last_mut() {
            Some(last)
                if reach == start
                    && (last.region.kind, last.writable, last.alias) == (kind, writable, alias) =>
            {
                last.region.size += size;
            }
            _ => {
                let name = free_name(&memory, kind, name);
                let region = MemoryRegion { name, kind, start, size };
                memory.push(ChipMemory { region, writable, alias });
            }
        }
    }
    memory
}

/// Names a region as profiles can: what the description calls it, else its kind.
fn free_name(taken: &[ChipMemory], kind: MemoryKind, said: Option<&str>) -> String {
    let usual = match kind {
        MemoryKind::Flash => "flash",
        MemoryKind::Ram => "ram",
    };
    let plain: String = said
        .unwrap_or_default()
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .take(56)
        .collect();
    let plain = plain.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let base = if plain.is_empty() { usual } else { plain };
    let is_free = |name: &String| taken.iter().all(|memory| memory.region.name != *name);
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jig_model::profile::{BoardProfile, FaultSets};

    use super::*;

    fn chip(name: &str) -> Result<ChipFacts, UnknownChip> {
        DescribedChips.chip(&name.parse().unwrap())
    }

    #[test]
    fn a_chip_is_known_by_its_name_in_any_case() {
        for name in ["STM32F411CEUx", "stm32f411ceux"] {
            let found = chip(name).unwrap();
            assert_eq!((found.name.as_str(), found.arch), ("STM32F411CEUx", Arch::Arm));
            assert_eq!(found.cores[0].architecture, "Armv7E-M");
            let flash = &found.memory[0];
            assert_eq!((flash.region.start, flash.writable), (0x0800_0000, true));
            assert_eq!(flash.region.size, 512 << 10);
            // With the memory that is written once.
            assert_eq!(found.size_of(MemoryKind::Flash), (512 << 10) + 528);
            assert_eq!(found.size_of(MemoryKind::Ram), 128 << 10);
            assert!(found.flashes());
        }
        // Its RAM can be seen at two addresses, and is there once.
        assert_eq!(chip("nRF52840_xxAA").unwrap().size_of(MemoryKind::Ram), 256 << 10);
    }

    #[test]
    fn a_name_that_means_no_chip_or_several_is_answered_with_names() {
        let slip = chip("STM32F499CEU6").unwrap_err();
        assert!(
            !slip.several && slip.nearest.iter().any(|name| name.contains("STM32F4")),
            "{slip:?}"
        );
        let several = chip("STM32F411").unwrap_err();
        assert!(several.several && several.nearest.len() > 1, "{several:?}");
        assert!(several.nearest.iter().all(|name| chip(name).is_ok()), "{several:?}");
        assert!(chip("zz").unwrap_err().nearest.is_empty());
    }

    #[test]
    fn ram_is_found_where_programs_are_linked_for() {
        let found = chip("nRF52840_xxAA").unwrap();
        let ram = |memory: &&ChipMemory| memory.region.kind == MemoryKind::Ram;
        let starts: Vec<u64> = found.memory.iter().filter(ram).map(|m| m.region.start).collect();
        assert_eq!(starts, [0x0080_0000, 0x2000_0000]);
    }

    #[test]
    fn a_chip_without_flash_algorithm_is_told_apart() {
        let generic = chip("Cortex-M4").unwrap();
        assert_eq!((generic.flashes(), generic.memory.len()), (false, 0));
    }

    #[test]
    fn every_described_chip_is_a_board_that_passes_the_checks() {
        let sets = FaultSets::default();
        let all = DescribedChips.search("");
        assert!(all.len() > 3000, "{}", all.len());
        for facts in all {
            let name: ChipName = facts.name.parse().unwrap();
            let board = BoardProfile::of_chip(&name, &facts, &sets);
            let mut end = 0;
            for region in &board.memory {
                assert!(region.start >= end && region.size > 0, "{name}: {region:?}");
                end = region.start + region.size;
                let same = board.memory.iter().filter(|other| other.name == region.name);
                assert_eq!(same.count(), 1, "{name}: {region:?}");
            }
        }
    }

    #[test]
    fn a_search_looks_at_names_families_and_cores() {
        let names = |pattern: &str| -> Vec<String> {
            DescribedChips.search(pattern).into_iter().map(|facts| facts.name).collect()
        };
        assert!(names("nrf52840").contains(&"nRF52840_xxAA".to_owned()));
        assert!(names("NRF armv8").iter().all(|name| name.starts_with("nRF")));
        assert!(!names("NRF armv8").contains(&"nRF52840_xxAA".to_owned()));
        assert!(names("no such chip").is_empty());
    }
}
