//! Addresses that answer, read from the memory map of the emulator: the bus channel reports no
//! fault.

/// What answers at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegionKind {
    /// Memory: any width, in bulk, without side effects.
    Memory,
    /// A device: each access counts.
    Device,
}

/// The regions of the processor's address space, in ascending order, without overlap.
#[derive(Debug, Clone, Default)]
pub(crate) struct BusMap {
    /// First address, last address, kind.
    regions: Vec<(u32, u32, RegionKind)>,
}

impl BusMap {
    /// Reads what the emulator says to `info mtree -f`: one flat view per group of address
    /// spaces, of which the first processor's counts.
    pub(crate) fn parse(text: &str) -> Self {
        let mut regions = Vec::new();
        let mut wanted = false;
        for line in text.lines() {
            if line.starts_with("FlatView") {
                if wanted {
                    break;
                }
            } else if line.contains("AS \"cpu-memory-0\"") {
                wanted = true;
            } else if wanted && let Some(region) = parse_region(line) {
                regions.push(region);
            }
        }
        regions.sort_unstable_by_key(|region| region.0);
        Self { regions }
    }

    /// Returns what answers at all of some addresses: memory only if memory does everywhere.
    /// Nothing if any of them is unmapped, or if they run over the end of the space.
    pub(crate) fn kind(&self, start: u32, len: usize) -> Option<RegionKind> {
        let last = u64::from(start) + (len.max(1) as u64 - 1);
        let last = u32::try_from(last).ok()?;
        let mut kind = RegionKind::Memory;
        let mut at = start;
        loop {
            let next = self.regions.partition_point(|region| region.0 <= at);
            let region = self.regions.get(next.checked_sub(1)?)?;
            if at > region.1 {
                return None;
            }
            if region.2 == RegionKind::Device {
                kind = RegionKind::Device;
            }
            if last <= region.1 {
                return Some(kind);
            }
            at = region.1 + 1;
        }
    }

    /// Tells whether memory answers at some addresses.
    pub(crate) fn is_memory(&self, start: u32, len: usize) -> bool {
        self.kind(start, len) == Some(RegionKind::Memory)
    }

    /// Returns how many bytes of one memory lie from an address on, `most` at most.
    pub(crate) fn memory_from(&self, start: u32, most: usize) -> usize {
        let next = self.regions.partition_point(|region| region.0 <= start);
        let region = next.checked_sub(1).and_then(|index| self.regions.get(index));
        match region {
            Some(&(_, last, RegionKind::Memory)) if start <= last => {
                usize::try_from(u64::from(last - start) + 1).map_or(most, |left| left.min(most))
            }
            _ => 0,
        }
    }

    /// Tells whether nothing is mapped at all: then what was parsed was no map.
    pub(crate) fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }
}

/// Reads `  0000000020000000-0000000020003fff (prio 0, ram): nrf51.sram`.
fn parse_region(line: &str) -> Option<(u32, u32, RegionKind)> {
    let (start, rest) = line.trim_start().split_once('-')?;
    let (end, rest) = rest.split_once(' ')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let kind = rest.split_once(", ")?.1.split_once(')')?.0;
    let kind = match kind {
        "ram" | "rom" | "romd" | "nv-ram" | "nv-rom" => RegionKind::Memory,
        _ => RegionKind::Device,
    };
    let end = end.min(u64::from(u32::MAX));
    let region = (u32::try_from(start).ok()?, u32::try_from(end).ok()?, kind);
    (region.0 <= region.1).then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "FlatView #0\n AS \"memory\", root: system\n Root memory region: system\n  \
        0000000000000000-00000000000000ff (prio 0, ram): other\n\n\
        FlatView #1\n AS \"cpu-secure-memory-0\", root: x\n AS \"cpu-memory-0\", root: armv7m\n \
        Root memory region: armv7m-container\n  \
        0000000000000000-000000000003ffff (prio -1, romd): nrf51_soc.flash\n  \
        0000000020000000-0000000020003fff (prio -1, ram): sram\n  \
        0000000020004000-0000000020004fff (prio -1, i/o): device\n  \
        00000000e0000000-00000000ffffffff (prio -1, i/o): ppb\n\n\
        FlatView #2\n AS \"cpu-memory-1\"\n  0000000050000000-0000000050000fff (prio 0, ram): no\n";

    #[test]
    fn the_first_processors_view_counts() {
        let map = BusMap::parse(TEXT);
        assert_eq!(map.kind(0, 0x40000), Some(RegionKind::Memory));
        assert_eq!(map.kind(0x3_ffff, 2), None);
        assert_eq!(map.kind(0x2000_3ffc, 8), Some(RegionKind::Device));
        assert_eq!(map.kind(0x2000_4ffd, 4), None);
        assert_eq!(map.kind(0x5000_0000, 4), None);
        assert_eq!(map.kind(0xffff_fffc, 4), Some(RegionKind::Device));
        assert_eq!(map.kind(0xffff_fffd, 4), None);
        assert!(BusMap::parse("").is_empty());
        let starts = [0, 0x3_ff00, 0x2000_4000, 0x5000_0000];
        assert_eq!(starts.map(|start| map.memory_from(start, 0x1000)), [0x1000, 0x100, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "\\PC{0,200}", start: u32, len in 0_usize..9) {
            let text = TEXT.replace("romd", &text);
            BusMap::parse(&text).kind(start, len);
        }
    }
}
