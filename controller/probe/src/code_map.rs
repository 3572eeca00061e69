//! Where an image has code, and where it has data, in which no program goes on as it was meant to. Pure.
//!
//! # Design
//! A call through a wrong pointer, or a return to an overwritten address, may hit data: a table, a buffer,
//! the stack, memory that was never written. What lies there may be a loop by chance, and the core is in
//! no fault then. So the image says what is code: its functions wherever they lie, and its executable
//! sections but for the objects in them. The rest of the image is data, and so is the RAM behind the
//! beginning of its variables: heap and stacks.
//!
//! *Code that was copied* is code. A program may run from RAM what its image has in flash: a few instructions
//! around the program counter, which an executable section has too, tell.
//!
//! Nothing is told of other memory: a boot loader, a second image or a ROM may be there.

use std::ops::Range;

use jig_model::profile::{MemoryKind, MemoryRegion};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, SymbolKind};

use crate::ranges::merged;
use crate::{CoreSnapshot, MemoryRange};

/// How many bytes around the program counter tell copied code: some five instructions. Fewer are found
/// in the code of each program.
const COPIED: usize = 12;

/// Where an image has code and data.
#[derive(Debug, Default)]
pub(crate) struct CodeMap {
    /// Functions.
    functions: Vec<Range<u64>>,
    /// Objects, where there are functions beside them.
    objects: Vec<Range<u64>>,
    /// Sections that are executed.
    executable: Vec<MemoryRange>,
    /// Sections that are loaded and not executed.
    data: Vec<Range<u64>>,
    /// Those of them that are written.
    written: Vec<Range<u64>>,
}

impl CodeMap {
    /// Reads the map; an empty one of what is no ELF image with the names of its functions.
    pub(crate) fn of_image(elf: &[u8]) -> Self {
        object::File::parse(elf).map_or_else(|_| Self::default(), |file| Self::of(&file, elf.len()))
    }

    /// As [`Self::of_image`], of a file that was parsed before; `budget` is its length.
    pub(crate) fn of(file: &object::File<'_>, mut budget: usize) -> Self {
        let thumb = if file.architecture() == object::Architecture::Arm { !1 } else { !0 };
        let symbols = |kind| {
            let chosen = file.symbols().filter(move |symbol| {
                symbol.kind() == kind && symbol.is_definition() && symbol.size() > 0
            });
            let range = move |symbol: object::Symbol<'_, '_>| {
                let mask = if kind == SymbolKind::Text { thumb } else { !0 };
                let start = symbol.address() & mask;
                start..start.saturating_add(symbol.size())
            };
            merged(chosen.map(range))
        };
        let mut map = Self {
            functions: symbols(SymbolKind::Text),
            objects: symbols(SymbolKind::Data),
            ..Self::default()
        };
        if map.functions.is_empty() {
            return Self::default();
        }
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let has = |flag| sh_flags & flag == flag;
            let (start, end) =
                (section.address(), section.address().saturating_add(section.size()));
            if !has(object::elf::SHF_ALLOC) || start == end {
                continue;
            }
            if has(object::elf::SHF_EXECINSTR) {
                // Headers may overlap; together they may not multiply the file.
                let bytes = section.data().unwrap_or_default();
                let Some(left) = budget.checked_sub(bytes.len()) else { continue };
                budget = left;
                map.executable.push(MemoryRange { start, bytes: bytes.to_vec() });
            } else {
                map.data.push(start..end);
                if has(object::elf::SHF_WRITE) {
                    map.written.push(start..end);
                }
            }
        }
        map
    }

    /// Tells whether a program counter lies in data, whatever was copied there.
    pub(crate) fn is_data(&self, pc: u32, memory: &[MemoryRegion]) -> bool {
        let at = u64::from(pc);
        let hold = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&at));
        if hold(&self.functions) {
            return false;
        }
        if hold(&self.objects) || hold(&self.data) {
            return true;
        }
        let executed = |range: &MemoryRange| (range.start..range.end()).contains(&at);
        !self.executable.iter().any(executed) && self.is_behind_variables(at, memory)
    }

    /// Tells whether an address lies in RAM that holds variables of the image, behind the first of them.
    fn is_behind_variables(&self, at: u64, memory: &[MemoryRegion]) -> bool {
        let holds = |region: &MemoryRegion, address: u64| {
            address.checked_sub(region.start).is_some_and(|offset| offset < region.size)
        };
        memory.iter().filter(|region| region.kind == MemoryKind::Ram && holds(region, at)).any(
            |region| {
                let mut starts = self.written.iter().map(|range| range.start);
                starts.any(|start| holds(region, start) && start <= at)
            },
        )
    }

    /// Returns the program counter of a core if it lies in data, and no code of the image was copied
    /// there.
    pub(crate) fn executed_data(
        &self,
        core: &CoreSnapshot,
        memory: &[MemoryRegion],
    ) -> Option<u32> {
        let pc = core.register("pc").and_then(|value| u32::try_from(value).ok())?;
        (self.is_data(pc, memory) && !self.was_copied(core, pc)).then_some(pc)
    }

    fn was_copied(&self, core: &CoreSnapshot, pc: u32) -> bool {
        // The program counter may stand at each of the instructions.
        (0..COPIED).step_by(2).any(|before| {
            let start = u64::from(pc).saturating_sub(before as u64);
            let Some(bytes) = core.read(start, COPIED) else { return false };
            // Memory that was never written has one value.
            let varied = bytes.iter().any(|&byte| byte != bytes[0]);
            let holds = |range: &MemoryRange| {
                range.bytes.windows(COPIED).step_by(2).any(|code| code == bytes)
            };
            varied && self.executable.iter().any(holds)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{RISCV, address_of, fixture};
    use crate::{CoreKind, RegisterValue};

    const RAM: u64 = 0x8000_0000;

    fn memory() -> [MemoryRegion; 1] {
        let kind = MemoryKind::Ram;
        [MemoryRegion { name: "ram".into(), kind, start: RAM, size: 16 << 20 }]
    }

    fn symbol(elf: &[u8], name: &str) -> u32 {
        u32::try_from(address_of(elf, name)).unwrap()
    }

    #[test]
    fn code_is_told_from_data() {
        let elf = std::fs::read(fixture(RISCV, "code-in-ram")).unwrap();
        let map = CodeMap::of_image(&elf);
        let variable = symbol(&elf, "copied");
        for (pc, data) in [
            (symbol(&elf, "count"), false),
            (symbol(&elf, "count") + 8, false),
            (variable, true),
            (variable + 4, true),
            // Heap or stack.
            (variable + 0x8000, true),
            // No memory, and memory below the image.
            (0x4000_0000, false),
        ] {
            assert_eq!(map.is_data(pc, &memory()), data, "{pc:#x}");
        }
        assert!(!map.is_data(variable + 0x8000, &[]));
        assert!(!CodeMap::of_image(b"no ELF file").is_data(variable, &memory()));
    }

    #[test]
    fn copied_code_is_code() {
        let elf = std::fs::read(fixture(RISCV, "code-in-ram")).unwrap();
        let map = CodeMap::of_image(&elf);
        let (count, copied) = (symbol(&elf, "count"), symbol(&elf, "copied"));
        let code = map.executable.iter().find_map(|range| {
            let offset = usize::try_from(u64::from(count).checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset + 40)
        });
        let code = code.unwrap().to_vec();
        let executed = |bytes: Vec<u8>, offset: u32| {
            let value = u128::from(copied + offset);
            let registers = vec![RegisterValue { name: "pc".into(), value, bits: 32 }];
            let memory_read = vec![MemoryRange { start: u64::from(copied), bytes }];
            let core = CoreSnapshot { kind: CoreKind::Riscv32, registers, memory: memory_read };
            map.executed_data(&core, &memory())
        };
        for offset in [0, 4, 20, 36] {
            assert_eq!(executed(code.clone(), offset), None, "{offset}");
        }
        assert_eq!(executed(vec![0x6f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0), Some(copied));
        assert_eq!(executed(vec![0; 64], 16), Some(copied + 16));
        assert_eq!(executed(Vec::new(), 0), Some(copied));
    }
}
