//! Endless loops of an image in which a program stands that has masked its interrupts. Pure.
//!
//! # Design
//! The assertion that most users of FreeRTOS have prints nothing: it masks interrupts, and branches to itself;
//! others wait for an interrupt in their loop, or for a variable that a debugger is to set. The compiler puts it
//! into each function that asserts, so no name tells it; the instructions do. What masks differs by the core, and
//! so does what it proves:
//!
//! - `BASEPRI` lets only the most urgent interrupts through, `FAULTMASK` NMI alone. A program without an operating
//!   system has hardly a use for the two. They are set by blocks of code that end soon, so a program that stays
//!   there does not go on as it was meant to;
//! - `PRIMASK`, and `mstatus.MIE` of RISC-V, are set by many healthy programs in the end. There, an interrupt has to
//!   be enabled and pending, which the loop will never let through: a system with a tick that asserts leaves one.
//!
//! An image that never masks interrupts has no such loop. RISC-V cores begin with them masked.
//!
//! A core that waits for an interrupt does not tell its masks, as it executes nothing for a debugger. Then the
//! code directly in front of the loop tells.
//!
//! A healthy program ends in such a loop, too: tests that run with interrupts locked wait in `main`, and
//! some `exit` locks them first. Functions with names of an end have none.

use std::ops::Range;

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{SectionKind, SymbolKind};

use crate::fatal_halt::in_words;
use crate::riscv::wait_loop_before as riscv_loop_before;

/// Most halfwords of a loop, up to the branch that closes it.
const LONGEST: usize = 8;

/// How many halfwords in front of a loop are searched for what masks interrupts.
const NEAR: usize = 12;

/// Words in the names of functions in which healthy programs wait.
const ENDS: &str = "\
    main exit idle test tests ztest end finish done stop halt park sleep shutdown wfi reset reboot \
    poweroff start startup";

/// Words of those in which they wait with all interrupts off.
const ENDS_WITHOUT_INTERRUPTS: &str = "\
    finished complete completed success pass passed report off down standby hibernate wait loop \
    forever spin quit run runner getc getchar";

/// The loops of an image that masks interrupts.
#[derive(Debug, Default)]
pub(crate) struct MaskedLoops {
    /// Their instructions, by where they begin.
    loops: Vec<Range<u64>>,
    /// Where those of them begin in front of which interrupts are masked, in order.
    masked_before: Vec<u64>,
    /// Where those of them begin that load nothing from memory, in order.
    looking_nowhere: Vec<u64>,
    /// Functions in which healthy programs wait.
    ends: Vec<Range<u64>>,
    /// Those in which they wait with all interrupts off.
    ends_without_interrupts: Vec<Range<u64>>,
}

impl MaskedLoops {
    /// Finds the loops; none in what is no image of a Cortex-M or a RISC-V. `budget` is the length of the file.
    pub(crate) fn of(file: &object::File<'_>, mut budget: usize) -> Self {
        let (loop_before, mut sets_mask): (fn(&[u16], usize) -> _, _) = match file.architecture() {
            Architecture::Arm => (loop_before, false),
            Architecture::Riscv32 => (riscv_loop_before, true),
            _ => return Self::default(),
        };
        let is_arm = file.architecture() == Architecture::Arm;
        let (mut loops, mut masked_before, mut looking_nowhere) =
            <(Vec<_>, Vec<_>, Vec<_>)>::default();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let bytes = section.data().unwrap_or_default();
            // Headers may overlap; together they may not multiply the file.
            let Some(left) = budget.checked_sub(bytes.len()) else { continue };
            budget = left;
            let code: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            sets_mask |= code.windows(2).any(sets_mask_by);
            let address = |at: usize| section.address().saturating_add(2 * at as u64);
            for found in (0..code.len()).filter_map(|at| loop_before(&code, at)) {
                if is_arm && masks_at_end(&code[found.start.saturating_sub(NEAR)..found.start]) {
                    masked_before.push(address(found.start));
                }
                if looks_nowhere(&code[found.clone()]) {
                    looking_nowhere.push(address(found.start));
                }
                loops.push(address(found.start)..address(found.end));
            }
        }
        if !sets_mask {
            return Self::default();
        }
        loops.sort_unstable_by_key(|found| (found.start, found.end));
        masked_before.sort_unstable();
        looking_nowhere.sort_unstable();
        let functions = functions(file);
        let named = |lists: &[&str]| {
            let has = |name: &str| lists.iter().any(|list| has_word(name, list));
            let ends = functions.iter().filter(|(_, name)| has(name));
            ends.map(|(range, _)| range.clone()).collect()
        };
        let ends = named(&[ENDS]);
        let ends_without_interrupts = named(&[ENDS, ENDS_WITHOUT_INTERRUPTS]);
        Self { loops, masked_before, looking_nowhere, ends, ends_without_interrupts }
    }

    /// As [`Self::of_pc`], of a loop that loads nothing from memory, in a program with all interrupts off.
    /// One that looks at a device may wait for it.
    pub(crate) fn without_interrupts(&self, pc: u32) -> Option<u32> {
        let at = self.of_pc(pc)?;
        let is_end = self.ends_without_interrupts.iter().any(|end| end.contains(&pc.into()));
        let nowhere = self.looking_nowhere.binary_search(&at.into()).is_ok();
        (nowhere && !is_end).then_some(at)
    }

    /// As [`Self::of_pc`], of a loop directly in front of which interrupts are masked.
    pub(crate) fn that_masks_before(&self, pc: u32) -> Option<u32> {
        self.of_pc(pc).filter(|&at| self.masked_before.binary_search(&at.into()).is_ok())
    }

    /// Returns the address of the outermost loop in which no healthy program waits, if a program counter lies
    /// in one.
    pub(crate) fn of_pc(&self, pc: u32) -> Option<u32> {
        let pc = u64::from(pc);
        let after = self.loops.partition_point(|found| found.start <= pc);
        let near = self.loops[..after].iter().rev();
        // The longest that may hold it begins so far in front of it.
        let near = near.take_while(|found| pc - found.start <= 2 * LONGEST as u64);
        let outermost = near.filter(|found| found.contains(&pc)).last()?;
        let is_end = self.ends.iter().any(|end| end.contains(&pc));
        u32::try_from(outermost.start).ok().filter(|_| !is_end)
    }
}

/// Lists the functions of an image by their symbols, those of assembly without a type or length as well.
fn functions(file: &object::File<'_>) -> Vec<(Range<u64>, String)> {
    let in_text = |symbol: &object::Symbol<'_, '_>| {
        let section = symbol.section_index().and_then(|at| file.section_by_index(at).ok());
        section.is_some_and(|section| section.kind() == SectionKind::Text)
    };
    let is_function = |symbol: &object::Symbol<'_, '_>| match symbol.kind() {
        SymbolKind::Text => symbol.is_definition(),
        SymbolKind::Unknown | SymbolKind::Label => symbol.is_definition() && in_text(symbol),
        _ => false,
    };
    let of = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok().filter(|name| !name.starts_with(['$', '.']))?;
        let start = symbol.address() & !1;
        Some((start..start.saturating_add(symbol.size()), name.to_owned()))
    };
    let mut functions: Vec<_> = file.symbols().filter(is_function).filter_map(of).collect();
    functions.sort_by_key(|(range, _)| range.start);
    for at in 0..functions.len() {
        let start = functions[at].0.start;
        if functions[at].0.is_empty() {
            let behind = functions.partition_point(|(range, _)| range.start <= start);
            functions[at].0.end = functions.get(behind).map_or(u64::MAX, |(next, _)| next.start);
        }
    }
    functions
}

/// Tells whether a name has one of some words: `board_shutdown`, `powerOff`. Those in mangled names of C++ and Rust
/// have their lengths between them.
fn has_word(name: &str, list: &str) -> bool {
    let words = in_words(name);
    let mut words = words.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| list.split_ascii_whitespace().any(|listed| listed == word))
}

/// Tells whether a loop consists of branches, hints and barriers alone.
fn looks_nowhere(code: &[u16]) -> bool {
    match code {
        [] => true,
        // Barriers of Thumb; `wfi` and fences of RISC-V.
        [0xf3bf, _, rest @ ..] | [0x0073, 0x1050, rest @ ..] | [0x000f, _, rest @ ..] => {
            looks_nowhere(rest)
        }
        // `b.w` and `j`
        [0xf7ff, _] | [0x006f | 0xf06f, _] => true,
        [narrow, rest @ ..] => {
            let is_branch = matches!(narrow >> 11, 0b11100) || narrow & 0xe003 == 0xa001;
            (is_branch || is_hint(*narrow) || *narrow == 1) && looks_nowhere(rest)
        }
    }
}

/// Returns the halfwords of the loop that a branch closes, itself included; nothing where it closes no loop that
/// does nothing but wait.
fn loop_before(code: &[u16], branch: usize) -> Option<Range<usize>> {
    // The distance is counted from two halfwords behind.
    let (distance, len) = match code[branch..] {
        [always, ..] if always >> 11 == 0b11100 => (0x800 - (always & 0x7ff), 1),
        [on, ..] if is_condition(on) => (0x100 - (on & 0xff), 1),
        // `b.w` and `b<condition>.w`, backward by less than 2 KiB
        [0xf7ff, always, ..] if always >> 11 == 0b10111 => (0x800 - (always & 0x7ff), 2),
        [first, on, ..] if first & 0xfc3f == 0xf43f && on >> 11 == 0b10101 => {
            (0x800 - (on & 0x7ff), 2)
        }
        _ => return None,
    };
    let back = usize::from(distance).checked_sub(2).filter(|&back| back < LONGEST)?;
    let start = branch.checked_sub(back)?;
    waits(&code[start..branch]).then_some(start..branch + len)
}

/// Tells whether code consists of hints, such as `nop` and `wfi`, of barriers, and of what waits for a variable:
/// loads, comparisons, and branches on a condition.
fn waits(code: &[u16]) -> bool {
    match code {
        [] => true,
        [0xf3bf, barrier, rest @ ..] if matches!(barrier & 0xfff0, 0x8f40 | 0x8f50 | 0x8f60) => {
            waits(rest)
        }
        // `ldr.w`, `ldrb.w`, `ldrh.w`
        [wide, _, rest @ ..] if matches!(wide >> 4, 0xf8d | 0xf89 | 0xf8b) => waits(rest),
        [narrow, rest @ ..] => {
            let kinds = [is_hint, is_look, is_condition, is_zero_test, is_return];
            kinds.iter().any(|is_kind| is_kind(*narrow)) && waits(rest)
        }
    }
}

fn is_hint(code: u16) -> bool {
    code & 0xff0f == 0xbf00
}

/// Tells whether a narrow instruction is a branch on a condition. The last two are those of other instructions.
fn is_condition(code: u16) -> bool {
    code >> 12 == 0b1101 && code >> 8 & 0xf < 0xe
}

/// `cbz` or `cbnz`, which branch forward only.
fn is_zero_test(code: u16) -> bool {
    code & 0xf500 == 0xb100
}

/// `bx lr` or `pop {..., pc}`, over which a condition may lead.
fn is_return(code: u16) -> bool {
    code == 0x4770 || code >> 8 == 0xbd
}

/// Tells whether a narrow instruction loads a value from memory, or extends or compares values.
fn is_look(code: u16) -> bool {
    match code >> 11 {
        // `ldr` of a literal, `ldr`, `ldrb`, `ldrh`, `ldr` from the stack
        0b01001 | 0b01101 | 0b01111 | 0b10001 | 0b10011 => true,
        // `cmp` with a constant
        0b00101 => true,
        // `tst`, `cmp`, and what extends a value to a word
        _ => matches!(code & 0xffc0, 0x4200 | 0x4280) || code >> 8 == 0xb2,
    }
}

/// `msr primask, rN`, `msr basepri, rN`, `msr basepri_max, rN`, `msr faultmask, rN`, `cpsid i`, `cpsid f` or
/// `cpsid if`.
fn sets_mask_by(code: &[u16]) -> bool {
    match code {
        [0xb671..=0xb673, ..] => true,
        [first, 0x8810..=0x8813] => first & 0xfff0 == 0xf380,
        _ => false,
    }
}

/// Tells whether code ends with interrupts masked: by `cpsid f`, or by `BASEPRI` and a constant that is not 0.
fn masks_at_end(code: &[u16]) -> bool {
    let mut constants = [0_u16; 16];
    let mut masked = false;
    for pair in code.windows(2).chain(code.last().map(std::slice::from_ref)) {
        match *pair {
            [0xb671 | 0xb673, ..] => masked = true,
            // `cpsie`
            [enables, ..] if enables & 0xfff8 == 0xb660 => masked = false,
            // `movs rN, #...`, `mov.w rN, #...`
            [sets, ..] if sets >> 11 == 0b00100 => {
                constants[usize::from(sets >> 8 & 7)] = sets & 0xff;
            }
            [0xf04f, sets] if sets & 0xf000 == 0 => {
                constants[usize::from(sets >> 8 & 0xf)] = sets & 0xff;
            }
            [first, 0x8811 | 0x8812] if first & 0xfff0 == 0xf380 => {
                masked = constants[usize::from(first & 0xf)] != 0;
            }
            _ => {}
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{M3, address_of, fixture};

    fn loops_of(elf: &[u8]) -> MaskedLoops {
        MaskedLoops::of(&object::File::parse(elf).unwrap(), elf.len())
    }

    #[test]
    fn loops_of_functions_where_healthy_programs_wait_are_none() {
        let elf = std::fs::read(fixture(M3, "halt-masked")).unwrap();
        let loops = loops_of(&elf);
        let held = |name: &str| {
            let at = u32::try_from(address_of(&elf, name)).unwrap() & !1;
            (at..at + 64).step_by(2).any(|pc| loops.of_pc(pc).is_some())
        };
        assert!(held("queue_send"));
        assert!(!held("exit_masked"));
    }

    #[test]
    fn a_loop_that_waits_is_found() {
        const BRANCH: u16 = 0xe7fe;
        for (code, found) in [
            (&[0, BRANCH][..], Some(1..2)),
            // `1: wfi; b 1b`, `1: dsb; wfi; nop; b 1b`
            (&[0xbf30, 0xe7fd], Some(0..2)),
            (&[0xf3bf, 0x8f4f, 0xbf30, 0xbf00, 0xe7fa], Some(0..5)),
            // `1: ldr r3, [r7, #4]; cmp r3, #0; beq 1b`, and one that never ends
            (&[0x687b, 0x2b00, 0xd0fc], Some(0..3)),
            (&[0x681b, 0xe7fd], Some(0..2)),
            // `1: ldr r3, [sp, #4]; cmp r3, #0; bne 2f; nop; b 1b`, `1: ldr r3, [r2]; cbnz r3, 2f; b 1b`
            (&[0x9b01, 0x2b00, 0xd1f6, 0xbf00, 0xe7fa], Some(0..5)),
            (&[0x6813, 0xb90b, 0xe7fc], Some(0..3)),
            // `b.w .`, `1: wfi; b.w 1b`, `beq .`, `beq.w .`, `1: ldr.w r3, [r2]; cmp r3, #0; beq 1b`
            (&[0xf7ff, 0xbffe], Some(0..2)),
            (&[0xbf30, 0xf7ff, 0xbffd], Some(0..3)),
            (&[0xd0fe], Some(0..1)),
            (&[0xf43f, 0xaffe], Some(0..2)),
            (&[0xf8d2, 0x3000, 0x2b00, 0xd0fb], Some(0..4)),
            // `bl .`, `b.w` forward
            (&[0xf7ff, 0xfffe], None),
            (&[0xf000, 0xb800], None),
            // `1: ldr r3, [r2]; cbz r3, 2f; bx lr; 2: b 1b`
            (&[0x6813, 0xb103, 0x4770, 0xe7fb], Some(0..4)),
            // A store, an addition, an `it`, a branch to somewhere in front, and two forward.
            (&[0x601a, 0xe7fd], None),
            (&[0x3301, 0x2b0a, 0xd1fc], None),
            (&[0xbf08, 0xe7fd], None),
            (&[0xe7fd], None),
            (&[0xbf30, 0xe000], None),
            (&[0xbf30, 0xd000], None),
            // `svc`, undefined
            (&[0xbf30, 0xdffd], None),
            (&[0xbf30, 0xdefd], None),
        ] {
            let branch =
                code.len() - if code[code.len().saturating_sub(2)] >> 12 == 0xf { 2 } else { 1 };
            assert_eq!(loop_before(code, branch), found, "{code:x?}");
        }
    }

    #[test]
    fn the_outermost_loop_is_told() {
        let loops = vec![0x100..0x108, 0x100..0x10c, 0x104..0x108];
        let loops = MaskedLoops { loops, ..MaskedLoops::default() };
        for (pc, told) in [(0xfe, None), (0x100, Some(0x100)), (0x106, Some(0x100)), (0x10c, None)]
        {
            assert_eq!(loops.of_pc(pc), told, "{pc:#x}");
        }
    }

    #[test]
    fn a_mask_in_front_of_a_loop_is_seen() {
        for (code, masks) in [
            (&[][..], false),
            (&[0xb671], true),
            (&[0xb671, 0xf3bf, 0x8f6f], true),
            (&[0xb671, 0xb661], false),
            // `cpsid i`
            (&[0xb672], false),
            // `mov.w r3, #0x50; msr basepri, r3; isb; dsb`
            (&[0xf04f, 0x0350, 0xf383, 0x8811, 0xf3bf, 0x8f6f, 0xf3bf, 0x8f4f], true),
            // `movs r0, #0x40; msr basepri_max, r0`, and the same with 0 and with a value that is not known
            (&[0x2040, 0xf380, 0x8812], true),
            (&[0x2000, 0xf380, 0x8811], false),
            (&[0xf380, 0x8811], false),
            (&[0x2040, 0xf380, 0x8811, 0x2000, 0xf380, 0x8811], false),
        ] {
            assert_eq!(masks_at_end(code), masks, "{code:x?}");
        }
    }

    #[test]
    fn loops_that_look_at_memory_are_told() {
        for (code, nowhere) in [
            // `b .`, `wfi; b`, `nop; b.w`; `j .`, `wfi; j`, `c.nop; c.j`
            (&[0xe7fe][..], true),
            (&[0xbf30, 0xe7fd], true),
            (&[0xbf00, 0xf7ff, 0xbffd], true),
            (&[0x006f, 0x0000], true),
            (&[0x0073, 0x1050, 0xbff5], true),
            (&[0x0001, 0xbffd], true),
            // `ldr r3, [r2]; cmp r3, #0; beq`, `c.lw a5, 0(a4); beqz a5`
            (&[0x6813, 0x2b00, 0xd0fc], false),
            (&[0x431c, 0xdffd], false),
        ] {
            assert_eq!(looks_nowhere(code), nowhere, "{code:x?}");
        }
    }

    #[test]
    fn names_of_ends_are_read_in_any_language() {
        for (name, ends) in [
            ("board_shutdown", true),
            ("_ZN5Board8shutdownEv", true),
            ("_ZN3app18__cortex_m_rt_main17h0123456789abcdefE", true),
            ("stopAll", true),
            ("queue_send", false),
            ("mainframe", false),
        ] {
            assert_eq!(has_word(name, ENDS), ends, "{name}");
        }
    }

    #[test]
    fn what_sets_a_mask_is_told() {
        for (code, sets) in [
            ([0xf383, 0x8811], true),
            ([0xf383, 0x8813], true),
            ([0xb671, 0xe7fe], true),
            ([0xf383, 0x8810], true),
            ([0xb672, 0xe7fe], true),
            // `msr control, r3`, `cpsie f`
            ([0xf383, 0x8814], false),
            ([0xb661, 0xe7fe], false),
        ] {
            assert_eq!(sets_mask_by(&code), sets, "{code:x?}");
        }
    }
}
