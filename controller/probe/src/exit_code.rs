//! The code with which a program has called `exit`, where that waits in a loop instead of ending an emulator.
//! Pure.
//!
//! # Design
//! Start files for boards without an operating system end `exit` in a loop. By then, the registers that held
//! the code may hold something else, so the call is read: `exit(1)` loads a constant in front of it, and nothing
//! but what saves registers or loads other arguments stands between. Where the constant is loaded on a
//! condition, or a branch leads behind it, the code is not known, and neither is one that was computed.

use std::ops::Range;

use object::{Architecture, Object as _, ObjectSymbol as _, SymbolKind};

use crate::code_map::CodeMap;
use crate::riscv::{CodeFlow, Sweep, call_length};
use crate::thumb::{self, ThumbCall};

/// The functions by which a program ends.
pub(crate) const ENDS: [&str; 4] = ["exit", "_exit", "__exit", "_Exit"];

/// Most such functions of an image.
const MOST: usize = 16;

/// Most instructions between the constant and the call.
const MOST_BETWEEN: usize = 2;

/// Most instructions of Thumb that depend on one `it`.
const MOST_IN_IT: usize = 4;

/// How far in front of a call and behind it branches are looked for, in bytes.
const NEAR: u32 = 1024;

/// Where an image has such functions.
#[derive(Debug, Default)]
pub(crate) struct ExitFunctions {
    is_thumb: bool,
    functions: Vec<Range<u64>>,
}

/// What an instruction does to the register of the first argument.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    Loads(i32),
    /// It saves a register, or loads a constant into another one.
    None,
    Unknown,
}

impl ExitFunctions {
    /// Finds them by the symbol table.
    pub(crate) fn of(file: &object::File<'_>) -> Self {
        let is_thumb = file.architecture() == Architecture::Arm;
        let ends = file.symbols().filter(|symbol| {
            let name = symbol.name().unwrap_or_default();
            let name = name.split('.').next().unwrap_or(name);
            symbol.kind() == SymbolKind::Text && symbol.is_definition() && ENDS.contains(&name)
        });
        let range = |symbol: object::Symbol<'_, '_>| {
            let start = symbol.address() & if is_thumb { !1 } else { !0 };
            start..start.saturating_add(symbol.size())
        };
        Self { is_thumb, functions: ends.map(range).take(MOST).collect() }
    }

    /// Tells whether code lies in one.
    pub(crate) fn hold(&self, pc: u32) -> bool {
        self.functions.iter().any(|function| function.contains(&pc.into()))
    }

    /// Returns the code other than 0 that a call hands to one of them, by where it returns to.
    pub(crate) fn code_handed(&self, return_to: u32, map: &CodeMap) -> Option<i32> {
        self.code_loaded(self.call_before(return_to, map)?, map)
    }

    /// Returns the constant other than 0 that is the first argument of a call at an address.
    pub(crate) fn code_loaded(&self, call: u32, map: &CodeMap) -> Option<i32> {
        let before = map.instructions_before(call, MOST_BETWEEN + 1 + MOST_IN_IT)?;
        let effect = |&at: &u32| {
            let (first, second) = (map.halfword(at), map.halfword(at.wrapping_add(2)));
            let (first, second) = (first.unwrap_or_default(), second.unwrap_or_default());
            if self.is_thumb { thumb_effect(first, second) } else { riscv_effect(first, second) }
        };
        let near = before.iter().take(MOST_BETWEEN + 1).map(effect);
        let (behind, effect) = near.enumerate().find(|(_, effect)| *effect != Effect::None)?;
        let Effect::Loads(code) = effect else { return None };
        let conditional = before.iter().skip(behind + 1).take(MOST_IN_IT).any(|&at| {
            // `it` is a hint with a mask.
            self.is_thumb && map.halfword(at).is_some_and(|it| it >> 8 == 0xbf && it & 0xf != 0)
        });
        let loaded = before[behind];
        let sure = !conditional && !self.leads_between(loaded, call, map);
        (code != 0 && sure).then_some(code)
    }

    /// Returns the address of the call of such a function that returns to an address.
    fn call_before(&self, return_to: u32, map: &CodeMap) -> Option<u32> {
        let code = |at: u32| map.halfword(at);
        if self.is_thumb {
            let ThumbCall::Direct(target) = thumb::call_before(return_to, code)? else {
                return None;
            };
            let is_end = self.functions.iter().any(|end| end.start == u64::from(target));
            return is_end.then_some((return_to & !1).wrapping_sub(4));
        }
        let starts = self.functions.iter().filter_map(|end| u32::try_from(end.start).ok());
        let len = starts.into_iter().find_map(|start| call_length(return_to, start, code));
        Some(return_to.wrapping_sub(len?))
    }

    /// Tells whether a branch may lead behind the load of a constant, up to a call. Halfwords are taken for
    /// branches wherever they stand, so it may be too careful.
    fn leads_between(&self, loaded: u32, call: u32, map: &CodeMap) -> bool {
        let near = call.saturating_sub(NEAR)..call.saturating_add(NEAR);
        near.step_by(2).any(|at| {
            let Some(first) = map.halfword(at) else { return false };
            let second = map.halfword(at.wrapping_add(2)).unwrap_or_default();
            let target = match self.is_thumb {
                true => thumb::branch(at, first, second),
                false => match Sweep::default().read(at, first, second).1 {
                    CodeFlow::Branch(to) | CodeFlow::Jump(to) => Some(to),
                    _ => None,
                },
            };
            target.is_some_and(|to| loaded < to && to <= call)
        })
    }
}

/// Tells what an instruction does to `r0`.
///
/// Source: ARMv7-M manual A7.7.76 (MOV), A7.7.85 (MVN), A7.7.99 (PUSH), A7.7.161 (STR).
fn thumb_effect(first: u16, second: u16) -> Effect {
    match (first, second) {
        // `mov.w r0, #...` and `mov.w r0, #-1`
        (0xf04f, 0x0000..=0x00ff) => Effect::Loads(second.into()),
        (0xf04f, 0x30ff) => Effect::Loads(-1),
        // `mvn r0, #...`
        (0xf06f, 0x0000..=0x00ff) => Effect::Loads(!i32::from(second)),
        // `movs r0, #...`
        (0x2000..=0x20ff, _) => Effect::Loads(i32::from(first & 0xff)),
        // `push` and `str`
        (0xb400..=0xb5ff | 0x6000..=0x67ff | 0x9000..=0x97ff, _) => Effect::None,
        _ => Effect::Unknown,
    }
}

/// Tells what an instruction does to `a0`.
///
/// Source: The RISC-V Instruction Set Manual, Volume I, `addi`, `sw`, `c.li`, `c.sw` and `c.swsp`.
fn riscv_effect(first: u16, second: u16) -> Effect {
    match first {
        // `addi a0, zero, ...`
        0x0513 if second & 0xf == 0 => Effect::Loads(i32::from(second as i16) >> 4),
        // The same with another register, and `sw`
        _ if first & 0xf07f == 0x0013 && second & 0xf == 0 => Effect::None,
        _ if first & 0x707f == 0x2023 => Effect::None,
        // `c.li a0, ...`
        _ if first & 0xef83 == 0x4501 => {
            let bits = first >> 7 & 0x20 | first >> 2 & 0x1f;
            Effect::Loads(i32::from(bits as i16) << 26 >> 26)
        }
        // `c.li` of another register, `c.sw` and `c.swsp`
        _ if first & 0xe003 == 0x4001 => Effect::None,
        _ if matches!(first & 0xe003, 0xc000 | 0xc002) => Effect::None,
        _ => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::tests::emulated::{M3, Machine, RISCV, address_of, fixture};

    #[test]
    fn what_loads_a_constant_is_told() {
        use Effect::{Loads, None, Unknown};
        for (code, effect) in [
            ([0x2001, 0], Loads(1)),
            ([0xf04f, 0x0002], Loads(2)),
            ([0xf04f, 0x30ff], Loads(-1)),
            ([0xf06f, 0x0004], Loads(-5)),
            // `push {r3, lr}`, `str r1, [sp, #4]`
            ([0xb508, 0], None),
            ([0x9101, 0], None),
            // `movs r1, #1`, `mov r0, r4`, `ldr.w r2, [r3, #4]`
            ([0x2101, 0], Unknown),
            ([0x4620, 0], Unknown),
            ([0xf8d3, 0x2004], Unknown),
        ] {
            assert_eq!(thumb_effect(code[0], code[1]), effect, "{code:x?}");
        }
        for (code, effect) in [
            // `c.li a0, 1`, `c.li a0, -1`, `addi a0, zero, 134`, `addi a0, zero, -1`
            ([0x4505, 0], Loads(1)),
            ([0x557d, 0], Loads(-1)),
            ([0x0513, 0x0860], Loads(134)),
            ([0x0513, 0xfff0], Loads(-1)),
            // `c.swsp ra, 12(sp)`, `sw ra, 12(sp)`
            ([0xc606, 0], None),
            ([0x2623, 0x0011], None),
            // `c.li a1, 1`, `addi a7, zero, 93`
            ([0x4585, 0], None),
            ([0x0893, 0x05d0], None),
            // `c.mv a0, s0`, `addi a0, a1, 1`
            ([0x8522, 0], Unknown),
            ([0x8513, 0x0015], Unknown),
        ] {
            assert_eq!(riscv_effect(code[0], code[1]), effect, "{code:x?}");
        }
    }

    /// The codes of all calls in a function of a fixture.
    fn codes(machine: Machine, function: &str) -> Vec<i32> {
        let elf = std::fs::read(fixture(machine, "exit-without-end")).unwrap();
        let file = object::File::parse(elf.as_slice()).unwrap();
        let (exits, map) = (ExitFunctions::of(&file), CodeMap::of(&file, elf.len()));
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(function)).unwrap();
        let start = u32::try_from(address_of(&elf, function)).unwrap() & !1;
        let places = (start..=start + symbol.size() as u32).step_by(2);
        places.filter_map(|at| exits.code_handed(at, &map)).collect()
    }

    #[test]
    fn a_code_is_known_where_it_is_loaded_on_no_condition() {
        for machine in [M3, RISCV] {
            assert_eq!(codes(machine, "check"), [1]);
            assert_eq!(codes(machine, "check_any"), [0; 0]);
            assert_eq!(codes(machine, "fixture_main"), [0; 0]);
        }
    }
}
