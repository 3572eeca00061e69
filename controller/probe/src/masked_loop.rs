//! Endless loops of an image in which a program stands that has masked its interrupts. Pure.
//!
//! # Design
//! The assertion that most users of FreeRTOS have prints nothing: it raises `BASEPRI`, so that only the
//! most urgent interrupts are taken, and branches to itself; others wait for an interrupt in their loop. The
//! compiler puts it into each function that asserts, so no name tells it; the instructions do. Others set
//! `FAULTMASK`, which masks all but NMI. A program without an operating system has hardly a use for the two,
//! and one whose image never sets them has no such loop. They are set by blocks of code that end soon, so a
//! program that stays there does not go on as it was meant to.
//!
//! A healthy program ends in such a loop, too: tests that run with interrupts locked wait in `main`, and
//! some `exit` locks them first. Functions with names of an end have none.
//!
//! Armv6-M has neither; healthy programs end with `PRIMASK` set, so that register tells nothing.

use std::ops::Range;

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _};
use object::{SectionKind, SymbolKind};

use crate::fatal_halt::in_words;

/// Most halfwords of a loop.
const LONGEST: usize = 8;

/// Words in the names of functions in which healthy programs wait.
const ENDS: [&str; 15] = [
    "main", "exit", "idle", "test", "tests", "ztest", "end", "finish", "done", "stop", "halt",
    "park", "sleep", "shutdown", "wfi",
];

/// The loops of an image that sets `BASEPRI` or `FAULTMASK`.
#[derive(Debug, Default)]
pub(crate) struct MaskedLoops {
    /// Addresses of their instructions, in order.
    loops: Vec<u64>,
    /// Functions in which healthy programs wait.
    ends: Vec<Range<u64>>,
}

impl MaskedLoops {
    /// Finds the loops; none in what is no ELF image of a Cortex-M.
    pub(crate) fn of_image(elf: &[u8]) -> Self {
        object::File::parse(elf).map_or_else(|_| Self::default(), |file| Self::of(&file, elf.len()))
    }

    /// As [`Self::of_image`], of a file that was parsed before; `budget` is its length.
    pub(crate) fn of(file: &object::File<'_>, mut budget: usize) -> Self {
        if file.architecture() != Architecture::Arm {
            return Self::default();
        }
        let mut sets_mask = false;
        let mut loops = Vec::new();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let bytes = section.data().unwrap_or_default();
            // Headers may overlap; together they may not multiply the file.
            let Some(left) = budget.checked_sub(bytes.len()) else { continue };
            budget = left;
            let code: Vec<u16> =
                bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            sets_mask |= code.windows(2).any(sets_mask_by);
            let address = |at: usize| section.address().saturating_add(2 * at as u64);
            loops.extend((0..code.len()).flat_map(|at| loop_before(&code, at)).map(address));
        }
        if !sets_mask {
            return Self::default();
        }
        let is_end = |symbol: &object::Symbol<'_, '_>| {
            let name = in_words(symbol.name().unwrap_or_default());
            symbol.kind() == SymbolKind::Text && name.split('_').any(|word| ENDS.contains(&word))
        };
        let range = |symbol: object::Symbol<'_, '_>| {
            let start = symbol.address() & !1;
            start..start.saturating_add(symbol.size())
        };
        loops.sort_unstable();
        loops.dedup();
        Self { loops, ends: file.symbols().filter(is_end).map(range).collect() }
    }

    /// Tells whether a program counter is that of a loop in which no healthy program waits.
    pub(crate) fn hold(&self, pc: u32) -> bool {
        let pc = u64::from(pc);
        self.loops.binary_search(&pc).is_ok() && !self.ends.iter().any(|end| end.contains(&pc))
    }
}

/// Returns the halfwords of the loop that a branch closes, itself included; none where it closes no loop that
/// does nothing.
fn loop_before(code: &[u16], branch: usize) -> Range<usize> {
    // `b` to an address shortly before: the distance is counted from two halfwords behind.
    let back = usize::from(0x800 - (code[branch] & 0x7ff)).checked_sub(2);
    let back = back.filter(|&back| code[branch] >> 11 == 0b11100 && back < LONGEST);
    match back.and_then(|back| branch.checked_sub(back)) {
        Some(start) if does_nothing(&code[start..branch]) => start..branch + 1,
        _ => 0..0,
    }
}

/// Tells whether code consists of hints, such as `nop` and `wfi`, and barriers.
fn does_nothing(code: &[u16]) -> bool {
    match code {
        [] => true,
        [0xf3bf, barrier, rest @ ..] if matches!(barrier & 0xfff0, 0x8f40 | 0x8f50 | 0x8f60) => {
            does_nothing(rest)
        }
        [hint, rest @ ..] => hint & 0xff0f == 0xbf00 && does_nothing(rest),
    }
}

/// `msr basepri, rN`, `msr basepri_max, rN`, `msr faultmask, rN`, `cpsid f` or `cpsid if`.
fn sets_mask_by(code: &[u16]) -> bool {
    match code {
        [0xb671 | 0xb673, ..] => true,
        [first, 0x8811..=0x8813] => first & 0xfff0 == 0xf380,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{M3, address_of, fixture};

    #[test]
    fn loops_of_functions_where_healthy_programs_wait_are_none() {
        let elf = std::fs::read(fixture(M3, "halt-masked")).unwrap();
        let loops = MaskedLoops::of_image(&elf);
        let held = |name: &str| {
            let at = u32::try_from(address_of(&elf, name)).unwrap() & !1;
            (at..at + 64).step_by(2).any(|pc| loops.hold(pc))
        };
        assert!(held("queue_send"));
        assert!(!held("exit_masked"));
        assert!(!MaskedLoops::of_image(b"no ELF file").hold(0));
    }

    #[test]
    fn a_loop_that_does_nothing_is_found() {
        const BRANCH: u16 = 0xe7fe;
        for (code, found) in [
            (&[0, BRANCH][..], 1..2),
            // `1: wfi; b 1b`, `1: dsb; wfi; nop; b 1b`
            (&[0xbf30, 0xe7fd], 0..2),
            (&[0xf3bf, 0x8f4f, 0xbf30, 0xbf00, 0xe7fa], 0..5),
            // A load, an `it`, a branch to somewhere in front, and one forward.
            (&[0x681b, 0xe7fd], 0..0),
            (&[0xbf08, 0xe7fd], 0..0),
            (&[0xe7fd], 0..0),
            (&[0xbf30, 0xe000], 0..0),
        ] {
            assert_eq!(loop_before(code, code.len() - 1), found, "{code:x?}");
        }
    }

    #[test]
    fn an_image_that_sets_no_mask_has_none() {
        let elf = std::fs::read(fixture(M3, "hang-after-pass")).unwrap();
        assert!(MaskedLoops::of_image(&elf).loops.is_empty());
        for (code, sets) in [
            ([0xf383, 0x8811], true),
            ([0xf383, 0x8813], true),
            ([0xb671, 0xe7fe], true),
            // `msr primask, r3`, `cpsid i`, `cpsie f`
            ([0xf383, 0x8810], false),
            ([0xb672, 0xe7fe], false),
            ([0xb661, 0xe7fe], false),
        ] {
            assert_eq!(sets_mask_by(&code), sets, "{code:x?}");
        }
    }
}
