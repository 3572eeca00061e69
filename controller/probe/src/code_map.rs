//! Where an image has code, and where it has data, in which no program goes on as it was meant to. Pure.
//!
//! # Design
//! A call through a wrong pointer, or a return to an overwritten address, may hit data: a table, a buffer,
//! the stack, memory that was never written. What lies there may be a loop by chance, and the core is in
//! no fault then. So the image says what is code: its functions wherever they lie, and its executable
//! sections but for the objects in them. The rest of the image is data, and so is the RAM behind the
//! beginning of its variables: heap and stacks.
//!
//! *Code that was overwritten* is none: an instruction of a function that is not the one of the image.
//! Images whose code lies in RAM lose it to a write through a null pointer.
//!
//! *Code that was copied* is code. A program may run from RAM what its image has in flash: a few instructions
//! around the program counter, which an executable section has too, tell.
//!
//! *Constants between the code of a function* are data, too: assemblers mark them by symbols with the name
//! `$d`. So is what lies within an instruction: the core executes the second half of it as another one.
//!
//! In other memory a boot loader, a second image or a ROM may be. It has no code where the bytes around the
//! program counter repeat, as those of memory that was never written are. A core that executes
//! zeros goes on to where something ends it.

use std::collections::VecDeque;
use std::ops::Range;

use jig_model::profile::{MemoryKind, MemoryRegion};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{SectionFlags, SectionIndex, SymbolKind};

use crate::ranges::merged;
use crate::{MemoryRange, thumb};

/// How many bytes around the program counter tell copied code: some five instructions. Fewer are found
/// in the code of each program.
const COPIED: usize = 12;

/// How many bytes of an instruction are compared with those of the image.
const INSTRUCTION: usize = 4;

/// What a program counter may lie in instead of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoCode {
    /// What the image has as data, or memory that was never written.
    Data,
    /// Code of the image that was overwritten.
    Overwritten,
    /// The second half of an instruction.
    WithinInstruction,
}

/// Where an image has code and data. Without functions, nothing is known.
#[derive(Debug, Default)]
pub(crate) struct CodeMap {
    /// Functions.
    functions: Vec<Range<u64>>,
    /// Where each of them begins, and each piece of code behind constants, in order.
    code_starts: Vec<u64>,
    /// Constants between code.
    pools: Vec<Range<u64>>,
    /// How long an instruction is; nothing where that is not known.
    length: Option<fn(u16) -> u64>,
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
    /// Reads the map; an empty one of an image without the names of its functions. `budget` is the length of
    /// the file.
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
        let marks = Marks::of(file);
        let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        map.code_starts = functions.map(|symbol| symbol.address() & thumb).collect();
        map.code_starts.extend(marks.0.iter().filter(|mark| !mark.is_data).map(|mark| mark.at));
        map.code_starts.sort_unstable();
        map.length = match file.architecture() {
            // Without the marks, constants are taken for instructions.
            object::Architecture::Arm if marks.0.is_empty() => None,
            object::Architecture::Arm => Some(thumb_length),
            object::Architecture::Riscv32 => Some(riscv_length),
            _ => None,
        };
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
                let loaded = start..start.saturating_add(bytes.len() as u64);
                map.pools.extend(marks.data_of(section.index(), &loaded));
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

    /// Tells what the image has at a program counter.
    fn kind(&self, at: u64, memory: &[MemoryRegion]) -> PlaceKind {
        let hold = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&at));
        let executed = |range: &&MemoryRange| (range.start..range.end()).contains(&at);
        // Of overlays, one may have code where another has constants.
        let overlays = self.executable.iter().filter(executed).count();
        let Some(region) = memory.iter().find(|region| region.contains(at)) else {
            return PlaceKind::Code;
        };
        if overlays == 1 && hold(&self.pools) {
            return PlaceKind::Pool;
        }
        if self.functions.is_empty() || hold(&self.functions) {
            return PlaceKind::Code;
        }
        if overlays == 1 && hold(&self.objects) {
            return PlaceKind::Pool;
        }
        if hold(&self.objects) || hold(&self.data) {
            return PlaceKind::Data;
        }
        if overlays > 0 {
            return PlaceKind::Code;
        }
        let mut variables = self.written.iter().map(|range| range.start);
        let behind = |start: u64| region.contains(start) && start <= at;
        match region.kind == MemoryKind::Ram && variables.any(behind) {
            true => PlaceKind::Data,
            false => PlaceKind::NotInImage,
        }
    }

    /// Returns a halfword of the image's code.
    pub(crate) fn halfword(&self, at: u32) -> Option<u16> {
        let bytes = |range: &MemoryRange| {
            let offset = usize::try_from(u64::from(at).checked_sub(range.start)?).ok()?;
            let bytes = range.bytes.get(offset..offset.checked_add(2)?)?;
            Some(u16::from_le_bytes(bytes.try_into().ok()?))
        };
        self.executable.iter().find_map(bytes)
    }

    /// Tells whether a program counter lies in a function of the image.
    pub(crate) fn has_function(&self, pc: u32) -> bool {
        self.functions.iter().any(|function| function.contains(&u64::from(pc)))
    }

    /// Tells whether a stack with this pointer has its last word in a function of the image. An empty stack
    /// points behind its memory, where a function may begin.
    pub(crate) fn holds_stack(&self, pointer: u32) -> bool {
        pointer
            .checked_sub(4)
            .is_some_and(|last| self.has_function(last) && self.has_function(pointer))
    }

    /// Tells whether the instruction at the program counter of a function is none that the image has
    /// there; of overlays, it has several. `now` begins with it.
    pub(crate) fn was_overwritten(&self, pc: u32, now: &[u8]) -> bool {
        let Some(now) = now.get(..INSTRUCTION).filter(|_| self.has_function(pc)) else {
            return false;
        };
        let own = |range: &MemoryRange| {
            let offset = usize::try_from(u64::from(pc).checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset.checked_add(INSTRUCTION)?).map(|own| own == now)
        };
        let alike: Vec<bool> = self.executable.iter().filter_map(own).collect();
        !alike.is_empty() && !alike.contains(&true)
    }

    /// Tells what a program counter lies in, if that is no code, by the bytes `around` it and the stack pointer.
    pub(crate) fn no_code(
        &self,
        pc: u32,
        stack: Option<u32>,
        memory: &[MemoryRegion],
        around: &MemoryRange,
    ) -> Option<NoCode> {
        let offset = u64::from(pc).checked_sub(around.start).map(|offset| offset as usize);
        let now = offset.and_then(|offset| around.bytes.get(offset..)).unwrap_or_default();
        let on_stack = || {
            let not_in_image = self.kind(pc.into(), memory) == PlaceKind::NotInImage;
            not_in_image && is_on_stack(pc, stack, memory) && !self.was_copied(pc, around)
        };
        if self.is_data(pc, memory, around) || on_stack() {
            return Some(NoCode::Data);
        }
        if self.was_overwritten(pc, now) {
            return Some(NoCode::Overwritten);
        }
        self.is_within_instruction(pc).then_some(NoCode::WithinInstruction)
    }

    /// Tells whether a program counter lies within an instruction of a function, by those in front of it.
    fn is_within_instruction(&self, pc: u32) -> bool {
        self.has_function(pc) && self.sweep_to(pc, |_| {}).is_some_and(|at| at > u64::from(pc))
    }

    /// Lists the addresses of the last instructions in front of one, last first, where they are known.
    pub(crate) fn instructions_before(&self, at: u32, count: usize) -> Option<Vec<u32>> {
        let mut last = VecDeque::with_capacity(count + 1);
        let end = self.sweep_to(at, |instruction| {
            last.push_front(instruction as u32);
            last.truncate(count);
        });
        (end? == u64::from(at)).then(|| last.into())
    }

    /// Visits the instructions of a function up to a program counter; returns where the last one ends.
    fn sweep_to(&self, pc: u32, mut visit: impl FnMut(u64)) -> Option<u64> {
        let (length, pc) = (self.length?, u64::from(pc));
        let before = self.code_starts.partition_point(|&start| start <= pc);
        let &start = before.checked_sub(1).and_then(|last| self.code_starts.get(last))?;
        let holds = |range: &&MemoryRange| range.start <= start && pc < range.end();
        let mut overlays = self.executable.iter().filter(holds);
        let (Some(code), None) = (overlays.next(), overlays.next()) else { return None };
        let mut at = start;
        while at < pc {
            let offset = (at - code.start) as usize;
            let &[low, high] = code.bytes.get(offset..offset + 2)? else { return None };
            visit(at);
            at += length(u16::from_le_bytes([low, high]));
        }
        Some(at)
    }

    /// Tells whether a program counter may lie in what is no code.
    pub(crate) fn may_be_data(&self, pc: u32, memory: &[MemoryRegion]) -> bool {
        self.kind(u64::from(pc), memory) != PlaceKind::Code || self.is_within_instruction(pc)
    }

    /// Tells whether a program counter lies in what is no code, by the bytes `around` it.
    fn is_data(&self, pc: u32, memory: &[MemoryRegion], around: &MemoryRange) -> bool {
        match self.kind(u64::from(pc), memory) {
            PlaceKind::Code => false,
            PlaceKind::Pool => true,
            PlaceKind::Data => !self.was_copied(pc, around),
            PlaceKind::NotInImage => around.bytes.len() > COPIED && repeats(&around.bytes),
        }
    }

    fn was_copied(&self, pc: u32, around: &MemoryRange) -> bool {
        let Some(at) = u64::from(pc).checked_sub(around.start) else { return false };
        let holds_pc = |start: &usize| (*start..start + COPIED).contains(&(at as usize));
        let pieces = around.bytes.windows(COPIED).enumerate();
        pieces.filter(|(start, _)| start % 2 == 0 && holds_pc(start)).any(|(_, piece)| {
            let holds = |range: &MemoryRange| {
                range.bytes.windows(COPIED).step_by(2).any(|code| code == piece)
            };
            !repeats(piece) && self.executable.iter().any(holds)
        })
    }
}

/// Tells whether a program counter lies in the used part of a stack, as far as functions allocate at a time.
fn is_on_stack(pc: u32, stack: Option<u32>, memory: &[MemoryRegion]) -> bool {
    const ABOVE: u32 = 4096;
    let above = stack.and_then(|stack| pc.checked_sub(stack)).is_some_and(|above| above < ABOVE);
    let holds_both = |region: &MemoryRegion| {
        region.contains(pc.into()) && stack.is_some_and(|stack| region.contains(stack.into()))
    };
    above && memory.iter().any(holds_both)
}

/// Tells whether bytes are one word again and again, as those of memory that was never written are.
fn repeats(bytes: &[u8]) -> bool {
    bytes.iter().zip(bytes.iter().skip(4)).all(|(byte, next)| byte == next)
}

fn thumb_length(first: u16) -> u64 {
    if thumb::is_wide(first) { 4 } else { 2 }
}

fn riscv_length(first: u16) -> u64 {
    if first & 3 == 3 { 4 } else { 2 }
}

/// Where code and constants begin in sections that have both, by their sections and addresses.
///
/// Source: ELF for the Arm Architecture, "Mapping symbols"; RISC-V ELF psABI, "Mapping Symbol".
struct Marks(Vec<Mark>);

#[derive(Debug, Clone, Copy)]
struct Mark {
    at: u64,
    section: SectionIndex,
    is_data: bool,
}

impl Marks {
    fn of(file: &object::File<'_>) -> Self {
        let mark = |symbol: object::Symbol<'_, '_>| {
            let is_data = match symbol.name().ok()?.strip_prefix('$')?.as_bytes() {
                [b'd'] | [b'd', b'.', ..] => true,
                [b't' | b'a'] | [b't' | b'a', b'.', ..] | [b'x', ..] => false,
                _ => return None,
            };
            Some(Mark { at: symbol.address(), section: symbol.section_index()?, is_data })
        };
        let mut marks: Vec<Mark> = file.symbols().filter_map(mark).collect();
        // Constants of no length come in front of the code at the same address.
        marks.sort_unstable_by_key(|mark| (mark.section.0, mark.at, !mark.is_data));
        Self(marks)
    }

    /// Lists the constants of a section, of which so much is loaded.
    fn data_of(&self, section: SectionIndex, loaded: &Range<u64>) -> Vec<Range<u64>> {
        let begins = (section.0, loaded.start);
        let first = self.0.partition_point(|mark| (mark.section.0, mark.at) < begins);
        let is_inside = |mark: &&Mark| mark.section == section && mark.at < loaded.end;
        let inside = self.0[first..].iter().take_while(is_inside);
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut begun = None;
        for mark in inside {
            if let Some(start) = begun.take().filter(|&start| start < mark.at) {
                found.push(start..mark.at);
            }
            begun = mark.is_data.then_some(mark.at);
        }
        found.extend(begun.map(|start| start..loaded.end));
        found
    }
}

/// What an image has at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceKind {
    /// Code, or nothing that is known of it.
    Code,
    /// A variable or a constant, or the RAM behind variables.
    Data,
    /// A constant between code.
    Pool,
    /// Nothing: other images and boot loaders may be there.
    NotInImage,
}

/// How many bytes in front of and behind a program counter are looked at.
const AROUND: u32 = 16;

/// Returns the addresses of the bytes that are looked at around a program counter, within its memory.
pub(crate) fn around(pc: u32, memory: &[MemoryRegion]) -> Option<Range<u32>> {
    let region = memory.iter().find(|region| region.contains(u64::from(pc)))?;
    let pc = u64::from(pc & !1);
    let start = pc.saturating_sub(AROUND.into()).max(region.start);
    let end = (pc + u64::from(AROUND)).min(region.start.saturating_add(region.size));
    Some(u32::try_from(start).ok()?..u32::try_from(end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{M3, RISCV, address_of, fixture};

    const RAM: u64 = 0x8000_0000;

    fn memory() -> [MemoryRegion; 1] {
        let kind = MemoryKind::Ram;
        [MemoryRegion { name: "ram".into(), kind, start: RAM, size: 16 << 20 }]
    }

    fn map_of(elf: &[u8]) -> CodeMap {
        CodeMap::of(&object::File::parse(elf).unwrap(), elf.len())
    }

    fn symbol(elf: &[u8], name: &str) -> u32 {
        u32::try_from(address_of(elf, name)).unwrap()
    }

    #[test]
    fn code_is_told_from_data() {
        let elf = std::fs::read(fixture(RISCV, "code-in-ram")).unwrap();
        let map = map_of(&elf);
        let variable = symbol(&elf, "copied");
        let other = MemoryRegion {
            name: "psram".into(),
            kind: MemoryKind::Ram,
            start: 0x2000_0000,
            size: 4096,
        };
        let [ram] = memory();
        let memory = [ram, other];
        for (pc, kind) in [
            (symbol(&elf, "count"), PlaceKind::Code),
            (symbol(&elf, "count") + 8, PlaceKind::Code),
            (variable, PlaceKind::Data),
            (variable + 4, PlaceKind::Data),
            // Heap or stack.
            (variable + 0x8000, PlaceKind::Data),
            (0x2000_0100, PlaceKind::NotInImage),
            // No memory.
            (0x4000_0000, PlaceKind::Code),
        ] {
            assert_eq!(map.kind(u64::from(pc), &memory), kind, "{pc:#x}");
            let alike = MemoryRange { start: u64::from(pc) - 16, bytes: vec![0; 32] };
            assert_eq!(map.is_data(pc, &memory, &alike), kind != PlaceKind::Code, "{pc:#x}");
            let bytes = (0..32).collect();
            let varied = MemoryRange { start: u64::from(pc) - 16, bytes };
            assert_eq!(map.is_data(pc, &memory, &varied), kind == PlaceKind::Data, "{pc:#x}");
        }
        assert!(!CodeMap::default().may_be_data(variable, &memory));
    }

    #[test]
    fn copied_code_is_code() {
        let elf = std::fs::read(fixture(RISCV, "code-in-ram")).unwrap();
        let map = map_of(&elf);
        let (count, copied) = (symbol(&elf, "count"), symbol(&elf, "copied"));
        let code = map.executable.iter().find_map(|range| {
            let offset = usize::try_from(u64::from(count).checked_sub(range.start)?).ok()?;
            range.bytes.get(offset..offset + 40)
        });
        let code = code.unwrap().to_vec();
        let is_data = |bytes: Vec<u8>, offset: u32| {
            let around = MemoryRange { start: u64::from(copied), bytes };
            map.is_data(copied + offset, &memory(), &around)
        };
        for offset in [0, 4, 20, 36] {
            assert!(!is_data(code.clone(), offset), "{offset}");
        }
        assert!(is_data([0x6f, 0, 0, 0].repeat(3), 0));
        assert!(is_data(vec![0; 64], 16));
        assert!(is_data(Vec::new(), 0));
    }

    #[test]
    fn constants_between_code_and_halves_of_instructions_are_no_code() {
        let memory =
            [MemoryRegion { name: "code".into(), kind: MemoryKind::Ram, start: 0, size: 1 << 22 }];
        for (name, at, expected) in [
            ("halt-in-constant", ("table", 0), Some(NoCode::Data)),
            ("halt-in-constant", ("table", 6), Some(NoCode::Data)),
            ("halt-within-instruction", ("read_wide", 0), None),
            ("halt-within-instruction", ("read_wide", 2), Some(NoCode::WithinInstruction)),
            ("halt-within-instruction", ("fixture_main", 0), None),
        ] {
            let elf = std::fs::read(fixture(M3, name)).unwrap();
            let map = map_of(&elf);
            let pc = (symbol(&elf, at.0) & !1) + at.1;
            let range = map.executable.iter().find(|range| range.end() > pc.into()).unwrap();
            let offset = (u64::from(pc) - range.start) as usize;
            let bytes = range.bytes[offset..][..16].to_vec();
            let around = MemoryRange { start: pc.into(), bytes };
            assert_eq!(map.no_code(pc, None, &memory, &around), expected, "{at:?}");
            assert_eq!(map.may_be_data(pc, &memory), expected.is_some(), "{at:?}");
        }
    }

    #[test]
    fn code_of_each_function_consists_of_whole_instructions() {
        for (machine, name) in [(M3, "unity-pass"), (RISCV, "unity-pass")] {
            let elf = std::fs::read(fixture(machine, name)).unwrap();
            let map = map_of(&elf);
            for function in &map.functions {
                let start = function.start as u32;
                assert!(!map.is_within_instruction(start), "{start:#x}");
                // One of four bytes has a second half.
                let within = (start..function.end as u32).step_by(2);
                let within = within.filter(|&pc| map.is_within_instruction(pc)).count();
                assert!(within < function.clone().count() / 2, "{start:#x}");
            }
        }
    }

    #[test]
    fn a_stack_that_ends_where_a_function_begins_is_in_none() {
        let map = CodeMap { functions: vec![0x100..0x120, 0x200..0x204], ..CodeMap::default() };
        for (pointer, inside) in [
            (0, false),
            (0xfc, false),
            (0x100, false),
            (0x104, true),
            (0x11c, true),
            (0x124, false),
        ] {
            assert_eq!(map.holds_stack(pointer), inside, "{pointer:#x}");
        }
    }

    #[test]
    fn an_instruction_is_one_of_those_that_the_image_has_there() {
        let section = |bytes: [u8; 4]| MemoryRange { start: 0x100, bytes: bytes.to_vec() };
        let map = CodeMap {
            functions: vec![0x100..0x104, 0x300..0x304],
            executable: vec![section([1, 2, 3, 4]), section([5, 6, 7, 8])],
            ..CodeMap::default()
        };
        for (pc, now, overwritten) in [
            (0x100, &[1, 2, 3, 4, 0][..], false),
            // The other overlay.
            (0x100, &[5, 6, 7, 8], false),
            (0x100, &[1, 2, 3, 5], true),
            (0x100, &[1, 2, 3], false),
            (0x102, &[9, 9, 9, 9], false),
            (0x200, &[9, 9, 9, 9], false),
        ] {
            assert_eq!(map.was_overwritten(pc, now), overwritten, "{pc:#x} {now:?}");
        }
    }

    #[test]
    fn what_is_looked_at_lies_in_the_memory_of_the_program_counter() {
        let memory = memory();
        let start = RAM as u32;
        assert_eq!(around(start + 4, &memory), Some(start..start + 20));
        assert_eq!(around(start + 0x101, &memory), Some(start + 0xf0..start + 0x110));
        assert_eq!(around(0x4000_0000, &memory), None);
    }
}
